import { execFile } from 'node:child_process';
import { lstat, mkdir, mkdtemp, readdir, rename, rm, stat, utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { SeineError } from '../../../core/errors.ts';
import { findChromiumPackage } from './chromium-package.ts';
import type { Chromium } from './find-chromium.ts';
import { siblingFile } from './sibling-file.ts';

const run = promisify(execFile);

/** It takes two seconds; a slow machine may need a minute. */
const UNPACK_MS = 120_000;
const LOOK_MS = 100;
/** Whoever unpacks says so this often. */
const BEAT_MS = 1_000;
/** A lock that is older was left by a process that is dead. */
const SILENCE_MS = 10_000;

/** Beside the bundled worker in an image: there it is unpacked when the image is built. */
export const IMAGE_FOLDER = 'chromium';

/** The Chromium of the npm package `@sparticuz/chromium`, from the image of a function or unpacked. */
export async function unpackChromium(): Promise<Chromium> {
  const inImage = fileURLToPath(new URL(`./${IMAGE_FOLDER}`, import.meta.url));
  if (await isThere(join(inImage, 'chromium'))) return chromiumIn(inImage);
  return chromiumIn((await unpackChromiumPackage()).folder);
}

/**
 * Unpacks it once for all workers of this user into a folder named by its version: 207 MB. It is unpacked beside and then
 * moved, so no process sees half of it, and what a killed process left is removed.
 */
export async function unpackChromiumPackage(): Promise<{ name: string; version: string; folder: string }> {
  const found = findChromiumPackage();
  if (!found)
    throw new SeineError('Seine has fetched no Chromium yet', { hint: 'run `seine browser install`' });
  const { version } = found;
  const user = process.getuid?.() ?? 0;
  const prefix = `seine-chromium-${user}-`;
  const folder = join(tmpdir(), `${prefix}${version}`);
  if (!(await isOurs(folder))) {
    const lock = `${folder}.lock`;
    if (await takeLock(lock, folder)) {
      const beats = setInterval(() => void touch(lock), BEAT_MS).unref();
      try {
        await removeOld(prefix, folder);
        if (!(await isOurs(folder))) await unpackInto(folder, found.dir);
      } finally {
        clearInterval(beats);
        await rm(lock, { recursive: true, force: true });
      }
    }
  }
  await openToOthers(folder);
  return { name: '@sparticuz/chromium', version, folder };
}

/**
 * Root starts it as a user that may do nothing else, so others may read it: it is the same for everyone. The folder comes
 * last, so that one which is open is so to its last file.
 */
async function openToOthers(folder: string): Promise<void> {
  if (process.getuid?.() !== 0 || ((await stat(folder)).mode & 0o005) === 0o005) return;
  await run('sh', ['-c', 'chmod -R a+rX "$0"/* && chmod a+rx "$0"', folder]);
}

/** A folder of that name that belongs to another user could hold another browser, which we would run. */
async function isOurs(folder: string): Promise<boolean> {
  let found: Awaited<ReturnType<typeof lstat>>;
  try {
    // A link would lead to another folder once it was looked at.
    found = await lstat(folder);
  } catch {
    return false;
  }
  const isPrivate = (found.mode & 0o022) === 0 && found.uid === (process.getuid?.() ?? found.uid);
  if (!found.isDirectory() || !isPrivate)
    throw new SeineError(`the folder ${folder} is not private to this user, so its browser is not used`, {
      hint: 'remove it, or set SEINE_BROWSER to another Chromium',
    });
  return true;
}

/** False when another process has unpacked it meanwhile. */
async function takeLock(lock: string, folder: string): Promise<boolean> {
  while (true) {
    try {
      await mkdir(lock);
      return true;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    }
    if (await isOurs(folder)) return false;
    if ((await ageMs(lock)) > SILENCE_MS) await rm(lock, { recursive: true, force: true });
    await sleep(LOOK_MS);
  }
}

async function touch(path: string): Promise<void> {
  const now = new Date();
  await utimes(path, now, now).catch(() => {});
}

async function ageMs(path: string): Promise<number> {
  try {
    return Date.now() - (await stat(path)).mtimeMs;
  } catch {
    return 0;
  }
}

/** Other versions, and what was never finished. A browser that still runs keeps its files until it ends. */
async function removeOld(prefix: string, folder: string): Promise<void> {
  for (const name of await readdir(tmpdir())) {
    const path = join(tmpdir(), name);
    if (!name.startsWith(prefix) || path === folder || name.endsWith('.lock')) continue;
    // What another user made could turn into a link to something else while it is removed.
    const owner = (await lstat(path).catch(() => null))?.uid;
    if (owner === process.getuid?.()) await rm(path, { recursive: true, force: true });
  }
}

/** In a process of its own, as the package unpacks to where TMPDIR says, and only there. */
async function unpackInto(folder: string, packageDir: string): Promise<void> {
  const beside = await mkdtemp(`${folder}-unpacking-`);
  try {
    const script = fileURLToPath(siblingFile('unpack-main'));
    await run('env', [`TMPDIR=${beside}`, process.execPath, '--no-warnings', script, packageDir], {
      timeout: UNPACK_MS,
    });
    await openToOthers(beside);
    await rename(beside, folder);
  } catch (cause) {
    await rm(beside, { recursive: true, force: true });
    // Somebody whose lock was taken for a dead one's may have been faster.
    if (await isOurs(folder)) return;
    throw new SeineError('cannot unpack the Chromium of @sparticuz/chromium', {
      hint: `it needs 210 MB in ${tmpdir()}`,
      cause,
    });
  }
}

/** The package has those libraries with it that a bare system lacks; they are used only there. */
async function chromiumIn(folder: string): Promise<Chromium> {
  const path = join(folder, 'chromium');
  const needed = await run('ldd', [path]).then(
    ({ stdout }) => stdout.includes('not found'),
    () => true,
  );
  const environment = {
    ...((await isThere('/etc/fonts/fonts.conf')) ? {} : { FONTCONFIG_PATH: join(folder, 'fonts') }),
    ...(needed ? { LD_LIBRARY_PATH: join(folder, 'al2023', 'lib') } : {}),
  };
  return { path, from: 'bundled', environment };
}

async function isThere(path: string): Promise<boolean> {
  try {
    await stat(path);
    return true;
  } catch {
    return false;
  }
}
