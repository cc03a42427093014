import type { SlotAccount } from '../../core/explain/explain.ts';
import { SLOT_TIME_RUNS_MAX, type SlotTimeStore } from '../../ports/store/slot-time-store.ts';
import type { Database } from './connection/database.ts';

export class PostgresSlotTimeStore implements SlotTimeStore {
  readonly #db: Database;
  readonly #reads: Database;

  constructor(db: Database, reads: Database) {
    this.#db = db;
    this.#reads = reads;
  }

  async save(jobId: number, run: string, account: SlotAccount): Promise<void> {
    const values = [jobId, run, JSON.stringify(account), Math.floor(account.at)] as const;
    await this.#db.write(async (tx) => {
      const [row] = await tx.run<{ isNew: boolean }>(UPSERT_ROW, ...values);
      if (row?.isNew) await tx.run(DELETE_OLD, jobId, SLOT_TIME_RUNS_MAX);
    });
  }

  async load(jobId: number): Promise<SlotAccount[]> {
    const rows = await this.#reads.read<{ account: string }>(
      'SELECT account FROM slot_times WHERE job_id = $1 ORDER BY saved_at DESC, run',
      jobId,
    );
    return rows.map(({ account }) => JSON.parse(account));
  }
}

const UPSERT_ROW = `
  INSERT INTO slot_times (job_id, run, account, saved_at) VALUES ($1, $2, $3, $4)
  ON CONFLICT (job_id, run) DO UPDATE SET account = excluded.account, saved_at = excluded.saved_at
  RETURNING xmax = 0 AS "isNew"`;

const DELETE_OLD = `
  DELETE FROM slot_times WHERE job_id = $1 AND run NOT IN
    (SELECT run FROM slot_times WHERE job_id = $1 ORDER BY saved_at DESC, run LIMIT $2)`;
