import type { QualityDelta } from '../../../core/batch/outcome.ts';
import { LIMITS } from '../../../core/limits.ts';
import type { Database } from '../connection/database.ts';

/** Adds to what the records of a pass look like. */
export function addQuality(db: Database, jobId: number, pass: number, deltas: readonly QualityDelta[]): void {
  for (const { route, records, invalid, blank = 0, filled } of deltas) {
    db.run(ADD_ROUTE, jobId, pass, route, records, invalid, blank);
    for (const [field, count] of Object.entries(filled)) {
      if (db.run(ADD_FIELD, count, jobId, pass, route, field) > 0) continue;
      const known = db.get<{ count: number }>(COUNT_FIELDS, jobId, pass, route)!;
      if (known.count < LIMITS.qualityFieldsMax) db.run(INSERT_FIELD, jobId, pass, route, field, count);
    }
  }
}

export function deleteQuality(db: Database, jobId: number, pass: number): void {
  db.run('DELETE FROM quality WHERE job_id = ? AND pass = ?', jobId, pass);
  db.run('DELETE FROM quality_fields WHERE job_id = ? AND pass = ?', jobId, pass);
}

const ADD_ROUTE = `
  INSERT INTO quality (job_id, pass, route, records, invalid, blank) VALUES (?, ?, ?, ?, ?, ?)
  ON CONFLICT (job_id, pass, route) DO UPDATE SET records = records + excluded.records,
    invalid = invalid + excluded.invalid, blank = blank + excluded.blank`;

const ADD_FIELD = `
  UPDATE quality_fields SET filled = filled + ? WHERE job_id = ? AND pass = ? AND route = ? AND field = ?`;

const COUNT_FIELDS = `
  SELECT count(*) AS count FROM quality_fields WHERE job_id = ? AND pass = ? AND route = ?`;

const INSERT_FIELD = `
  INSERT INTO quality_fields (job_id, pass, route, field, filled) VALUES (?, ?, ?, ?, ?)`;
