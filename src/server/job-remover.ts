import { setImmediate } from 'node:timers/promises';
import { messageOf } from '../core/errors.ts';
import type { JobSpec } from '../core/job-schema/job.ts';
import type { Logger } from '../ports/ambient.ts';
import type { Blobs } from '../ports/blobs.ts';
import type { RemovedJob } from '../ports/store/job-removals.ts';
import type { Store } from '../ports/store.ts';

/** Numbers that one step looks at: some milliseconds of the store. */
const STEP_NUMBERS = 2_000;
/** Names of media that are compared with those of other jobs at once: some 10 MB. */
const KEYS_AT_ONCE = 50_000;
const JOBS_AT_ONCE = 100;

interface RemoverOptions {
  store: Pick<Store, 'jobs' | 'removals'>;
  blobs: Blobs;
  logger: Logger;
}

/**
 * Deletes jobs that were marked, one after the other, blobs before the rows that name them: a crash at any moment leaves a job
 * that is marked, and is gone on with. Media and pictures are stored once for all jobs, so those that others refer to stay.
 */
export class JobRemover {
  readonly #options: RemoverOptions;
  #work: Promise<void> | null = null;
  #isClosing = false;

  constructor(options: RemoverOptions) {
    this.#options = options;
  }

  /** Looks for jobs to be deleted, unless it is at work already. */
  look(): void {
    if (this.#isClosing) return;
    this.#work ??= this.#removeAll().finally(() => {
      this.#work = null;
    });
  }

  async close(): Promise<void> {
    this.#isClosing = true;
    await this.#work;
  }

  async #removeAll(): Promise<void> {
    const { store, logger } = this.#options;
    try {
      for (const job of await store.removals.list(JOBS_AT_ONCE))
        if (!this.#isClosing) await this.#remove(job);
    } catch (error) {
      logger.error(`a job is not deleted yet, which is tried again: ${messageOf(error)}`);
    }
  }

  async #remove(job: RemovedJob): Promise<void> {
    const { blobs, store } = this.#options;
    for (const folder of ['warc', 'shards', 'sheets'])
      for await (const { key } of blobs.list(`${folder}/${job.name}-${job.run}/`)) {
        if (this.#isClosing) return;
        await blobs.delete(key);
      }
    if (!(await this.#removeShared(job))) return;
    for (let after = 0, isEnd = false; !isEnd && !this.#isClosing; ) {
      ({ after, isEnd } = await store.removals.removeRows(job.id, { after, limit: STEP_NUMBERS }));
      await setImmediate();
    }
  }

  /** False when it must be done later. */
  async #removeShared({ id }: RemovedJob): Promise<boolean> {
    const { removals } = this.#options.store;
    for (let after = 0, isEnd = false; !isEnd; ) {
      const keys = new Set<string>();
      while (!isEnd && keys.size < KEYS_AT_ONCE) {
        if (this.#isClosing) return false;
        const found = await removals.sharedBlobs(id, { after, limit: STEP_NUMBERS });
        for (const key of found.keys) keys.add(key);
        ({ after, isEnd } = found);
        await setImmediate();
      }
      if (keys.size > 0 && !(await this.#deleteUnused(id, keys))) return false;
    }
    return true;
  }

  async #deleteUnused(jobId: number, keys: Set<string>): Promise<boolean> {
    const { blobs, store } = this.#options;
    // A worker that finds such a blob stored does not store it again: its report may be on its way.
    for (const { spec } of await store.jobs.running()) if (storesShared(spec)) return false;
    for (let after = 0, isEnd = false; !isEnd; ) {
      if (this.#isClosing) return false;
      const found = await store.removals.blobsOfOthers(jobId, keys, { after, limit: STEP_NUMBERS });
      for (const key of found.keys) keys.delete(key);
      ({ after, isEnd } = found);
      await setImmediate();
    }
    for (const key of keys) await blobs.delete(key);
    return true;
  }
}

/** Whether a job stores media or pictures of pages. */
function storesShared({ routes }: JobSpec): boolean {
  return routes.some(
    ({ kind, media, browser }) => kind === 'media' || media.length > 0 || browser?.screenshot || browser?.pdf,
  );
}
