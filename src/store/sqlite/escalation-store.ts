import type { EscalationRow, EscalationStore } from '../../ports/store/escalation-store.ts';
import type { Database } from './connection/database.ts';

export class SqliteEscalationStore implements EscalationStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  async load(jobId: number, limit: number): Promise<EscalationRow[]> {
    const rows = this.#db.all<{ host: string; template: string; stats: string }>(
      'SELECT host, template, stats FROM escalations WHERE job_id = ? ORDER BY host, template LIMIT ?',
      jobId,
      limit,
    );
    return rows.map(({ host, template, stats }) => ({ host, template, stats: JSON.parse(stats) }));
  }

  async save(jobId: number, rows: readonly EscalationRow[]): Promise<void> {
    this.#db.transaction(() => {
      for (const { host, template, stats } of rows) {
        if (stats === null) this.#db.run(DELETE_ROW, jobId, host, template);
        else this.#db.run(UPSERT_ROW, jobId, host, template, JSON.stringify(stats));
      }
    });
  }
}

const DELETE_ROW = 'DELETE FROM escalations WHERE job_id = ? AND host = ? AND template = ?';

const UPSERT_ROW = `
  INSERT INTO escalations (job_id, host, template, stats) VALUES (?, ?, ?, ?)
  ON CONFLICT (job_id, host, template) DO UPDATE SET stats = excluded.stats`;
