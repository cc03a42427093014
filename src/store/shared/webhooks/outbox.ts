import { randomBytes } from 'node:crypto';
import type { JobState } from '../../../core/model.ts';
import {
  jobEndMessage,
  progressMessage,
  type WebhookEvent,
  type WebhookMessage,
  webhookBody,
} from '../../../core/webhooks/webhook.ts';
import { STATE_NUMBERS, stateName } from '../states.ts';
import type { ReadValue } from '../views/reader.ts';

/**
 * Messages are written in the transaction of what they tell. What is written is decided here for both stores, as a
 * generator of statements: SQLite runs them at once, PostgreSQL one after the other.
 */
interface Statement {
  text: string;
  values: ReadValue[];
}
export type Outbox = Generator<Statement, void, unknown[]>;

/** Where statements truly differ: lists travel as JSON. */
export interface OutboxDialect {
  /** Numbers of the JSON list in `$1`. */
  numbersOf1: string;
  /** Rows of the JSON list in `$1`, with the columns of a delivery as `m`, `e`, `t`, `j`, `b`, `o`. */
  deliveriesOf1: string;
}

/** In the table, the owner of the folder is an empty text. */
export const ownerColumn = (owner: string | null) => owner ?? '';

interface ToldEndpoint {
  id: string;
  events: string;
  metadata: string | null;
}

/** The job is over, or stopped: called when its state has been written. */
export function* tellJobEnd(dialect: OutboxDialect, jobId: number, now: number): Outbox {
  const endpoints = (yield ask(SELECT_TOLD, jobId)) as ToldEndpoint[];
  if (endpoints.length === 0) return;
  const [job] = (yield ask('SELECT id, name, run, state, reason FROM jobs WHERE id = $1', jobId)) as {
    id: number;
    name: string;
    run: number;
    state: JobState;
    reason: string | null;
  }[];
  const [counters] = (yield ask(SELECT_COUNTS, jobId)) as [Parameters<typeof jobEndMessage>[1]];
  if (job) yield* write(dialect, endpoints, [jobEndMessage(job, counters)], jobId, now);
}

export function isEnd(state: JobState): boolean {
  return state !== 'running' && state !== 'waiting';
}

/** What was written of a record. */
export interface RecordNews {
  key: string;
  change: 'created' | 'updated';
}

interface TaskNews {
  id: number;
  url: string;
  state: number;
  code: string | null;
  detail: string | null;
  attempts: number;
}

/** Tasks that may have ended, and records that were written. Costs one look where no endpoint wants to know. */
export function* tellWork(
  dialect: OutboxDialect,
  work: {
    jobId: number;
    pass: number;
    taskIds: readonly number[];
    records: readonly RecordNews[];
    now: number;
  },
): Outbox {
  const { jobId, taskIds, records, now } = work;
  if ((yield ask(SOME_WANT_WORK, jobId)).length === 0) return;
  const endpoints = (yield ask(`${SELECT_TOLD} AND wants_work = 1`, jobId)) as ToldEndpoint[];
  if (endpoints.length === 0) return;
  const rows = (yield ask(selectTasks(dialect), JSON.stringify(taskIds))) as TaskNews[];
  const messages: WebhookMessage[] = [];
  for (const row of rows) {
    const type = PAGE_EVENTS.get(row.state);
    if (type) messages.push({ type, data: pageData(jobId, row) });
  }
  for (const { key, change } of records)
    messages.push({ type: 'record.changed', data: { job_id: `job_${jobId}`, key, change } });
  const [counters] = (yield ask(SELECT_COUNTS, jobId)) as [Parameters<typeof progressMessage>[1]];
  const progress = progressMessage({ id: jobId, pass: work.pass }, counters);
  if (progress) messages.push(progress);
  yield* write(dialect, endpoints, messages, jobId, now);
}

const PAGE_EVENTS: ReadonlyMap<number, WebhookEvent> = new Map([
  [STATE_NUMBERS.dead, 'page.failed'],
  [STATE_NUMBERS.done, 'page.completed'],
  [STATE_NUMBERS.unchanged, 'page.completed'],
]);

function pageData(jobId: number, { url, state, code, detail, attempts }: TaskNews): WebhookMessage['data'] {
  const outcome = stateName(state) === 'dead' ? { status: 'failed', code, detail } : { status: 'succeeded' };
  return { job_id: `job_${jobId}`, url, ...outcome, attempts };
}

/** For events that belong to no job. */
export function* tellOwners(
  dialect: OutboxDialect,
  message: WebhookMessage,
  { owner, now }: { owner?: string | null; now: number },
): Outbox {
  const endpoints = (
    owner === undefined
      ? yield ask(SELECT_ALL_TOLD)
      : yield ask(`${SELECT_ALL_TOLD} AND owner = $1`, ownerColumn(owner))
  ) as ToldEndpoint[];
  yield* write(dialect, endpoints, [message], null, now);
}

function* write(
  dialect: OutboxDialect,
  endpoints: readonly ToldEndpoint[],
  messages: readonly WebhookMessage[],
  jobId: number | null,
  now: number,
): Outbox {
  const rows: object[] = [];
  for (const { id, events, metadata } of endpoints) {
    const wanted: WebhookEvent[] = JSON.parse(events);
    const given = metadata === null ? null : JSON.parse(metadata);
    for (const message of messages) {
      if (!wanted.includes(message.type)) continue;
      const m = `msg_${randomBytes(18).toString('base64url')}`;
      rows.push({
        m,
        e: id,
        t: message.type,
        j: jobId,
        b: webhookBody(message, given, now),
        o: message.once ?? null,
      });
    }
  }
  if (rows.length > 0) yield ask(insertDeliveries(dialect), JSON.stringify(rows), now);
}

function ask(text: string, ...values: ReadValue[]): Statement {
  return { text, values };
}

const SELECT_TOLD = `
  SELECT id, events, metadata FROM webhook_endpoints WHERE disabled_at IS NULL AND (job_id = $1
    OR (job_id IS NULL AND owner = coalesce((SELECT jobs.owner FROM jobs WHERE jobs.id = $1), '')))`;

const SELECT_ALL_TOLD =
  'SELECT id, events, metadata FROM webhook_endpoints WHERE disabled_at IS NULL AND job_id IS NULL';

/** By an index over few. */
const SOME_WANT_WORK = `
  SELECT 1 AS found FROM webhook_endpoints WHERE wants_work = 1 AND (job_id IS NULL OR job_id = $1) LIMIT 1`;

const SELECT_COUNTS = `
  SELECT ${['accepted', 'done', 'unchanged', 'skipped', 'dead', 'pending', 'leased']
    .map((name) => `CAST(coalesce(sum(${name}), 0) AS bigint) AS ${name}`)
    .join(', ')} FROM counters WHERE job_id = $1`;

const selectTasks = ({ numbersOf1 }: OutboxDialect) => `
  SELECT id, url, state, code, detail, attempts FROM tasks WHERE id IN (${numbersOf1})
    AND state IN (${[...PAGE_EVENTS.keys()].join(', ')})`;

const insertDeliveries = ({ deliveriesOf1 }: OutboxDialect) => `
  INSERT INTO webhook_deliveries (message_id, endpoint_id, type, job_id, body, once, created_at, next_at, tries, state, log)
  SELECT m, e, t, j, b, o, $2, $2, 0, 'pending', '[]' FROM ${deliveriesOf1} WHERE true
  ON CONFLICT (endpoint_id, once) DO NOTHING`;
