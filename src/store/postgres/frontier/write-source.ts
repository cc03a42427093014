import type { SourcePosition } from '../../../ports/store.ts';
import type { Transaction } from '../connection/database.ts';

/** How far a source has been read; belongs into the transaction that writes what was read. */
export async function writeSource(tx: Transaction, jobId: number, source: SourcePosition): Promise<void> {
  const { position, done, rows, rejected } = source;
  await tx.run(UPSERT_SOURCE, jobId, source.source, position, done, rows, rejected);
}

const UPSERT_SOURCE = `
  INSERT INTO sources (job_id, source, position, done, rows, rejected) VALUES ($1, $2, $3, $4, $5, $6)
  ON CONFLICT (job_id, source) DO UPDATE SET position = excluded.position, done = excluded.done, rows = excluded.rows,
    rejected = excluded.rejected`;
