import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { loadSettings } from '../../../src/config/load.ts';
import { SeineError } from '../../../src/core/errors.ts';

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), 'seine-settings-'));
});
afterEach(() => rmSync(dir, { recursive: true }));

function write(name: string, text: string): string {
  const path = join(dir, name);
  writeFileSync(path, text);
  return path;
}

describe('a settings file', () => {
  test.each([
    ['seine.config.yaml', 'workers: 3\nblobs: s3://bucket/x\ns3PathStyle: true\n'],
    ['seine.config.yml', 'workers: "3"\nblobs: s3://bucket/x\ns3PathStyle: yes\n'],
    ['seine.config.json', '{"workers": 3, "blobs": "s3://bucket/x", "s3PathStyle": true}'],
  ])('%s in the working directory is read', async (name, text) => {
    const path = write(name, text);
    const { config, origins, places } = await loadSettings({}, {}, dir);
    expect(config).toMatchObject({ workers: 3, blobs: 's3://bucket/x', s3PathStyle: true, sync: 'normal' });
    expect(origins).toMatchObject({ workers: 'file', sync: 'default' });
    expect(places).toMatchObject({ workers: path, sync: 'default' });
  });

  test('loses against the environment, which loses against flags', async () => {
    write('seine.config.yaml', 'dir: /file\nworkers: 1\nlog: info\n');
    const env = { SEINE_DIR: '/env', SEINE_WORKERS: '2', SEINE_LOG: '' };
    const { config, places } = await loadSettings({ dir: '/flag' }, env, dir);
    expect(config).toMatchObject({ dir: '/flag', workers: 2, log: 'info' });
    expect(places).toMatchObject({ dir: '--dir', workers: 'SEINE_WORKERS' });
  });

  test('may be somewhere else, by option or variable; then the working directory does not matter', async () => {
    write('seine.config.yaml', 'workers: 1\nlog: info\n');
    const other = write('other.yaml', 'workers: 7\n');
    const third = write('third.json', '{"workers": 8}');
    expect((await loadSettings({}, { SEINE_CONFIG: other }, dir)).config).toMatchObject({
      workers: 7,
      log: 'warn',
      config: other,
    });
    const byFlag = await loadSettings({ config: third }, { SEINE_CONFIG: other }, dir);
    expect(byFlag.config.workers).toBe(8);
  });

  test('of comments only, or none at all, leaves the defaults', async () => {
    expect(new Set(Object.values((await loadSettings({}, {}, dir)).origins))).toEqual(new Set(['default']));
    write('seine.config.yaml', '# workers: 3\n');
    expect(new Set(Object.values((await loadSettings({}, {}, dir)).origins))).toEqual(new Set(['default']));
  });

  test.each(['/home/ann/jobs/chromium', 'system'])(
    'says no program to run, not even where it is named: %s',
    async (program) => {
      const path = write('seine.config.yaml', `browserPath: ${program}\n`);
      for (const flags of [{}, { config: path }]) {
        const refusal = await loadSettings(flags, {}, dir).catch((error) => error);
        expect(refusal).toBeInstanceOf(SeineError);
        expect(refusal.message).toMatch(/^browserPath cannot be set in a settings file/);
        expect(refusal.hint).toContain('SEINE_BROWSER');
      }
      expect(
        (await loadSettings({}, { SEINE_BROWSER: program, SEINE_CONFIG: write('e.yaml', '') }, dir)).config
          .browserPath,
      ).toBe(program);
    },
  );

  test('may say dispatch as a list', async () => {
    write('seine.config.yaml', 'dispatch:\n  - threads\n  - lambda://seine=4\n');
    const { config } = await loadSettings({}, {}, dir);
    expect(config.dispatch).toEqual([
      { kind: 'threads', weight: 1 },
      { kind: 'lambda', name: 'seine', weight: 4 },
    ]);
  });

  test.each([
    ['worker: 3', /unknown setting worker in .*seine.config.yaml; did you mean workers\?/],
    ['SEINE_DIR: x', /unknown setting SEINE_DIR/],
    ['config: other.yaml', /unknown setting config/],
    ['toString: x', /unknown setting toString/],
    ['dirFile: x', /unknown setting dirFile/],
    ['workers: 0', /invalid value for workers in .*seine.config.yaml: '0'/],
    ['store: http://user:hunter2@host', /invalid value for store in .*seine.config.yaml$/],
    ['workers: [1]', /workers in .* must be a string/],
    ['dispatch: [1]', /dispatch in .* must be a string/],
    ['dispatch: []', /dispatch in .* must be a string/],
    ['dir: null', /dir in .* must be a string/],
    ['- dir', /must contain names and values/],
    ['dir: a\ndir: b', /seine\.config\.yaml, line 2/],
    ['store: "postgres://a:hunter2@b\nworkers: [', /seine\.config\.yaml, line \d/],
    ['store: !secret postgres://a:hunter2@b', /seine\.config\.yaml, line 1/],
    ['storeFile: a\nstore: postgres://a/b', /store and storeFile in .* are both set/],
  ])('%j is refused in one sentence, with what to do', async (text, message) => {
    write('seine.config.yaml', text);
    const error = await loadSettings({}, {}, dir).catch((thrown) => thrown);
    expect(error).toBeInstanceOf(SeineError);
    expect(error.message).toMatch(message);
    expect(error.message).not.toMatch(/hunter2|\n/);
    expect(error.hint).not.toBe('');
  });

  test('that is named but not there, or there twice, is refused', async () => {
    await expect(loadSettings({ config: join(dir, 'none.yaml') }, {}, dir)).rejects.toThrow(
      /cannot read the settings file .*none.yaml \(ENOENT\)/,
    );
    write('seine.config.yaml', 'workers: 1');
    write('seine.config.json', '{');
    await expect(loadSettings({}, {}, dir)).rejects.toThrow(/two settings files/);
    rmSync(join(dir, 'seine.config.yaml'));
    await expect(loadSettings({}, {}, dir)).rejects.toThrow(
      /cannot parse the settings file .*seine.config.json/,
    );
  });
});

