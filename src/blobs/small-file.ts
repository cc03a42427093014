import {
  closeSync,
  constants,
  fstatSync,
  openSync,
  readSync,
  renameSync,
  statSync,
  unlinkSync,
  writeSync,
} from 'node:fs';
import { dirname } from 'node:path';
import { PRIVATE_FILE, PRIVATE_FOLDER } from '../core/file-modes.ts';
import { makeFolder } from '../machine/make-folder.ts';
import { codeOf, explained, isAbsent } from './file-errors.ts';

/**
 * Small files are written without the thread pool: into the page cache that takes 80 µs for 80 KB, while each of the
 * four calls costs as much again when it is handed over and back. Larger ones would hold up the event loop.
 */
export function putSmallFile(path: string, target: string, bytes: Uint8Array, dir: string): void {
  try {
    const file = inFolder(path, dir, () => openSync(path, 'wx', PRIVATE_FILE));
    try {
      for (let done = 0; done < bytes.length; )
        done += writeSync(file, bytes, done, bytes.length - done, done);
    } finally {
      closeSync(file);
    }
    inFolder(target, dir, () => renameSync(path, target));
  } catch (error) {
    discard(path);
    throw explained(error, dir);
  }
}

/** The same for a part of a file, which is most often one that was written a moment ago. Null when there is no such file. */
export function readSmallRange(
  path: string,
  { offset, length }: { offset: number; length: number },
): Buffer | null {
  try {
    // Of something that is no file, it must not be waited for.
    const file = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
    try {
      if (!fstatSync(file).isFile()) return null;
      const bytes = Buffer.allocUnsafe(length);
      let done = 0;
      for (let count = 1; count > 0 && done < length; done += count)
        count = readSync(file, bytes, done, length - done, offset + done);
      return bytes.subarray(0, done);
    } finally {
      closeSync(file);
    }
  } catch (error) {
    if (isAbsent(error)) return null;
    throw explained(error, path);
  }
}

export function isFile(path: string): boolean {
  try {
    return statSync(path, { throwIfNoEntry: false })?.isFile() ?? false;
  } catch (error) {
    if (codeOf(error) === 'ENOTDIR') return false;
    throw explained(error, path);
  }
}

/** Folders are few and there almost always, so they are made when they turn out to be missing. */
function inFolder<T>(path: string, dir: string, action: () => T): T {
  try {
    return action();
  } catch (error) {
    if (codeOf(error) !== 'ENOENT') throw error;
    makeFolder(dirname(path), { mode: PRIVATE_FOLDER, top: dir });
    return action();
  }
}

function discard(path: string): void {
  try {
    unlinkSync(path);
  } catch {
    // It was never made, or the sweep of the next start takes it.
  }
}
