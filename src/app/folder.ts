import { randomUUID } from 'node:crypto';
import { accessSync, constants, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { S3Settings } from '../aws/s3/s3-client.ts';
import { messageOf, SeineError } from '../core/errors.ts';
import { PRIVATE_FILE, PRIVATE_FOLDER } from '../core/file-modes.ts';
import { makeFolder } from '../machine/make-folder.ts';
import type { Logger } from '../ports/ambient.ts';
import type { Blobs } from '../ports/blobs.ts';
import type { ReadStore } from '../ports/store/read-store.ts';
import type { Store } from '../ports/store.ts';
import { type FolderLock, isFolderLocked, lockFolder } from '../store/sqlite/connection/folder-lock.ts';
import { openReads } from '../store/sqlite/reads/open-reads.ts';
import { openSqliteStore } from '../store/sqlite/sqlite-store.ts';
import { openBlobs } from './open-blobs.ts';

/** Where the state is when it is not in the folder. */
export interface RemoteStore {
  url: string;
  passwordFile: string | null;
  connections: number | null;
}

interface FolderSettings {
  dir: string;
  sync: 'normal' | 'full';
  blobs?: string | null;
  s3?: S3Settings;
  store?: RemoteStore | null;
  logger?: Logger;
}

/** The folder's store and blobs, without the right to run jobs. */
export interface Folder {
  dir: string;
  store: Store;
  blobs: Blobs;
  /** Where the blobs are: a path or URL, the folder itself by default. */
  blobsPlace: string;
  /** The state is in a database of its own, not in the folder. */
  isRemote: boolean;
  /** The right to run jobs. With a remote store others in this folder may have it, too, unless it is asked for `alone`. */
  lock(options?: { alone: boolean }): FolderLock;
  /** No other process works in the folder once it is locked. */
  isOwned(): boolean;
  /** Whether a coordinator works on the job. */
  isAtWork(jobId: number): Promise<boolean>;
  close(): Promise<void>;
}

const DATABASE_FILE = 'seine.db';

export async function openFolder(
  settings: FolderSettings,
  options: { create: boolean; toWork?: boolean },
): Promise<Folder> {
  const dir = resolve(settings.dir);
  const path = join(dir, DATABASE_FILE);
  const remote = settings.store ?? null;
  if (!options.create && !remote && !existsSync(path)) {
    throw new SeineError(`no Seine folder at ${dir}`, {
      hint: 'start a job with `seine run`, or choose the folder with --dir',
    });
  }
  try {
    makeFolder(dir, { mode: PRIVATE_FOLDER });
    accessSync(dir, constants.W_OK);
  } catch (error) {
    throw new SeineError(`cannot write to the folder ${dir}: ${messageOf(error)}`, {
      hint: 'choose another folder with --dir',
      cause: error,
    });
  }
  const blobsPlace = settings.blobs ?? dir;
  const blobs = await openBlobs(blobsPlace, settings.s3 ? { s3: settings.s3 } : {});
  const shared = { dir, blobs, blobsPlace, isRemote: remote !== null };
  if (remote) return { ...shared, ...(await openRemote(dir, remote, settings, options, blobs)) };
  const { toWork = false } = options;
  const isGuest = !toWork && isFolderLocked(dir);
  const store = openSqliteStore(path, { sync: settings.sync, checkpointThread: toWork, isGuest });
  return {
    ...shared,
    store,
    lock: () => lockFolder(dir),
    isOwned: () => true,
    isAtWork: async () => isFolderLocked(dir),
    async close() {
      await blobs.close();
      await store.close();
    },
  };
}

/** What a folder or database has, for a thread that only reads. Another thread of this process has it open. */
export async function openReadStore(
  { dir, store }: Pick<FolderSettings, 'dir' | 'store'>,
  logger: Logger,
): Promise<ReadStore> {
  if (!store) return openReads(join(resolve(dir), DATABASE_FILE));
  const { openPostgresReads } = await import('../store/postgres/postgres-store.ts');
  return openPostgresReads(store.url, { passwordFile: store.passwordFile, logger });
}

/** The lock of the folder only says that whoever worked here before is gone: without it the work is done all the same. */
async function openRemote(
  dir: string,
  remote: RemoteStore,
  { logger }: FolderSettings,
  { toWork }: { toWork?: boolean },
  blobs: Blobs,
): Promise<Omit<Folder, 'dir' | 'blobs' | 'blobsPlace' | 'isRemote'>> {
  const locked = toWork ? tryLock(dir) : null;
  const lock = locked instanceof SeineError ? null : locked;
  try {
    const { openPostgresStore } = await import('../store/postgres/postgres-store.ts');
    const { url, ...rest } = remote;
    const place = lock ? idOf(dir) : null;
    const store = await openPostgresStore(url, { ...rest, place, ...(logger ? { logger } : {}) });
    return {
      store,
      lock({ alone } = { alone: false }) {
        if (alone && locked instanceof SeineError) throw locked;
        return { release() {} };
      },
      isOwned: () => lock !== null,
      isAtWork: async (jobId) => (await store.jobs.atWork(jobId)) > 0,
      async close() {
        await blobs.close();
        await store.close();
        lock?.release();
      },
    };
  } catch (error) {
    lock?.release();
    throw error;
  }
}

function tryLock(dir: string): FolderLock | SeineError {
  try {
    return lockFolder(dir);
  } catch (error) {
    if (error instanceof SeineError && error.exit === 'locked') return error;
    throw error;
  }
}

/** Names the folder among all that share a database. */
function idOf(dir: string): string {
  const path = join(dir, 'coordinator-id');
  if (!existsSync(path)) writeFileSync(path, randomUUID(), { mode: PRIVATE_FILE });
  return readFileSync(path, 'utf8').trim();
}
