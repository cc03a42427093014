import { COUNTER_NAMES, type Counters, zeroCounters } from '../../../core/model.ts';
import { storableJson } from '../../../core/values/storable-json.ts';
import type { PassFacts } from '../../shared/passes.ts';
import { pipelined, type Transaction } from './database.ts';

/** Texts of PostgreSQL have no character 0 and no halves of characters; pages and headers may have both. */
export function cleanText<T extends string | null | undefined>(text: T): T {
  if (!text || (text.isWellFormed() && !text.includes('\u0000'))) return text;
  return text.toWellFormed().replaceAll('\u0000', '\ufffd') as T;
}

/** JSON inside of rows travels as text: its strings may have what texts of PostgreSQL have not. */
export function toJson(value: object | null): string | null {
  return value && JSON.stringify(value);
}

/** JSON that the server looks into, for an index: names in it are cleaned, too. */
export function toCleanJson(value: object): string {
  return storableJson(JSON.stringify(value));
}

/** How JSON writes the characters that texts of PostgreSQL have not. */
const NOT_IN_TEXTS = /\\u(?:0000|d[89a-f])/;

/** Rows for `json_to_recordset`: as fast as arrays for the server, and faster for us. */
export function toRows(rows: readonly object[]): string {
  const json = JSON.stringify(rows);
  if (!NOT_IN_TEXTS.test(json)) return json;
  // One name of a site would otherwise end the transaction, and with it the run.
  return JSON.stringify(rows, (_name, value: unknown) =>
    typeof value === 'string' ? cleanText(value) : value,
  );
}

/**
 * Always true, and believed by the planner to be rare: of rows that came with the statement it expects one, and looks
 * the others up by their number. It would otherwise read the whole table first, while that is still small, and go on
 * doing so when it is not.
 */
export function indexHint(column: string): string {
  return `${column} BETWEEN 1 AND ${Number.MAX_SAFE_INTEGER}`;
}

/** What a transaction changes in sums: gathered, and written with one statement each, always in the same order. */
export class CounterUpdates {
  readonly #counters = zeroCounters();
  readonly #ready = new Map<number, number>();
  readonly #rescheduled = new Set<number>();
  /** Until when a host was taken that comes back before its time. */
  readonly #freed = new Map<number, number>();
  readonly #tallies = new Map<string, number>();
  readonly #templates = new Map<string, number>();

  count(name: keyof Counters, amount: number): void {
    this.#counters[name] += amount;
  }

  /** Ready tasks of a host. */
  queue(hostId: number, amount: number): void {
    this.#ready.set(hostId, (this.#ready.get(hostId) ?? 0) + amount);
  }

  /** The time of a host has changed: its queue is to have the same. */
  reschedule(hostId: number): void {
    this.#rescheduled.add(hostId);
    this.queue(hostId, 0);
  }

  /**
   * A host comes back before its time: other jobs that have seen it taken until then are told, or whoever had it would
   * have it again and again.
   */
  free(hostId: number, { nextAt, takenUntil }: { nextAt: number; takenUntil: number | null }): void {
    this.reschedule(hostId);
    if (takenUntil !== null && nextAt < takenUntil) this.#freed.set(hostId, Math.ceil(takenUntil));
  }

  /** Of the budget of a URL template. */
  spend(template: string, amount: number): void {
    this.#templates.set(template, (this.#templates.get(template) ?? 0) + amount);
  }

  tally(state: 'dead' | 'skipped', code: string, amount: number): void {
    const name = `${state} ${code}`;
    this.#tallies.set(name, (this.#tallies.get(name) ?? 0) + amount);
  }

  /** Every settle changes the counters: they come last, so that their locks are held briefly. */
  async write(tx: Transaction, jobId: number): Promise<void> {
    await pipelined(
      this.#writeTemplates(tx, jobId),
      this.#writeQueues(tx, jobId),
      this.#tellOthers(tx, jobId),
      this.#writeTallies(tx, jobId),
      this.#writeCounters(tx, jobId),
    );
  }