describe('a secret setting', () => {
  const STORE = 'postgres://user:hunter2@host/db';

  test('may be in a file that a variable or the settings file names', async () => {
    const path = write('store', `${STORE}\n`);
    const dispatch = write('dispatch', 'bullmq://:hunter2@cache\n');
    const byVariable = await loadSettings({}, { SEINE_STORE_FILE: path, SEINE_DISPATCH_FILE: dispatch }, dir);
    expect(byVariable.config.store).toBe(STORE);
    expect(byVariable.config.dispatch).toEqual([
      { kind: 'bullmq', url: 'redis://:hunter2@cache', weight: 1 },
    ]);
    expect(byVariable.places).toMatchObject({ store: 'SEINE_STORE_FILE', dispatch: 'SEINE_DISPATCH_FILE' });
    write('seine.config.yaml', `storeFile: ${path}\n`);
    expect((await loadSettings({}, {}, dir)).config.store).toBe(STORE);
    const other = { SEINE_STORE: 'postgres://other/db' };
    expect((await loadSettings({}, other, dir)).config.store).toBe('postgres://other/db');
  });

  test.each([
    [
      { SEINE_STORE_FILE: '/nowhere/store' },
      /cannot read \/nowhere\/store, which SEINE_STORE_FILE names \(ENOENT\)/,
    ],
    [{ SEINE_STORE_FILE: '/dev/null' }, /\/dev\/null, which SEINE_STORE_FILE names, is empty/],
    [{ SEINE_STORE_FILE: '/x', SEINE_STORE: STORE }, /SEINE_STORE and SEINE_STORE_FILE are both set/],
    [{ SEINE_DISPATCH: 'bullmq://:hunter2@' }, /invalid value for SEINE_DISPATCH$/],
  ])('%j is refused without showing it', async (env, message) => {
    const error = await loadSettings({}, env, dir).catch((thrown) => thrown);
    expect(error).toBeInstanceOf(SeineError);
    expect(error.message).toMatch(message);
    expect(error.message).not.toContain('hunter2');
  });

  test('only secrets have such a variable', async () => {
    const path = write('dir', '/elsewhere');
    expect((await loadSettings({}, { SEINE_DIR_FILE: path }, dir)).config.dir).toBe('.seine');
  });
});
