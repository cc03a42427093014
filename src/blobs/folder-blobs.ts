import type { Dir } from 'node:fs';
import { open, opendir, rename, stat, unlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { threadId } from 'node:worker_threads';
import { messageOf, SeineError, StorageFullError } from '../core/errors.ts';
import { PRIVATE_FILE, PRIVATE_FOLDER } from '../core/file-modes.ts';
import { makeFolder } from '../machine/make-folder.ts';
import type { BlobEntry, Blobs, BlobWriter } from '../ports/blobs.ts';
import { checkKey, checkPrefix, TEMPORARY_AGE_MS_MAX } from './blob-key.ts';
import { CHOOSE, codeOf, explained, ignoreAbsent, orExplain } from './file-errors.ts';
import { FileWriter } from './file-writer.ts';
import { isFile, putSmallFile, readSmallRange } from './small-file.ts';

/** Files up to this size are written within one call: about 0.1 ms, and no more than reading as much from a socket. */
export const FILE_AT_ONCE_BYTES_MAX = 256 * 1024;

/**
 * Blobs as files below a folder. A blob is written to `.tmp` beside the others, so in the same file
 * system, and renamed when it is whole. Writers of a process that died leave files only in `.tmp`.
 */

const TEMPORARY = '.tmp';
let temporaryFiles = 0;

function temporaryPath(dir: string): string {
  return join(dir, TEMPORARY, `${process.pid}-${threadId}-${Date.now()}-${temporaryFiles++}`);
}

interface FolderBlobsOptions {
  /**
   * Wait for the disk before a blob becomes visible. Off by default: the page cache outlives the
   * process, so only a power failure can lose what was committed.
   */
  sync?: boolean;
}

export async function openFolderBlobs(dir: string, options: FolderBlobsOptions = {}): Promise<Blobs> {
  makePrivateFolder(dir, dir);
  const inFolder = folderMaker(dir);
  const pace = new DiskPace();
  const readPace = new DiskPace();

  const write = async (key: string): Promise<BlobWriter> => {
    checkKey(key);
    const path = temporaryPath(dir);
    const handle = await orExplain(
      inFolder(path, () => open(path, 'wx', PRIVATE_FILE)),
      dir,
    );
    const publish = (as = key) => {
      const target = join(dir, as);
      return inFolder(target, () => rename(path, target));
    };
    return new FileWriter({ handle, path, dir, sync: options.sync ?? false, publish });
  };

  return {
    write,
    async put(key, bytes) {
      if (!options.sync && bytes.length <= FILE_AT_ONCE_BYTES_MAX && pace.isQuick()) {
        const startedAt = performance.now();
        putSmallFile(temporaryPath(dir), join(dir, checkKey(key)), bytes, dir);
        pace.note(performance.now() - startedAt);
        return;
      }
      const writer = await write(key);
      try {
        await writer.append(bytes);
        await writer.commit();
      } catch (error) {
        await writer.abort();
        throw error;
      }
    },
    has: async (key) => isFile(join(dir, checkKey(key))),
    async read(key, range) {
      const path = join(dir, checkKey(key));
      const isSmall = range && range.length <= FILE_AT_ONCE_BYTES_MAX && isRange(range);
      if (!isSmall || !readPace.isQuick()) return readRange(path, range);
      const startedAt = performance.now();
      const bytes = readSmallRange(path, range);
      readPace.note(performance.now() - startedAt);
      return bytes;
    },
    async delete(key) {
      await orExplain(unlink(join(dir, checkKey(key))).catch(ignoreAbsent), dir);
    },
    list: (prefix) => list(dir, checkPrefix(prefix), prefix.slice(0, prefix.lastIndexOf('/') + 1)),
    locate: (key) => join(dir, checkKey(key)),
    close: async () => {},
  };
}

/**
 * Removes what dead writers left behind and says how many files that were. Only the coordinator calls
 * this, holding the folder's lock, before it starts workers: the one living process is then this one,
 * and files of it are younger than it is. The pid alone would not do, as in a container it is always the same.
 */
export async function sweepTemporary(dir: string): Promise<number> {
  const startedAt = Date.now() - process.uptime() * 1_000;
  return sweep(dir, async (name, modifiedAt) => {
    if (!name.startsWith(`${process.pid}-`)) return true;
    return (await modifiedAt()) < startedAt;
  });
}

/** For a folder that others may be writing to at this moment: takes only what has not been touched for a day. */
export async function sweepAbandoned(dir: string): Promise<number> {
  const before = Date.now() - TEMPORARY_AGE_MS_MAX;
  return sweep(dir, async (_, modifiedAt) => (await modifiedAt()) < before);
}

async function sweep(
  dir: string,
  isLeft: (name: string, modifiedAt: () => Promise<number>) => Promise<boolean>,
): Promise<number> {
  const folder = await openFolder(join(dir, TEMPORARY));
  if (!folder) return 0;
  let removed = 0;
  for await (const { name } of folder) {
    const path = join(dir, TEMPORARY, name);
    // What is gone meanwhile is not left.
    const modifiedAt = async () =>
      (await stat(path).catch(ignoreAbsent))?.mtimeMs ?? Number.POSITIVE_INFINITY;
    if (!(await isLeft(name, modifiedAt))) continue;
    await orExplain(unlink(path).catch(ignoreAbsent), dir);
    removed++;
  }
  return removed;
}

/** Finds out whether blobs can be written, before any is. Where only space is missing, the run waits for it later. */
export async function checkFolder(dir: string): Promise<void> {
  const path = temporaryPath(dir);
  makePrivateFolder(dirname(path), dir);
  try {
    await (await open(path, 'wx', PRIVATE_FILE)).close();
    await unlink(path);
  } catch (error) {
    const reason = explained(error, dir);
    if (!(reason instanceof StorageFullError)) throw unusable(dir, reason);
  }
}

function makePrivateFolder(path: string, dir: string): void {
  try {
    makeFolder(path, { mode: PRIVATE_FOLDER, top: dir });
  } catch (error) {
    throw unusable(dir, explained(error, dir));
  }
}

/** Of what the system says, some has a sentence of its own. */
function unusable(dir: string, reason: unknown): unknown {
  if (reason instanceof SeineError) return reason;
  return new SeineError(`cannot write to the folder ${dir}: ${messageOf(reason)}`, {
    hint: CHOOSE,
    cause: reason,
  });
}

/** Does something with the folder of a path in place; remembers folders, so that mkdir is not called per blob. */
function folderMaker(dir: string) {
  const known = new Set<string>();
  return async <T>(path: string, action: () => Promise<T>): Promise<T> => {
    const folder = dirname(path);
    if (known.has(folder)) {
      try {
        return await action();
      } catch (error) {
        // Somebody removed the folder meanwhile: make it again.
        if (codeOf(error) !== 'ENOENT') throw error;
      }
    }
    makeFolder(folder, { mode: PRIVATE_FOLDER, top: dir });
    known.add(folder);
    return action();
  };
}

function isRange({ offset, length }: { offset: number; length: number }): boolean {
  return offset >= 0 && length >= 0;
}

async function readRange(path: string, range?: { offset: number; length: number }): Promise<Buffer | null> {
  if (range && !isRange(range)) throw new RangeError('a range begins at 0 or later');
  const handle = await orExplain(open(path, 'r').catch(ignoreAbsent), path);
  if (!handle) return null;
  try {
    const found = await handle.stat();
    if (!found.isFile()) return null;
    const offset = Math.min(range?.offset ?? 0, found.size);
    const bytes = Buffer.allocUnsafe(Math.min(range?.length ?? found.size, found.size - offset));
    let done = 0;
    while (done < bytes.length) {
      const { bytesRead } = await handle.read(bytes, done, bytes.length - done, offset + done);
      if (bytesRead === 0) break;
      done += bytesRead;
    }
    return bytes.subarray(0, done);
  } finally {
    await handle.close();
  }
}

/** Goes down folder by folder, lazily: memory grows with the depth, not with the blobs. */
async function* list(dir: string, prefix: string, below: string): AsyncGenerator<BlobEntry> {
  const folder = await openFolder(join(dir, below));
  if (!folder) return;
  for await (const entry of folder) {
    if (entry.name.startsWith('.')) continue;
    const key = below + entry.name;
    if (entry.isDirectory()) {
      const inner = `${key}/`;
      if (inner.startsWith(prefix) || prefix.startsWith(inner)) yield* list(dir, prefix, inner);
    } else if (key.startsWith(prefix)) {
      const found = await stat(join(dir, key)).catch(ignoreAbsent);
      if (found) yield { key, bytes: found.size, modifiedAt: found.mtimeMs };
    }
  }
}

async function openFolder(path: string): Promise<Dir | undefined> {
  return orExplain(opendir(path, { bufferSize: 256 }).catch(ignoreAbsent), path);
}

/**
 * A file takes 0.1 ms. Where the disk makes callers wait, they wait better in the thread pool: on a machine whose disk
 * others kept busy, 3,000 pictures took 16 to 33 s instead of 21 to 49 s.
 */
const SLOW_MS = 2;
const WEIGHT = 0.1;
/** Of files written beside, so many are in between two looks at how the disk is now. */
const LOOK_EVERY = 32;

/** Whether files of one folder are to be written or read within a call, by how long the last ones took. */
export class DiskPace {
  #meanMs = 0;
  #beside = 0;

  /** Asked once for each file. */
  isQuick(): boolean {
    if (this.#meanMs < SLOW_MS) return true;
    this.#beside = (this.#beside + 1) % LOOK_EVERY;
    return this.#beside === 0;
  }

  note(ms: number): void {
    this.#meanMs += (ms - this.#meanMs) * WEIGHT;
  }
}
