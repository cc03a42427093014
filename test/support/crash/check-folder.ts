import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { openFolderBlobs } from '../../../src/blobs/folder-blobs.ts';
import { balance } from '../../../src/core/model.ts';
import type { Blobs } from '../../../src/ports/blobs.ts';
import type { Store } from '../../../src/ports/store.ts';
import { openSqliteStore } from '../../../src/store/sqlite/sqlite-store.ts';
import { readPage } from '../../../src/worker/storage/read-page.ts';

interface FolderFacts {
  accepted: number;
  finished: number;
  doneUrls: Set<string>;
  pagesRead: number;
  /** Done tasks without their page. */
  unreadable: string[];
}

/**
 * Opens a folder as a crash left it and checks what must hold at every instant: the database is
 * sound, the counters balance and equal a recount, no URL is there twice, and done pages can be read.
 * `readEvery`: check the page of each n-th done task against its hash.
 */
export async function checkFolder(
  dir: string,
  jobName: string,
  readEvery: number,
  /** When the pages are not in the folder; closed at the end. */
  elsewhere?: Blobs,
): Promise<FolderFacts> {
  const raw = new DatabaseSync(join(dir, 'seine.db'));
  const integrity = raw.prepare('PRAGMA quick_check').get() as { quick_check: string };
  const doubled = raw.prepare('SELECT url FROM tasks GROUP BY job_id, url HAVING count(*) > 1 LIMIT 1').get();
  raw.close();
  if (integrity.quick_check !== 'ok') throw new Error(`the database is broken: ${integrity.quick_check}`);
  if (doubled) throw new Error(`a URL is there twice: ${JSON.stringify(doubled)}`);

  const store = openSqliteStore(join(dir, 'seine.db'));
  const blobs = elsewhere ?? (await openFolderBlobs(dir));
  try {
    return await checkJob(store, blobs, jobName, readEvery);
  } finally {
    await blobs.close();
    await store.close();
  }
}

/** The same for the job alone, wherever it is kept. */
export async function checkJob(
  store: Store,
  blobs: Blobs,
  jobName: string,
  readEvery: number,
): Promise<FolderFacts> {
  const job = await store.jobs.find(jobName);
  if (!job) throw new Error(`no job ${jobName}`);
  const counters = await store.jobs.counters(job.id);
  if (balance(counters) !== 0) throw new Error(`the counters do not balance: ${JSON.stringify(counters)}`);
  const recount: Record<string, number> = {
    pending: 0,
    leased: 0,
    done: 0,
    unchanged: 0,
    skipped: 0,
    dead: 0,
  };
  const doneUrls = new Set<string>();
  let pagesRead = 0;
  const unreadable: string[] = [];
  for await (const task of store.views.tasks(job.id)) {
    recount[task.state]!++;
    if (task.state !== 'done') continue;
    doneUrls.add(task.url);
    if (doneUrls.size % readEvery !== 0) continue;
    const page = task.archive && (await readPage(blobs, task.archive).catch(() => null));
    if (page?.url !== task.url || page.body.length !== task.bytes) {
      unreadable.push(task.url);
      continue;
    }
    pagesRead++;
  }
  for (const [state, count] of Object.entries(recount)) {
    const kept = counters[state as keyof typeof counters];
    if (kept !== count) throw new Error(`${state} is counted as ${kept}, there are ${count}`);
  }
  const { done, unchanged, skipped, dead, accepted } = counters;
  return { accepted, finished: done + unchanged + skipped + dead, doneUrls, pagesRead, unreadable };
}
