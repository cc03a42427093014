import { accessSync, constants, existsSync, mkdirSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { openFolderBlobs } from './blobs/folder-blobs.ts';
import { messageOf, SeineError } from './core/errors.ts';
import type { Blobs } from './ports/blobs.ts';
import type { Store } from './ports/store.ts';
import { openSqliteStore } from './store/sqlite/sqlite-store.ts';

/** The folder's store and blobs, without the right to run jobs. */
export interface Folder {
  dir: string;
  store: Store;
  blobs: Blobs;
  close(): Promise<void>;
}

/** One step at a time: Node's own recursion never ends below /proc. */
function makeFolder(dir: string): void {
  if (existsSync(dir)) return;
  const parent = dirname(dir);
  if (parent !== dir) makeFolder(parent);
  mkdirSync(dir);
}

export async function openFolder(
  settings: { dir: string; sync: 'normal' | 'full' },
  options: { create: boolean; toWork?: boolean },
): Promise<Folder> {
  const dir = resolve(settings.dir);
  const path = join(dir, 'seine.db');
  if (!options.create && !existsSync(path)) {
    throw new SeineError(`there is no Seine folder at ${dir}`, {
      hint: 'start a job with `seine run`, or give --dir',
    });
  }
  try {
    makeFolder(dir);
    accessSync(dir, constants.W_OK);
  } catch (error) {
    throw new SeineError(`the folder ${dir} cannot be written: ${messageOf(error)}`, {
      hint: 'choose another with --dir',
      cause: error,
    });
  }
  const store = openSqliteStore(path, { sync: settings.sync, checkpointThread: options.toWork ?? false });
  const blobs = await openFolderBlobs(dir);
  return {
    dir,
    store,
    blobs,
    async close() {
      await blobs.close();
      await store.close();
    },
  };
}
