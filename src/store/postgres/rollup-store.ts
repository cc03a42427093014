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
import { type Database, pipelined, type Transaction } from './connection/database.ts';
import { PostgresReader, type ReadDatabases } from './connection/reader.ts';
import { toRows } from './connection/rows.ts';

export class PostgresRollupStore extends ReadRollups implements RollupStore {
  readonly #db: Database;
  readonly #prune = new PruneTimes();

  constructor(db: Database, reads: ReadDatabases) {
    super(new PostgresReader(reads));
    this.#db = db;
  }

  async add(jobId: number, rows: readonly RollupRow[], now: number): Promise<void> {
    const prunes = this.#prune.isDue(jobId, now);
    if (rows.length === 0 && !prunes) return;
    await this.#db.write(async (tx) => {
      await addRollups(tx, jobId, rows);
      if (prunes) await deleteStale(tx, jobId, now);
    });
  }
}

/** Inside somebody's transaction. */
export async function addRollups(tx: Transaction, jobId: number, rows: readonly RollupRow[]): Promise<void> {
  const { sums, counts } = rowsOf(rows);
  const sumRows = sums.map(({ step, host, at, sums: values, latencyMaxMs }) => ({
    step,
    host,
    at,
    latency_max_ms: latencyMaxMs,
    ...Object.fromEntries(SUM_COLUMNS.map((name, index) => [name, values[index]])),
  }));
  await pipelined(
    sums.length === 0 ? Promise.resolve() : tx.run(ADD_SUMS, jobId, tx.shard, toRows(sumRows)),
    counts.length === 0 ? Promise.resolve() : tx.run(ADD_COUNTS, jobId, tx.shard, toRows(counts)),
  );
}

async function deleteStale(tx: Transaction, jobId: number, now: number): Promise<void> {
  const stale = toRows(
    staleRows(now).map(({ step, ofJobBefore, ofHostsBefore }) => ({
      step,
      job: ofJobBefore,
      hosts: ofHostsBefore,
    })),
  );
  await pipelined(
    tx.run(DELETE_STALE('rollups'), jobId, stale),
    tx.run(DELETE_STALE('rollup_counts'), jobId, stale),
  );
}

const ADD_SUMS = `
  INSERT INTO rollups (job_id, step, host, at, shard, latency_max_ms, ${SUM_COLUMNS.join(', ')})
  SELECT $1, step, host, at, $2, latency_max_ms, ${SUM_COLUMNS.join(', ')}
  FROM json_to_recordset($3::json) AS added
    (step integer, host text, at bigint, latency_max_ms bigint, ${SUM_COLUMNS.map((name) => `${name} bigint`).join(', ')})
  ON CONFLICT (${ROW_KEY.join(', ')}) DO UPDATE SET
    latency_max_ms = greatest(rollups.latency_max_ms, excluded.latency_max_ms),
    ${SUM_COLUMNS.map((name) => `${name} = rollups.${name} + excluded.${name}`).join(', ')}`;

const ADD_COUNTS = `
  INSERT INTO rollup_counts (job_id, step, host, at, shard, name, amount)
  SELECT $1, step, host, at, $2, name, amount
  FROM json_to_recordset($3::json) AS added
    (step integer, host text, at bigint, name text, amount double precision)
  ON CONFLICT (${COUNT_KEY.join(', ')}) DO UPDATE SET amount = rollup_counts.amount + excluded.amount`;

const DELETE_STALE = (table: string) => `
  DELETE FROM ${table} USING json_to_recordset($2::json) AS stale (step integer, job bigint, hosts bigint)
  WHERE ${table}.job_id = $1 AND ${table}.step = stale.step
    AND ${table}.at < CASE WHEN ${table}.host = '' THEN stale.job ELSE stale.hosts END`;
