import type { RollupRow } from '../../core/rollups/rollup.ts';
import type { RollupStore } from '../../ports/store/rollup-store.ts';
import { ReadRollups } from '../shared/rollups/read-rollups.ts';
import {
  COUNT_KEY,
  PruneTimes,
  ROW_KEY,
  rowsOf,
  SUM_COLUMNS,
  staleRows,
} from '../shared/rollups/rollup-rows.ts';
import type { Database } from './connection/database.ts';
import { SqliteReader } from './connection/reader.ts';

export class SqliteRollupStore extends ReadRollups implements RollupStore {
  readonly #db: Database;
  readonly #prune = new PruneTimes();

  constructor(db: Database) {
    super(new SqliteReader(db));
    this.#db = db;
  }

  async add(jobId: number, rows: readonly RollupRow[], now: number): Promise<void> {
    const prunes = this.#prune.isDue(jobId, now);
    if (rows.length === 0 && !prunes) return;
    this.#db.transaction(() => {
      addRollups(this.#db, jobId, rows);
      if (prunes) deleteStale(this.#db, jobId, now);
    });
  }
}

/** Inside somebody's transaction. */
export function addRollups(db: Database, jobId: number, rows: readonly RollupRow[]): void {
  if (!db.keepsRollups) return;
  const { sums, counts } = rowsOf(rows);
  for (const { step, host, at, sums: values, latencyMaxMs } of sums)
    db.run(ADD_SUMS, jobId, step, host, at, latencyMaxMs, ...values);
  for (const { step, host, at, name, amount } of counts)
    db.run(ADD_COUNT, jobId, step, host, at, name, amount);
}

function deleteStale(db: Database, jobId: number, now: number): void {
  for (const { step, ofJobBefore, ofHostsBefore } of staleRows(now))
    for (const table of ['rollups', 'rollup_counts']) {
      db.run(
        `DELETE FROM ${table} WHERE job_id = ? AND step = ? AND host = '' AND at < ?`,
        jobId,
        step,
        ofJobBefore,
      );
      db.run(
        `DELETE FROM ${table} WHERE job_id = ? AND step = ? AND host > '' AND at < ?`,
        jobId,
        step,
        ofHostsBefore,
      );
    }
}

const ADD_SUMS = `
  INSERT INTO rollups (job_id, step, host, at, shard, latency_max_ms, ${SUM_COLUMNS.join(', ')})
  VALUES (?, ?, ?, ?, 0, ?, ${SUM_COLUMNS.map(() => '?').join(', ')})
  ON CONFLICT (${ROW_KEY.join(', ')}) DO UPDATE SET
    latency_max_ms = max(latency_max_ms, excluded.latency_max_ms),
    ${SUM_COLUMNS.map((name) => `${name} = ${name} + excluded.${name}`).join(', ')}`;

const ADD_COUNT = `
  INSERT INTO rollup_counts (job_id, step, host, at, shard, name, amount) VALUES (?, ?, ?, ?, 0, ?, ?)
  ON CONFLICT (${COUNT_KEY.join(', ')}) DO UPDATE SET amount = amount + excluded.amount`;
