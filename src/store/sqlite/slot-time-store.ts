import type { SlotAccount } from '../../core/explain/explain.ts';
import { SLOT_TIME_RUNS_MAX, type SlotTimeStore } from '../../ports/store/slot-time-store.ts';
import type { Database } from './connection/database.ts';

export class SqliteSlotTimeStore implements SlotTimeStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  async save(jobId: number, run: string, account: SlotAccount): Promise<void> {
    this.#db.transaction(() => {
      const savedAt = Math.floor(account.at);
      if (this.#db.run(UPDATE_ROW, JSON.stringify(account), savedAt, jobId, run) > 0) return;
      this.#db.run(INSERT_ROW, jobId, run, JSON.stringify(account), savedAt);
      this.#db.run(DELETE_OLD, jobId, jobId, SLOT_TIME_RUNS_MAX);
    });
  }

  async load(jobId: number): Promise<SlotAccount[]> {
    const rows = this.#db.all<{ account: string }>(
      'SELECT account FROM slot_times WHERE job_id = ? ORDER BY saved_at DESC, run',
      jobId,
    );
    return rows.map(({ account }) => JSON.parse(account));
  }
}

const UPDATE_ROW = 'UPDATE slot_times SET account = ?, saved_at = ? WHERE job_id = ? AND run = ?';
const INSERT_ROW = 'INSERT INTO slot_times (job_id, run, account, saved_at) VALUES (?, ?, ?, ?)';

const DELETE_OLD = `
  DELETE FROM slot_times WHERE job_id = ? AND run NOT IN
    (SELECT run FROM slot_times WHERE job_id = ? ORDER BY saved_at DESC, run LIMIT ?)`;
