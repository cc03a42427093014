import { expect, test } from 'vitest';
import { loadConfig, withEnvironment } from '../../../src/config/load.ts';

const ENV = {
  PATH: '/bin',
  HOME: '/home/ann',
  LC_ALL: 'C',
  AWS_REGION: 'eu-west-1',
  AWS_ACCESS_KEY_ID: 'id',
  AWS_SECRET_ACCESS_KEY: 'key',
  AWS_SESSION_TOKEN: 'token',
  AWS_CONTAINER_CREDENTIALS_FULL_URI: 'http://169.254.170.2/',
  PGHOST: 'db',
  PGPASSWORD: 'sesame',
  SEINE_DISPATCH: 'bullmq://:password@cache',
  GITHUB_TOKEN: 'token',
  NODE_OPTIONS: '--require /tmp/x.js',
  SEINE_SECRET_SHOP: 'shop',
  JOB_SITE: 'https://b.example/',
  START_URL: 'https://a.example/',
};

test('code of jobs sees what programs need, and what the operator lists', () => {
  const plain = {
    PATH: '/bin',
    HOME: '/home/ann',
    LC_ALL: 'C',
    AWS_REGION: 'eu-west-1',
    PGHOST: 'db',
    JOB_SITE: 'https://b.example/',
  };
  expect(loadConfig({}, ENV).jobEnvironment).toEqual({ ...plain, SEINE_SECRET_SHOP: 'shop' });
  const listed = loadConfig({}, { ...ENV, SEINE_JOB_SECRETS: 'START_URL,./keys' }).jobEnvironment;
  expect(listed).toEqual({ ...plain, SEINE_SECRET_SHOP: 'shop', START_URL: 'https://a.example/' });
});

test('it is all that is there while a job file is loaded, and the whole one is there again afterwards', async () => {
  const whole = process.env;
  expect(await withEnvironment({ A: '1' })(async () => ({ ...process.env }))).toEqual({ A: '1' });
  await expect(withEnvironment({})(() => Promise.reject(new Error('no job')))).rejects.toThrow('no job');
  expect(process.env).toBe(whole);
});

test('it is hidden until the last of several that are loaded at once is there', async () => {
  const whole = process.env;
  const [first, second] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const hidden = withEnvironment({ A: '1' });
  const loading = [hidden(() => first.promise), hidden(() => second.promise)];
  first.resolve();
  await loading[0];
  expect(process.env).toEqual({ A: '1' });
  second.resolve();
  await loading[1];
  expect(process.env).toBe(whole);
});

test('the password of the database is taken along, where nothing else says one', () => {
  const store = (url: string, env = {}) =>
    loadConfig({}, { PGPASSWORD: 'se same', SEINE_STORE: url, ...env }).config.store;
  expect(store('postgres://me@db/seine')).toBe('postgres://me:se%20same@db/seine');
  expect(store('postgres://me:other@db/seine')).toBe('postgres://me:other@db/seine');
  expect(store('postgres://me@db/seine', { SEINE_STORE_PASSWORD_FILE: '/x' })).toBe('postgres://me@db/seine');
  expect(store('postgres:///seine')).toBe('postgres:///seine');
});
