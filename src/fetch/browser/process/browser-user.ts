import { execFile } from 'node:child_process';
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

/** Null: the user of this process, as another one could not start it. */
export async function findBrowserUser({ path }: Pick<Chromium, 'path'>): Promise<number | null> {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return null;
  try {
    // Fails where this root may not become another, and where the files are for root alone.
    await promisify(execFile)('sh', ['-c', 'test -x "$0" && test -x "$1"', path, tmpdir()], {
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
