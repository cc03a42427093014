import type { SourcePosition } from '../../../ports/store.ts';
import type { Database } from '../connection/database.ts';

/** How far a source has been read; belongs into the transaction that writes what was read. */
export function writeSource(db: Database, jobId: number, source: SourcePosition): void {
  db.run(
    UPSERT_SOURCE,
    jobId,
    source.source,
    source.position,
    source.done ? 1 : 0,
    source.rows,
    source.rejected,
  );
}

const UPSERT_SOURCE = `
  INSERT INTO sources (job_id, source, position, done, rows, rejected) VALUES (?, ?, ?, ?, ?, ?)
  ON CONFLICT (job_id, source) DO UPDATE SET position = excluded.position, done = excluded.done, rows = excluded.rows,
    rejected = excluded.rejected`;
