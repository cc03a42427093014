import { execFile } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { tmpdir } from 'node:os';
import { promisify } from 'node:util';
import type { Chromium } from './find-chromium.ts';

/**
 * Who Chromium runs as. A page that takes over its browser can read what that user can read: the environment and the
 * memory of the worker, its files, its keys. Root can start it as a user that owns nothing; anyone else can only be who
 * they are.
 */

/**
 * Belongs to no one: Debian gives no user this number, and systemd leaves the range from 60578 to 61183 free. Below 65536,
 * since containers often know no more.
 */
const BROWSER_USER = 60_999;

/**
 * Chromium makes a socket below its folder and does not start where the path of that is too long: 107 bytes, of which
 * 72 are its own and those of the folders in between.
 */
const TMPDIR_BYTES_MAX = 35;
const SHORT_TMPDIR = '/tmp';

/** Where folders of browsers are made: as TMPDIR says, unless that is too long. */
export function browserTmpdir(): string {
  const usual = tmpdir();
  if (Buffer.byteLength(usual) <= TMPDIR_BYTES_MAX) return usual;
  try {
    accessSync(SHORT_TMPDIR, constants.W_OK | constants.X_OK);
    return SHORT_TMPDIR;
  } catch {
    return usual;
  }
}

/** Null: the user of this process, as another one could not start it. */
export async function findBrowserUser({ path }: Pick<Chromium, 'path'>): Promise<number | null> {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return null;
  try {
    // Fails where this root may not become another, and where the files are for root alone.
    await promisify(execFile)('sh', ['-c', 'test -x "$0" && test -x "$1"', path, browserTmpdir()], {
      uid: BROWSER_USER,
      gid: BROWSER_USER,
      cwd: '/',
      env: { PATH: '/usr/bin:/bin' },
    });
    return BROWSER_USER;
  } catch {
    return null;
  }
}
