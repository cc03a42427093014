import { SeineError } from '../../core/errors.ts';
import type { NewTask } from '../../core/model.ts';
import type { Resolver } from '../../ports/resolver.ts';
import type { SourceTask } from '../../ports/source.ts';
import type { HostStore, Job, Store } from '../../ports/store.ts';
import { HostGroups } from '../hosts/host-groups.ts';
import { TaskPriorities } from '../priority/task-priorities.ts';
import { toNewTask } from './new-task.ts';

/** Rows of one transaction: large enough to be cheap, small enough not to hold up a run that settles its reports. */
const CHUNK_ROWS = 2_000;
/** A chunk of rows with much beside their URLs is written sooner. */
const CHUNK_CHARS = 2 * 1024 * 1024;
/** Of a row besides its URL and columns: the objects that are made of it. */
const ROW_CHARS = 300;
/** Rows that cannot be used are all counted; so many are named. */
const REJECTS_NAMED_MAX = 1_000;

/** A row that is to be added, or why it could not be read. */
export type AddedRow = SourceTask | { url?: string; reason: string };

/** One by one, or many at a time where they come together. */
export type ListedRows = Iterable<AddedRow | AddedRow[]> | AsyncIterable<AddedRow | AddedRow[]>;

export interface AddedRows {
  accepted: number;
  /** URLs that the job had already. */
  duplicates: number;
  rejected: number;
  /** The first of them; `index` counts the rows from 0. */
  rejects: { index: number; url: string; reason: string }[];
}

interface AddOptions {
  now(): number;
  /** Of rows that do not say. */
  priority?: number;
  /** For jobs whose rates are counted by address. */
  resolver?: Resolver | null;
}

interface AddStore extends Pick<Store, 'jobs' | 'frontier'> {
  readonly hosts: Pick<HostStore, 'groupsOf' | 'noteGroups'>;
}

/** Shared by all lists that are being read, so that they are bounded together. */
interface Room {
  /** False where there is none now. */
  take(chars: number): boolean;
  wait(chars: number): Promise<void>;
  give(chars: number): void;
}

type Written = Pick<AddedRows, 'accepted' | 'duplicates'>;

/**
 * Adds URLs to a job that runs, waits or is finished. Each chunk is written down as a whole, so URLs that were added stay
 * added, and to add them again does no harm. A job that is done or waits runs again from the first new URL on.
 */
export async function addToJob(
  store: AddStore,
  jobId: number,
  rows: ListedRows,
  { now, priority, resolver }: AddOptions,
): Promise<AddedRows> {
  const job = await store.jobs.get(jobId);
  const writeTasks = taskWriter(store, job, resolver);
  return addRows(job, rows, {
    priority: priority ?? 0,
    ahead: 1,
    write: (tasks, rejected) => writeTasks(tasks, { rejected, now: now() }),
  });
}

/** The same where the tasks are written elsewhere, up to `ahead` chunks at a time. */
export async function addRows(
  job: Job,
  rows: ListedRows,
  options: {
    priority: number;
    ahead: number;
    room?: Room;
    write(tasks: NewTask[], rejected: number): Promise<Written>;
  },
): Promise<AddedRows> {
  if (job.state === 'cancelled')
    throw new SeineError(`${job.name}-${job.run} was cancelled`, {
      hint: 'start a new run with `seine run`',
    });
  const total: AddedRows = { accepted: 0, duplicates: 0, rejected: 0, rejects: [] };
  const writing = new ChunksUnderWay(options.ahead);
  const { room } = options;
  let chunk: NewTask[] = [];
  /** Of the chunk, and of all that is not written yet. */
  let chars = 0;
  let held = 0;
  let rejected = 0;
  let index = 0;
  const giveBack = (count: number) => {
    held -= count;
    room?.give(count);
  };
  const note = async (written: Promise<Written>, of: { rejected: number; chars: number }) => {
    const { accepted, duplicates } = await written.finally(() => giveBack(of.chars));
    total.accepted += accepted;
    total.duplicates += duplicates;
    total.rejected += of.rejected;
  };
  // The next chunk is read while those before are written. Nothing holds their tasks meanwhile: they would grow old, and the
  // garbage of a long list with them.
  const write = async () => {
    if (chunk.length + rejected === 0) return;
    await writing.room();
    writing.add(note(options.write(chunk, rejected), { rejected, chars }));
    chunk = [];
    rejected = 0;
    chars = 0;
  };
  const add = (row: AddedRow, size: number) => {
    chars += size;
    held += size;
    const task = 'reason' in row ? row.reason : toNewTask(row, job.spec, options.priority);
    if (typeof task !== 'string') chunk.push(task);
    else {
      rejected++;
      if (total.rejects.length < REJECTS_NAMED_MAX)
        total.rejects.push({ index, url: row.url ?? '', reason: task });
    }
    index++;
  };
  try {
    for await (const some of rows)
      for (const row of Array.isArray(some) ? some : [some]) {
        const size = charsOf(row);
        if (room && !room.take(size)) {
          // What is held here is written first: lists that wait for one another would wait for ever.
          await write();
          await room.wait(size);
        }
        add(row, size);
        if (chunk.length + rejected >= CHUNK_ROWS || chars >= CHUNK_CHARS) await write();
      }
    await write();
  } finally {
    // Also when the rows broke off: whoever is told so must not find more of them later.
    await writing.ended().finally(() => giveBack(held));
  }
  return total;
}

function charsOf(row: AddedRow): number {
  const meta = 'meta' in row && row.meta ? JSON.stringify(row.meta).length : 0;
  return ROW_CHARS + (row.url?.length ?? 0) + meta;
}

class ChunksUnderWay {
  readonly #max: number;
  readonly #underWay: Promise<void>[] = [];

  constructor(max: number) {
    this.#max = max;
  }

  /** Waits until there is room for another one. */
  async room(): Promise<void> {
    while (this.#underWay.length >= this.#max) await this.#underWay.shift();
  }

  add(written: Promise<void>): void {
    // Whoever waits for it next is told.
    written.catch(() => {});
    this.#underWay.push(written);
  }

  async ended(): Promise<void> {
    const all = await Promise.allSettled(this.#underWay.splice(0));
    for (const each of all) if (each.status === 'rejected') throw each.reason;
  }
}

/** Writes chunks of tasks of a job down, one after the other. */
export function taskWriter(
  store: AddStore,
  job: Job,
  resolver: Resolver | null = null,
): (tasks: NewTask[], options: { rejected: number; now: number }) => Promise<Written> {
  const groups = new HostGroups({ store, job, resolver });
  return async (tasks, { rejected, now }) => {
    const groupOf = await groups.of(() => tasks.map(({ host }) => host));
    for (const task of tasks) task.host = groupOf(task.host);
    const priorities = await store.jobs.priorities(job.id);
    new TaskPriorities({ spec: job.spec, priorities }).apply(tasks);
    return store.frontier.enqueue(job.id, tasks, {
      now: Math.floor(now),
      perTemplateMax: null,
      source: null,
      added: { rejected },
    });
  };
}
