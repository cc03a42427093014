import { describe, expect, test } from 'vitest';
import { loadConfig, threadsOf } from '../../../src/config/load.ts';
import { SETTINGS } from '../../../src/config/schema.ts';
import { SeineError } from '../../../src/core/errors.ts';

describe('configuration', () => {
  test('defaults, when nothing is said', () => {
    const { config, origins } = loadConfig({}, {});
    expect(config).toMatchObject({ dir: '.seine', contact: null, sync: 'normal', log: 'warn' });
    const { workers, threads } = threadsOf(config);
    expect(workers).toBeGreaterThanOrEqual(1);
    expect(workers).toBeLessThanOrEqual(8);
    expect(threads).toEqual({ min: 1, max: workers, first: workers, keepMs: 300_000, lookMs: 1_000 });
    expect(new Set(Object.values(origins))).toEqual(new Set(['default']));
  });

  test('flags win over the environment, the environment over defaults', () => {
    const env = { SEINE_DIR: '/from/env', SEINE_WORKERS: '3', SEINE_LOG: '', OTHER: 'x' };
    const { config, origins } = loadConfig({ dir: '/from/flag' }, env);
    expect(config).toMatchObject({ dir: '/from/flag', workers: 3, log: 'warn' });
    expect(origins).toMatchObject({ dir: 'flag', workers: 'environment', log: 'default', sync: 'default' });
  });

  test.each([
    [{ workers: '0' }, {}, /invalid value for --workers: '0'/],
    [{ workers: '257' }, {}, /--workers/],
    [{ workers: '2.5' }, {}, /--workers/],
    [{ workers: 'two' }, {}, /--workers/],
    [{ workers: '' }, {}, /--workers/],
    [{ workers: '4..2' }, {}, /--workers/],
    [{ workers: '1..' }, {}, /--workers/],
    [{ workers: '..4' }, {}, /--workers/],
    [{ workers: '1..2..3' }, {}, /--workers/],
    [{ workers: '0..257' }, {}, /--workers/],
    [{}, { SEINE_WORKERS_KEEP_SECONDS: '0' }, /SEINE_WORKERS_KEEP_SECONDS/],
    [{ dir: '' }, {}, /--dir/],
    [{}, { SEINE_WORKERS: '-1' }, /invalid value for SEINE_WORKERS: '-1'/],
    [{}, { SEINE_SYNC: 'FULL' }, /SEINE_SYNC/],
    [{}, { SEINE_LOG: 'loud' }, /SEINE_LOG/],
    [{}, { SEINE_S3_PATH_STYLE: 'true' }, /SEINE_S3_PATH_STYLE/],
    [{ blobs: '' }, {}, /--blobs/],
  ])('%j with %j is refused, naming where it was said', (flags, env, message) => {
    expect(() => loadConfig(flags, env)).toThrow(SeineError);
    expect(() => loadConfig(flags, env)).toThrow(message);
  });

  test('one number of threads is kept; a range begins with the least', () => {
    const of = (workers: string) => threadsOf(loadConfig({ workers, workersKeepSeconds: '20' }, {}).config);
    expect(of('3')).toMatchObject({ workers: 3, threads: { min: 3, max: 3, first: 3 } });
    expect(of('2..5')).toEqual({
      workers: 5,
      threads: { min: 2, max: 5, first: 2, keepMs: 20_000, lookMs: 1_000 },
    });
  });

  test('every setting has a variable of ours, a meaning, and a default that it would accept itself', () => {
    for (const setting of Object.values(SETTINGS)) {
      expect(setting.env).toMatch(/^SEINE_[A-Z0-9_]+$/);
      expect(setting.doc).toMatch(/\.$/);
      expect(setting.shown.length).toBeGreaterThan(0);
      const value = setting.default();
      const text = typeof value === 'object' ? setting.shown : String(value);
      if (value !== null) expect(setting.parse(text)).toEqual(value);
    }
    const names = Object.values(SETTINGS).map((setting) => setting.env);
    expect(new Set(names).size).toBe(names.length);
  });

  test.each([
    [
      'store',
      'postgres://user:5ecret@db.example:5432/crawl?schema=a',
      'postgres://user@db.example:5432/crawl',
    ],
    ['store', 'postgres://:5ecret@db.example', 'postgres://db.example'],
    ['store', null, 'none'],
    ['dispatch', 'threads', 'threads'],
    [
      'dispatch',
      'threads=3,bullmq://:5ecret@redis.example:6379,lambda://fetch=4',
      'threads=3,redis://redis.example:6379,lambda://fetch=4',
    ],
    ['apiCallbackListen', '0.0.0.0:8700', '0.0.0.0:8700'],
    ['apiCallbackListen', null, 'none'],
  ] as const)('%s as %s is shown as %s', (name, text, shown) => {
    const { parse, show } = SETTINGS[name];
    expect((show as (value: unknown) => string)(text === null ? null : parse(text))).toBe(shown);
  });
});
