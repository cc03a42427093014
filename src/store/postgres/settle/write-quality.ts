import type { QualityDelta } from '../../../core/batch/outcome.ts';
import { LIMITS } from '../../../core/limits.ts';
import { pipelined, type Transaction } from '../connection/database.ts';
import { cleanText, toRows } from '../connection/rows.ts';

/** Adds to what the records of a pass look like. */
export async function addQuality(
  tx: Transaction,
  jobId: number,
  pass: number,
  deltas: readonly QualityDelta[],
): Promise<void> {
  if (deltas.length === 0) return;
  const routes = new Map<string, Required<Omit<QualityDelta, 'filled'>>>();
  const fields = new Map<string, { route: string; field: string; count: number }>();
  for (const { route, records, invalid, blank = 0, filled } of deltas) {
    const sum = routes.get(route) ?? { route, records: 0, invalid: 0, blank: 0 };
    sum.records += records;
    sum.invalid += invalid;
    sum.blank += blank;
    routes.set(route, sum);
    for (const [name, count] of Object.entries(filled)) {
      const field = cleanText(name);
      const key = `${route}\n${field}`;
      fields.set(key, { route, field, count: (fields.get(key)?.count ?? 0) + count });
    }
  }
  // Routes have the same fields most of the time. Their rows are locked before, so no other settle adds some meanwhile.
  const [, known] = await pipelined<[unknown, { route: string; field: string }[]]>(
    tx.run(ADD_ROUTES, jobId, pass, toRows([...routes.values()])),
    fields.size === 0 ? Promise.resolve([]) : tx.run(ADD_FIELDS, jobId, pass, toRows([...fields.values()])),
  );
  for (const { route, field } of known) fields.delete(`${route}\n${field}`);
  if (fields.size > 0) await tx.run(INSERT_FIELDS, jobId, pass, toRows([...fields.values()]));
}

export async function deleteQuality(tx: Transaction, jobId: number, pass: number): Promise<void> {
  await tx.run('DELETE FROM quality WHERE job_id = $1 AND pass = $2', jobId, pass);
  await tx.run('DELETE FROM quality_fields WHERE job_id = $1 AND pass = $2', jobId, pass);
}

const ADD_ROUTES = `
  INSERT INTO quality (job_id, pass, route, records, invalid, blank)
  SELECT $1, $2, route, records, invalid, blank
  FROM json_to_recordset($3::json) AS delta (route text, records bigint, invalid bigint, blank bigint) ORDER BY route
  ON CONFLICT (job_id, pass, route) DO UPDATE SET records = quality.records + excluded.records,
    invalid = quality.invalid + excluded.invalid, blank = quality.blank + excluded.blank`;

const ADD_FIELDS = `
  UPDATE quality_fields SET filled = quality_fields.filled + delta.count
  FROM json_to_recordset($3::json) AS delta (route text, field text, count bigint)
  WHERE job_id = $1 AND pass = $2 AND quality_fields.route = delta.route AND md5(quality_fields.field) = md5(delta.field)
  RETURNING delta.route, delta.field`;

/** New ones, while there are not too many. */
const INSERT_FIELDS = `
  INSERT INTO quality_fields (job_id, pass, route, field, filled)
  SELECT $1, $2, route, field, count FROM (
    SELECT route, field, count, row_number() OVER (PARTITION BY route ORDER BY n)
      + (SELECT count(*) FROM quality_fields AS other
         WHERE other.job_id = $1 AND other.pass = $2 AND other.route = delta.route) AS place
    FROM (SELECT route, field, count, row_number() OVER () AS n
          FROM json_to_recordset($3::json) AS delta (route text, field text, count bigint)) AS delta
  ) AS delta
  WHERE place <= ${LIMITS.qualityFieldsMax}`;
