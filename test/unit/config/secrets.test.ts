import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { loadConfig, loadSettings } from '../../../src/config/load.ts';
import { makeReadSecret } from '../../../src/config/secrets.ts';
import { SeineError } from '../../../src/core/errors.ts';
import { anchorSecrets } from '../../../src/job-file/check-job.ts';
import { parseJob } from '../../../src/job-file/parse-job.ts';
import { sendThrough } from '../../../src/worker/request/send.ts';
import { specOf } from '../../support/fixtures.ts';

const dir = mkdtempSync(join(tmpdir(), 'seine-secrets-'));
afterAll(() => rmSync(dir, { recursive: true }));

describe('a secret is read', () => {
  writeFileSync(join(dir, 'list'), 'from the mount');
  writeFileSync(join(dir, 'empty'), ' \n');
  const env = { NAME: 'from the environment', EMPTY: ' ' };
  const proxyPools = new Map([['home', { type: 'residential' as const, file: join(dir, 'list') }]]);
  const listed = ['NAME', 'EMPTY', 'NOWHERE'];
  const read = makeReadSecret({ dir, isDirListed: true, listed, proxyPools, env });

  test('from the environment, a file or the folder of secrets', async () => {
    expect(await read({ env: 'NAME' }, 'anywhere')).toBe('from the environment');
    expect(await read({ file: join(dir, 'list') }, 'anywhere')).toBe('from the mount');
    expect(await read({ secret: 'list' }, 'anywhere')).toBe('from the mount');
  });

  test.each([
    [{ env: 'NOWHERE' }, 'the environment variable NOWHERE is not set'],
    [{ env: 'EMPTY' }, 'the environment variable EMPTY is not set'],
    [{ secret: 'nowhere' }, /cannot read the secret \S+nowhere \(ENOENT\)/],
    [{ secret: 'empty' }, /the secret \S+empty is empty/],
    [{ shared: 'hone' }, "there is no shared proxy pool 'hone'; did you mean home?"],
  ])('or said to be missing: %j', async (ref, message) => {
    await expect(read(ref, 'anywhere')).rejects.toThrow(message);
  });

  test('from the list of proxies that the operator shares, whatever the job may read besides', async () => {
    expect(await read({ shared: 'home' }, 'own-place')).toBe('from the mount');
    const { readSecret } = loadConfig(
      {},
      { SEINE_PROXY_POOLS: `a=mobile:/nowhere, home=${join(dir, 'list')}` },
    );
    expect(await readSecret({ shared: 'home' }, 'own-place')).toBe('from the mount');
  });

  test.each(['home', 'home=', '=list', 'home=fast:/list', 'a=/list,a=/other', 'a b=/list'])(
    'from no list that is not named and placed: %s',
    (text) => {
      expect(() => loadConfig({}, { SEINE_PROXY_POOLS: text })).toThrow(
        'invalid value for SEINE_PROXY_POOLS',
      );
    },
  );

  test('from the folder that the setting names', async () => {
    const { readSecret } = loadConfig({}, { SEINE_SECRETS: dir });
    expect(await readSecret({ secret: 'list' }, 'anywhere')).toBe('from the mount');
  });
});

