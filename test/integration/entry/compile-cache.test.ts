import { spawnSync } from 'node:child_process';
import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync, statSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import { isPrivateFolder } from '../../../src/entry/compile-cache.ts';
import { temporaryFolder } from '../../support/seine-process.ts';

/** Compiled code is kept beside what all users of the machine can write to, and run at the next start. */

const folder = temporaryFolder();
const at = (name: string) => join(folder.path, name);
const user = process.getuid!();
afterAll(() => folder.remove());

test('it is kept in a folder of this user alone, and not where Node would keep it', () => {
  mkdirSync(at('tmp'));
  const env: NodeJS.ProcessEnv = { ...process.env, TMPDIR: at('tmp') };
  delete env.NODE_COMPILE_CACHE;
  const bin = join(import.meta.dirname, '../../../bin/seine.js');
  const { status } = spawnSync(process.execPath, [bin, '--version'], { env });
  expect(status).toBe(0);
  const name = `seine-compile-cache-${user}`;
  expect(readdirSync(at('tmp'))).toEqual([name]);
  expect(statSync(join(at('tmp'), name)).mode & 0o777).toBe(0o700);
});

test('a folder that others can write to, a link, and one of another user are not used', () => {
  expect(isPrivateFolder(at('new'), user)).toBe(true);
  expect(isPrivateFolder(at('new'), user)).toBe(true);
  chmodSync(at('new'), 0o777);
  expect(isPrivateFolder(at('new'), user)).toBe(false);
  mkdirSync(at('own'), { mode: 0o700 });
  symlinkSync(at('own'), at('link'));
  expect(isPrivateFolder(at('link'), user)).toBe(false);
  expect(isPrivateFolder(at('own'), user + 1)).toBe(false);
  // Only root may give a folder away.
  if (user === 0) chownSync(at('own'), 65_534, 65_534);
  expect(isPrivateFolder(at('own'), user)).toBe(user !== 0);
  expect(isPrivateFolder(at('none/below'), user)).toBe(false);
  expect(existsSync(at('none'))).toBe(false);
});