  async #writeTemplates(tx: Transaction, jobId: number): Promise<void> {
    if (this.#templates.size === 0) return;
    await tx.run(ADD_TEMPLATES, jobId, [...this.#templates.keys()], [...this.#templates.values()]);
  }

  async #writeQueues(tx: Transaction, jobId: number): Promise<void> {
    const changed = [...this.#ready].filter(([id, amount]) => amount !== 0 || this.#rescheduled.has(id));
    if (changed.length === 0) return;
    await tx.run(
      ADD_READY,
      jobId,
      changed.map(([id]) => id),
      changed.map(([, amount]) => amount),
      changed.map(([id]) => this.#rescheduled.has(id)),
    );
  }

  async #tellOthers(tx: Transaction, jobId: number): Promise<void> {
    if (this.#freed.size === 0) return;
    await tx.run(FOLLOW_HOSTS, jobId, [...this.#freed.keys()], [...this.#freed.values()]);
  }

  async #writeTallies(tx: Transaction, jobId: number): Promise<void> {
    const changed = [...this.#tallies].filter(([, amount]) => amount !== 0);
    if (changed.length === 0) return;
    const rows = changed.map(([name, count]) => {
      const [state, code] = name.split(' ');
      return { state, code, count };
    });
    await tx.run(ADD_TALLIES, jobId, toRows(rows));
  }

  async #writeCounters(tx: Transaction, jobId: number): Promise<void> {
    if (COUNTER_NAMES.every((name) => this.#counters[name] === 0)) return;
    await tx.run(ADD_COUNTERS, jobId, tx.shard, ...COUNTER_NAMES.map((name) => this.#counters[name]));
  }
}

const ADD_TEMPLATES = `
  INSERT INTO templates (job_id, template, count)
  SELECT $1, template, count FROM unnest($2::text[], $3::bigint[]) AS spent (template, count) ORDER BY template
  ON CONFLICT (job_id, template) DO UPDATE SET count = templates.count + excluded.count`;

/**
 * Nearly all of them are there: what they have is changed, in one order, and only the others are added. Adding all of them
 * and changing those that are there already wrote each row twice.
 */
const ADD_READY = `
  WITH change AS MATERIALIZED (
    SELECT hosts.id, given.amount, CASE WHEN given.moves THEN hosts.next_at END AS moved_to, hosts.next_at
    FROM unnest($2::bigint[], $3::bigint[], $4::boolean[]) AS given (host_id, amount, moves)
      JOIN hosts ON hosts.id = given.host_id
    WHERE ${indexHint('given.host_id')} ORDER BY hosts.id
  ), known AS (
    UPDATE queues SET ready = queues.ready + change.amount, next_at = coalesce(change.moved_to, queues.next_at)
    FROM change WHERE ${indexHint('change.id')} AND queues.job_id = $1 AND queues.host_id = change.id
    RETURNING queues.host_id
  )
  INSERT INTO queues (job_id, host_id, ready, next_at)
  SELECT $1, id, amount, next_at FROM change WHERE id NOT IN (SELECT host_id FROM known) ORDER BY id
  ON CONFLICT (job_id, host_id) DO UPDATE SET ready = queues.ready + excluded.ready,
    next_at = CASE WHEN (SELECT moved_to FROM change WHERE id = queues.host_id) IS NULL THEN queues.next_at
      ELSE excluded.next_at END`;

/** Rows that another job is about to change are left: two jobs that wait for each other's would wait for ever. */
const FOLLOW_HOSTS = `
  WITH told AS MATERIALIZED (
    SELECT queues.job_id, queues.host_id FROM unnest($2::bigint[], $3::bigint[]) AS freed (host_id, until)
      JOIN queues ON queues.host_id = freed.host_id
    WHERE queues.ready > 0 AND queues.job_id <> $1 AND queues.next_at = freed.until
    FOR UPDATE OF queues SKIP LOCKED
  )
  UPDATE queues SET next_at = hosts.next_at FROM told JOIN hosts ON hosts.id = told.host_id
  WHERE queues.job_id = told.job_id AND queues.host_id = told.host_id`;

const ADD_TALLIES = `
  INSERT INTO tallies (job_id, state, code, count)
  SELECT $1, state, code, count FROM json_to_recordset($2::json) AS change (state text, code text, count bigint)
  ORDER BY state, code
  ON CONFLICT (job_id, state, code) DO UPDATE SET count = tallies.count + excluded.count`;

const ADD_COUNTERS = `
  INSERT INTO counters (job_id, shard, ${COUNTER_NAMES.join(', ')})
  VALUES ($1, $2, ${COUNTER_NAMES.map((_, index) => `$${index + 3}`).join(', ')})
  ON CONFLICT (job_id, shard) DO UPDATE
  SET ${COUNTER_NAMES.map((name) => `${name} = counters.${name} + excluded.${name}`).join(', ')}`;

export async function readCounters(
  run: <T>(text: string, ...values: unknown[]) => Promise<T[]>,
  jobId: number,
): Promise<Counters> {
  const [row] = await run<Counters>(SUM_COUNTERS, jobId);
  return { ...zeroCounters(), ...row };
}

const SUM_COUNTERS = `
  SELECT ${COUNTER_NAMES.map((name) => `coalesce(sum(${name}), 0) AS ${name}`).join(', ')}
  FROM counters WHERE job_id = $1`;

/** What a lease or settle must know of its job. */
export async function readPass(tx: Pick<Transaction, 'run'>, jobId: number): Promise<PassFacts> {
  const [facts] = await tx.run<PassFacts>(SELECT_PASS, jobId);
  if (!facts) throw new Error(`no job ${jobId}`);
  return facts;
}

const SELECT_PASS = `
  SELECT pass, collection_id AS "collectionId", started_at AS "startedAt", last_task_id AS "lastTaskId"
  FROM passes WHERE job_id = $1`;