describe('a secret that the operator has not listed', () => {
  const outside = mkdtempSync(join(tmpdir(), 'seine-unlisted-'));
  const inside = join(outside, 'listed');
  mkdirSync(inside);
  for (const path of [join(outside, 'password'), join(inside, 'token')]) writeFileSync(path, 'text');
  symlinkSync(join(outside, 'password'), join(inside, 'link'));
  afterAll(() => rmSync(outside, { recursive: true }));
  const env = { AWS_SECRET_ACCESS_KEY: 'x', SEINE_SECRET_SHOP: 'y', SHOP_TOKEN: 'z', SEINE_LOG: 'info' };
  const readOf = (listed: string[]) =>
    makeReadSecret({ dir: outside, isDirListed: false, listed, proxyPools: new Map(), env });

  test.each([
    [{ env: 'AWS_SECRET_ACCESS_KEY' }, 'SEINE_JOB_SECRETS=SHOP_TOKEN,AWS_SECRET_ACCESS_KEY'],
    [{ env: 'SEINE_LOG' }, 'SEINE_JOB_SECRETS=SHOP_TOKEN,SEINE_LOG'],
    [{ secret: 'password' }, 'SEINE_JOB_SECRETS=SHOP_TOKEN,password'],
    [{ file: join(outside, 'password') }, `SEINE_JOB_SECRETS=SHOP_TOKEN,${join(outside, 'password')}`],
    [{ file: '/nowhere' }, 'SEINE_JOB_SECRETS=SHOP_TOKEN,/nowhere'],
  ])('cannot be read by a job, and the message says what to set: %j', async (ref, hint) => {
    const failed = await readOf(['SHOP_TOKEN'])(ref, 'anywhere').catch((error) => error);
    expect(failed).toBeInstanceOf(SeineError);
    expect(failed.hint).toContain(hint);
  });

  test('is read once it is listed, by name, path or folder', async () => {
    expect(await readOf(['SHOP_TOKEN'])({ env: 'SHOP_TOKEN' }, 'anywhere')).toBe('z');
    expect(await readOf(['password'])({ secret: 'password' }, 'anywhere')).toBe('text');
    const path = join(inside, 'token');
    expect(await readOf([path])({ file: path }, 'anywhere')).toBe('text');
    expect(await readOf([inside])({ file: path }, 'anywhere')).toBe('text');
  });

  test('is not read through a link in a listed folder, nor through a path that begins alike', async () => {
    await expect(readOf([inside])({ file: join(inside, 'link') }, 'anywhere')).rejects.toThrow(/not listed/);
    await expect(readOf([inside.slice(0, -1)])({ file: join(inside, 'token') }, 'anywhere')).rejects.toThrow(
      /not listed/,
    );
  });

  test('needs no listing where its name says that it is for jobs', async () => {
    expect(await readOf([])({ env: 'SEINE_SECRET_SHOP' }, 'anywhere')).toBe('y');
    writeFileSync(join(outside, 'seine-secret-shop'), 'mounted');
    expect(await readOf([])({ secret: 'seine-secret-shop' }, 'anywhere')).toBe('mounted');
  });

  test('needs none either as a file that says itself where it is sent', async () => {
    expect(await readOf([])({ file: join(outside, 'password') }, 'own-place')).toBe('text');
    await expect(readOf([])({ env: 'SHOP_TOKEN' }, 'own-place')).rejects.toThrow(/not listed/);
  });

  test('is listed in the environment only: a settings file may come with the job', async () => {
    writeFileSync(join(outside, 'seine.config.yaml'), 'jobSecrets: AWS_SECRET_ACCESS_KEY');
    await expect(loadSettings({}, {}, outside)).rejects.toThrow(
      /jobSecrets cannot be set in a settings file/,
    );
    writeFileSync(join(outside, 'seine.config.yaml'), `secrets: ${outside}`);
    const { readSecret } = await loadSettings({}, {}, outside);
    await expect(readSecret({ secret: 'password' }, 'anywhere')).rejects.toThrow(/not listed/);
    const listed = loadConfig({}, { ...env, SEINE_JOB_SECRETS: ' SHOP_TOKEN , OTHER,' });
    expect(await listed.readSecret({ env: 'SHOP_TOKEN' }, 'anywhere')).toBe('z');
  });
});

