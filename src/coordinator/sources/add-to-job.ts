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
/** Rows that cannot be used are all counted; so many are named. */
const REJECTS_NAMED_MAX = 1_000;

/** A row that is to be added, or why it could not be read. */
export type AddedRow = SourceTask | { url?: string; reason: string };

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

/**
 * Adds URLs to a job that runs, waits or is finished. Each chunk is written down as a whole, so URLs that were added stay
 * added, and to add them again does no harm. A job that is done or waits runs again from the first new URL on.
 */
export async function addToJob(
  store: AddStore,
  jobId: number,
  rows: Iterable<AddedRow> | AsyncIterable<AddedRow>,
  options: AddOptions,
): Promise<AddedRows> {
  const job = await store.jobs.get(jobId);
  if (job.state === 'cancelled')
    throw new SeineError(`${job.name}-${job.run} was cancelled`, {
      hint: 'start a new run with `seine run`',
    });
  const groups = new HostGroups({ store, job, resolver: options.resolver ?? null });
  const total: AddedRows = { accepted: 0, duplicates: 0, rejected: 0, rejects: [] };
  let chunk: NewTask[] = [];
  let rejected = 0;
  let index = 0;
  // The next chunk is read while this one is written, which happens in another thread where a server adds rows.
  let writing = Promise.resolve();
  const write = async () => {
    const [tasks, rejectedHere] = [chunk, rejected];
    if (tasks.length + rejectedHere === 0) return;
    chunk = [];
    rejected = 0;
    await writing;
    writing = writeChunk(store, job, tasks, { rejected: rejectedHere, groups, now: options.now() }).then(
      ({ accepted, duplicates }) => {
        total.accepted += accepted;
        total.duplicates += duplicates;
        total.rejected += rejectedHere;
      },
    );
    // Whoever waits for it next is told.
    writing.catch(() => {});
  };
  for await (const row of rows) {
    const task = 'reason' in row ? row.reason : toNewTask(row, job.spec, options.priority ?? 0);
    if (typeof task !== 'string') chunk.push(task);
    else {
      rejected++;
      if (total.rejects.length < REJECTS_NAMED_MAX)
        total.rejects.push({ index, url: row.url ?? '', reason: task });
    }
    index++;
    if (chunk.length + rejected >= CHUNK_ROWS) await write();
  }
  await write();
  await writing;
  return total;
}

async function writeChunk(
  store: AddStore,
  job: Job,
  chunk: NewTask[],
  { rejected, groups, now }: { rejected: number; groups: HostGroups; now: number },
): Promise<{ accepted: number; duplicates: number }> {
  const groupOf = await groups.of(() => chunk.map(({ host }) => host));
  for (const task of chunk) task.host = groupOf(task.host);
  const priorities = await store.jobs.priorities(job.id);
  new TaskPriorities({ spec: job.spec, priorities }).apply(chunk);
  return store.frontier.enqueue(job.id, chunk, {
    now: Math.floor(now),
    perTemplateMax: null,
    source: null,
    added: { rejected },
  });
}
