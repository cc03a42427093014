import { setImmediate as nextTurn } from 'node:timers/promises';
import {
  type AddedRows,
  addRows,
  type ListedRows,
  taskWriter,
} from '../../../coordinator/sources/add-to-job.ts';
import type { Store } from '../../../ports/store.ts';
import type { ApiContext } from '../requests/access.ts';
import type { AddCalls } from '../requests/work.ts';
import { type PackedTasks, packTasks, unpackTasks } from './packed-tasks.ts';

/**
 * Besides the chunk that is being written, others are on their way: on a busy machine, the thread that writes would wait for a
 * turn of this one after each.
 */
const CHUNKS_AHEAD = 4;

/** Adds URLs of a request to a job. They are written down when this returns. */
export async function addToServedJob(
  { store, adding, rowRoom, now }: Pick<ApiContext, 'store' | 'adding' | 'rowRoom' | 'now'>,
  jobId: number,
  rows: ListedRows,
  { priority }: { priority: number },
): Promise<AddedRows> {
  const job = await store.jobs.get(jobId);
  return addRows(job, rows, {
    priority,
    ahead: CHUNKS_AHEAD,
    room: rowRoom.of(job.owner),
    write: (tasks, rejected) => adding.write(jobId, packTasks(tasks), { rejected, now: now() }),
  });
}

/** In the thread that writes. */
export class AddedTasks implements AddCalls {
  readonly #store: Store;
  /** The last chunk of each job that has some on their way. */
  readonly #last = new Map<number, Promise<unknown>>();
  /** The turn of this thread in which the last chunk began. */
  #turn: Promise<unknown> = Promise.resolve();

  constructor(store: Store) {
    this.#store = store;
  }

  /**
   * Chunks of one job are written one after the other, and each chunk in a turn of its own, so that reports of jobs that run are
   * settled between them. Messages that wait are handled in one turn, 1,000 of them if they come fast enough: that took seconds.
   */
  async write(
    jobId: number,
    packed: PackedTasks,
    { rejected, now }: { rejected: number; now: number },
  ): Promise<{ accepted: number; duplicates: number }> {
    const before = this.#last.get(jobId);
    const written = (async () => {
      await before?.catch(() => {});
      this.#turn = this.#turn.then(() => nextTurn());
      await this.#turn;
      const job = await this.#store.jobs.get(jobId);
      return taskWriter(this.#store, job)(unpackTasks(packed), { rejected, now });
    })();
    this.#last.set(jobId, written);
    try {
      return await written;
    } finally {
      if (this.#last.get(jobId) === written) this.#last.delete(jobId);
    }
  }
}