describe('a job', () => {
  const base = { sources: ['https://a.example/'] };
  const problemOf = (job: object) =>
    parseJob({ ...base, ...job }, 'the job', 'j').then(
      () => null,
      (error: Error) => error.message,
    );
  const pools = { dc: { from: { env: 'X' } } };

  test.each([
    'h.example:8080:user:pa55word',
    'h.example:8080:user:pa55word DE',
    'h.example:8080:user:pa55:word',
    'h.example:8080:user:pa55word # the best',
    'user:pa55word@h.example:8080',
    'http://h.example:8080:user:pa55word',
    '10.0.0.1:1, 10.0.0.2:2:user:pa55word',
    'http://user:pa55word@h.example',
  ])('has no proxy with a password in it, and no message quotes one: %s', async (proxy) => {
    const listed = await problemOf({ proxies: { pools: { dc: { from: { list: [proxy] } } } } });
    expect(listed).toMatch(/a job must not contain credentials/);
    expect(listed).not.toMatch(/pa55|word/);
  });

  test.each([
    'h.example:8080:user:pa55word',
    'http://user:pa55word@h.example:8080',
    '/a/b/h:1:user:pa55word',
  ])('has no proxy in place of the name of a file: %s', async (file) => {
    const problem = await problemOf({ proxies: { pools: { dc: { from: { file } } } } });
    expect(problem).not.toBeNull();
    expect(problem).not.toMatch(/pa55|word/);
  });

  test.each(['h:1', 'http://192.0.2.1:8080', 'socks5://[2001:db8::1]:1080/ DE', 'h:1 # remark', 'h:1, h:2'])(
    'may list proxies without: %s',
    async (proxy) => {
      expect(await problemOf({ proxies: { pools: { dc: { from: { list: [proxy] } } } } })).toBeNull();
    },
  );

  test.each([
    [
      { proxies: { pools: { dc: { from: { list: ['http://u:p@h:1'] } } } } },
      /a job must not contain credentials/,
    ],
    [{ proxies: { pools, default: 'other' } }, /proxies\.default: unknown pool/],
    [
      { proxies: { pools }, routes: [{ name: 'a', proxy: 'other' }] },
      /route 'a' uses the unknown proxy pool 'other'/,
    ],
    [
      { proxies: { pools }, routes: [{ name: 'a', escalate: ['proxy'] }] },
      /escalates to proxies, but has no proxy pool/,
    ],
    [{ routes: [{ name: 'a', fetcher: 'api' }] }, /uses a remote scraping API/],
    [{ api: { key: { env: 'X' } } }, /either `url` or `batch`/],
    [{ api: { url: 'https://api.example/' } }, /the URL must contain `\{url\}`/],
    [{ sources: ['https://u:p@a.example/'] }, /sources: a URL contains a user name or password/],
    [{ api: { url: 'https://u:p@a.example/?u={url}' } }, /api: a URL contains a user name or password/],
    [{ api: { batch: { submit: 'https://u:p@a.example/' } } }, /api: a URL contains a user name/],
    [
      { api: { batch: { submit: 'https://a.example/', poll: 'https://u@a.example/' } } },
      /api: a URL contains/,
    ],
    [{ notify: { url: 'https://u:p@a.example/' } }, /notify: a URL contains a user name or password/],
    [{ sources: [{ sitemap: 'https://u:p@a.example/sitemap.xml' }] }, /sources: a URL contains a user name/],
    [{ sources: [{ file: 'https://u:p@a.example/list.csv' }] }, /sources: a URL contains a user name/],
    [{ proxies: { pools: { dc: { from: { secret: '../etc/passwd' } } } } }, /proxies\.pools\.dc\.from/],
    [
      { identity: { secretHeaders: { 'https://a.example/path': { A: { env: 'X' } } } } },
      /secretHeaders\.https:\/\/a\.example\/path: Invalid key/,
    ],
  ])('with %j is refused', async (job, message) => {
    expect(await problemOf(job)).toMatch(message);
  });

  test('may have pools that routes use', async () => {
    expect(
      await problemOf({ proxies: { pools }, routes: [{ name: 'a', proxy: 'dc', escalate: ['proxy'] }] }),
    ).toBeNull();
  });

  test('means files of secrets from where its own file is', () => {
    const spec = specOf({
      proxies: {
        pools: {
          a: { from: { file: 'list.txt' } },
          b: { from: { list: ['h:1'], credentials: { file: '/x' } } },
        },
      },
      api: { url: 'https://api.example/?{url}', key: { file: 'key' } },
      identity: { secretHeaders: { 'https://a.example': { A: { file: 't' }, B: { env: 'B' } } } },
    });
    const anchored = anchorSecrets(spec, '/jobs');
    expect(anchored.proxies!.pools.a!.from).toEqual({ file: resolve('/jobs/list.txt') });
    expect(anchored.proxies!.pools.b!.from).toEqual({ list: ['h:1'], credentials: { file: '/x' } });
    expect(anchored.api!.key).toEqual({ file: '/jobs/key' });
    expect(anchored.identity.secretHeaders).toEqual({
      'https://a.example': { A: { file: '/jobs/t' }, B: { env: 'B' } },
    });
  });
});

test('a task that wants a proxy and has none is not sent at all', async () => {
  let sent = 0;
  const fetch = async () => {
    sent++;
    return { kind: 'aborted' } as const;
  };
  const { result, proxy } = await sendThrough({ url: 'https://a.example/' }, true, {}, fetch);
  expect([result.kind === 'failure' && result.code, proxy, sent]).toEqual(['proxy', null, 0]);
  await sendThrough({ url: 'https://a.example/' }, false, {}, fetch);
  expect(sent).toBe(1);
});
