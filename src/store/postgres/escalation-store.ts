import type { EscalationRow, EscalationStore } from '../../ports/store/escalation-store.ts';
import type { Database } from './connection/database.ts';
import { toRows } from './connection/rows.ts';

export class PostgresEscalationStore implements EscalationStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  async load(jobId: number, limit: number): Promise<EscalationRow[]> {
    const rows = await this.#db.read<{ host: string; template: string; stats: string }>(
      'SELECT host, template, stats FROM escalations WHERE job_id = $1 ORDER BY host, template LIMIT $2',
      jobId,
      limit,
    );
    return rows.map(({ host, template, stats }) => ({ host, template, stats: JSON.parse(stats) }));
  }

  async save(jobId: number, rows: readonly EscalationRow[]): Promise<void> {
    if (rows.length === 0) return;
    const kept = rows.filter(({ stats }) => stats !== null);
    const gone = rows.filter(({ stats }) => stats === null);
    await this.#db.write(async (tx) => {
      if (gone.length > 0) await tx.run(DELETE_ROWS, jobId, toRows(gone));
      const texts = kept.map(({ host, template, stats }) => ({
        host,
        template,
        stats: JSON.stringify(stats),
      }));
      if (kept.length > 0) await tx.run(UPSERT_ROWS, jobId, toRows(texts));
    });
  }
}

const DELETE_ROWS = `
  DELETE FROM escalations USING json_to_recordset($2::json) AS gone (host text, template text)
  WHERE escalations.job_id = $1 AND escalations.host = gone.host AND escalations.template = gone.template`;

const UPSERT_ROWS = `
  INSERT INTO escalations (job_id, host, template, stats)
  SELECT $1, host, template, stats FROM json_to_recordset($2::json) AS row (host text, template text, stats text)
  ORDER BY host, template
  ON CONFLICT (job_id, host, template) DO UPDATE SET stats = excluded.stats`;
