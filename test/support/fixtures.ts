import { hash } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { RecordDraft, StoredPage, Trace } from '../../src/core/batch/outcome.ts';
import { type JobInput, type JobSpec, jobSchema } from '../../src/core/job-schema/job-schema.ts';
import type { NewTask } from '../../src/core/model.ts';
import { canonicalJson } from '../../src/core/values/canonical-json.ts';
import type {
  HostChange,
  Job,
  JobCode,
  LeasedBatch,
  RobotsEntry,
  Settlement,
  Store,
  TaskChange,
} from '../../src/ports/store.ts';

/** Valid values of the big types, of which a test changes only what it is about. */

export const T0 = 1_700_000_000_000;

export function specOf(input: Partial<JobInput> = {}): JobSpec {
  const { $schema: _, name, ...rest } = jobSchema.parse({ sources: ['https://a.example/'], ...input });
  return { ...rest, name: name ?? 'test' };
}

export function taskOf(url: string, change: Partial<NewTask> = {}): NewTask {
  const host = new URL(url).host;
  return {
    url,
    host,
    depth: 0,
    priority: 0,
    route: null,
    meta: null,
    hops: 0,
    template: null,
    modifiedAt: null,
    ...change,
  };
}

export function tasksOf(...urls: string[]): NewTask[] {
  return urls.map((url) => taskOf(url));
}

export function traceOf(change: Partial<Trace> = {}): Trace {
  return { startedAt: T0, durationMs: 12, httpStatus: 200, bytes: 100, ...change };
}

export function pageOf(change: Partial<StoredPage> = {}): StoredPage {
  return {
    route: null,
    httpStatus: 200,
    contentType: 'text/html',
    bytes: 400,
    sha256: 'ab'.repeat(32),
    archive: null,
    media: null,
    robotsTags: null,
    etag: null,
    lastModified: null,
    ...change,
  };
}

export function recordOf(key: string, data: object, merge = false): RecordDraft {
  return { key, json: JSON.stringify(data), hash: recordHash(data), merge };
}

export function recordHash(data: object): string {
  return hash('sha256', canonicalJson(data));
}

const UNTOUCHED: Omit<TaskChange, 'id' | 'outcome' | 'to'> = {
  code: null,
  detail: null,
  dueAt: null,
  countsAsAttempt: true,
  moveTo: null,
  redirectTo: null,
  page: null,
  trace: null,
  links: [],
  records: [],
  shows: [],
};

/** What a settlement may do to one task. */
export const change = {
  fetched: (id: number, more: Partial<TaskChange> = {}): TaskChange => ({
    ...UNTOUCHED,
    id,
    outcome: 'fetched',
    to: 'done',
    page: pageOf(),
    trace: traceOf(),
    ...more,
  }),
  unchanged: (id: number, more: Partial<TaskChange> = {}): TaskChange => ({
    ...UNTOUCHED,
    id,
    outcome: 'unchanged',
    to: 'unchanged',
    trace: traceOf({ httpStatus: 304, bytes: 0 }),
    ...more,
  }),
  skipped: (id: number, more: Partial<TaskChange> = {}): TaskChange => ({
    ...UNTOUCHED,
    id,
    outcome: 'skipped',
    to: 'skipped',
    code: 'robots',
    countsAsAttempt: false,
    ...more,
  }),
  dead: (id: number, more: Partial<TaskChange> = {}): TaskChange => ({
    ...UNTOUCHED,
    id,
    outcome: 'failed',
    to: 'dead',
    code: 'not-found',
    detail: 'status 404',
    trace: traceOf({ httpStatus: 404 }),
    ...more,
  }),
  again: (id: number, dueAt: number | null, more: Partial<TaskChange> = {}): TaskChange => ({
    ...UNTOUCHED,
    id,
    outcome: 'failed',
    to: 'pending',
    code: 'reset',
    detail: 'gone',
    dueAt,
    trace: traceOf({ httpStatus: null, bytes: 0 }),
    ...more,
  }),
  deferred: (id: number): TaskChange => ({
    ...UNTOUCHED,
    id,
    outcome: 'deferred',
    to: 'pending',
    countsAsAttempt: false,
  }),
  moved: (id: number, url: string, more: Partial<TaskChange> = {}): TaskChange => ({
    ...UNTOUCHED,
    id,
    outcome: 'redirected',
    to: 'pending',
    countsAsAttempt: false,
    redirectTo: url,
    moveTo: { url, host: new URL(url).host },
    page: pageOf({ httpStatus: 301 }),
    trace: traceOf({ httpStatus: 301 }),
    ...more,
  }),
};

export function settlementOf(
  job: Pick<Job, 'id'>,
  batchId: number,
  tasks: TaskChange[],
  more: Partial<Settlement> = {},
): Settlement {
  return {
    jobId: job.id,
    batchId,
    now: T0,
    worker: 'w-1',
    final: true,
    durationMs: 5,
    archive: null,
    requests: tasks.filter((task) => task.trace !== null).length,
    owner: null,
    perTemplateMax: null,
    records: { guardMs: 0, history: false },
    quality: [],
    tasks,
    hosts: [],
    robots: [],
    ...more,
  };
}

export function hostChange(host: string, more: Partial<HostChange> = {}): HostChange {
  return {
    host,
    sent: 0,
    nextAt: null,
    failuresInRow: 0,
    rests: 0,
    pace: null,
    smallestGapMs: null,
    lastError: null,
    ...more,
  };
}

export function robotsEntry(origin: string, more: Partial<RobotsEntry> = {}): RobotsEntry {
  const host = new URL(origin).host;
  const empty = { text: '', failures: 0, detail: null, crawlDelayMs: null, redirectTo: null };
  return { origin, host, ...empty, fetchedAt: T0, ...more };
}

export function createJob(store: Store, name = 'test', input: Partial<JobInput> = {}): Promise<Job> {
  return store.jobs.create({ ...codeOf(name, input), name, now: T0 });
}

export function codeOf(name: string, input: Partial<JobInput> = {}): JobCode {
  return { spec: specOf({ ...input, name }), specHash: 'h1', bundle: null, file: null };
}

export function enqueue(
  store: Store,
  job: Pick<Job, 'id'>,
  tasks: NewTask[],
  perTemplateMax: number | null = null,
) {
  return store.frontier.enqueue(job.id, tasks, { now: T0, perTemplateMax, source: null });
}

export const FAR = T0 + 10 * 365 * 86_400_000;

/** One batch with up to `count` tasks of every host that has some, whenever the host may start. */
export async function leaseOne(
  store: Store,
  job: Pick<Job, 'id'>,
  options: { count?: number; now?: number; nextAt?: number; leaseMs?: number } = {},
): Promise<LeasedBatch> {
  const { count = 100, now = T0, nextAt = now, leaseMs = 60_000 } = options;
  const due = await store.frontier.dueHosts(job.id, { now, before: FAR, limit: 1_000 });
  const grants = due.map((host) => ({ hostId: host.id, count, nextAt }));
  const leased = await store.frontier.lease(job.id, { batches: [{ grants, leaseMs }], now });
  return leased.find(({ tasks }) => tasks.length > 0) ?? leased[0]!;
}

export async function collect<T>(rows: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const row of rows) all.push(row);
  return all;
}

/** A folder of the test's own, and its removal. */
export async function temporaryFolder(): Promise<{ dir: string; remove(): Promise<void> }> {
  const dir = await mkdtemp(join(tmpdir(), 'seine-test-'));
  return { dir, remove: () => rm(dir, { recursive: true, force: true }) };
}
