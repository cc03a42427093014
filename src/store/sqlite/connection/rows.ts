import { COUNTER_NAMES, type Counters, zeroCounters } from '../../../core/model.ts';
import type { PassFacts } from '../../shared/passes.ts';
import type { Database } from './database.ts';

/** No batch, no attempt: as wide as the ids that take its place. */
export const NO_ID = 0x7fff_ffff;

/** Gathers the changes of one transaction and writes them with one statement. */
export class CounterDelta {
  readonly #delta = zeroCounters();

  add(name: keyof Counters, amount: number): void {
    this.#delta[name] += amount;
  }

  write(db: Database, jobId: number): void {
    const delta = this.#delta;
    db.run(ADD_COUNTERS, ...COUNTER_NAMES.map((name) => delta[name]), jobId);
  }
}

const ADD_COUNTERS = `UPDATE counters SET ${COUNTER_NAMES.map((name) => `${name} = ${name} + ?`).join(', ')} WHERE job_id = ?`;

/** Ready tasks and permit times by host, gathered over a transaction. */
export class QueueDelta {
  readonly #ready = new Map<number, number>();

  add(hostId: number, amount: number): void {
    this.#ready.set(hostId, (this.#ready.get(hostId) ?? 0) + amount);
  }

  write(db: Database, jobId: number): void {
    for (const [hostId, amount] of this.#ready) {
      if (amount !== 0) db.run(ADD_READY, jobId, hostId, Math.max(amount, 0), hostId, amount);
    }
  }
}

const ADD_READY = `
  INSERT INTO queues (job_id, host_id, ready, next_at) VALUES (?, ?, ?, (SELECT next_at FROM hosts WHERE id = ?))
  ON CONFLICT (job_id, host_id) DO UPDATE SET ready = ready + ?`;

/**
 * A host comes back before its time: other jobs that have seen it taken until then are told, or whoever had it would have
 * it again and again.
 */
export function followHost(
  db: Database,
  hostId: number,
  { nextAt, takenUntil }: { nextAt: number; takenUntil: number | null },
): void {
  if (takenUntil !== null && nextAt < takenUntil) db.run(FOLLOW_HOST, nextAt, hostId, takenUntil);
}

const FOLLOW_HOST = 'UPDATE queues SET next_at = ? WHERE host_id = ? AND next_at = ? AND ready > 0';

export function addTally(
  db: Database,
  jobId: number,
  state: 'dead' | 'skipped',
  code: string,
  amount: number,
): void {
  db.run(
    `INSERT INTO tallies (job_id, state, code, count) VALUES (?, ?, ?, ?)
     ON CONFLICT (job_id, state, code) DO UPDATE SET count = count + excluded.count`,
    jobId,
    state,
    code,
    amount,
  );
}

/** What a lease or settle must know of its job. */
export function readPass(db: Database, jobId: number): PassFacts {
  const facts = db.get<PassFacts>(
    `SELECT pass, collection_id AS collectionId, started_at AS startedAt, last_task_id AS lastTaskId
     FROM passes WHERE job_id = ?`,
    jobId,
  );
  if (!facts) throw new Error(`no job ${jobId}`);
  return facts;
}
