import { SeineError } from '../../../core/errors.ts';
import type { SinkSpec } from '../../../core/job-schema/sink.ts';
import { sinkRows, type WrittenRecord } from '../../../core/record-changes/sink-rows.ts';
import type { Transaction } from '../connection/database.ts';

/** Writes records into the table of the user. Rows that do not fit it are put aside, with the reason. */
export async function writeSink(
  tx: Transaction,
  sink: SinkSpec,
  job: { id: number; name: string },
  records: readonly WrittenRecord[],
): Promise<void> {
  if (records.length === 0) return;
  const rows = sinkRows(sink, job.name, records);
  await tx.run('SELECT seine_sink($1, $2, $3, $4::text[])', job.id, sink.table, statementFor(sink), rows);
}

/** The row type of the table itself converts each value. */
function statementFor({ table, columns, key }: SinkSpec): string {
  const target = shownTable(table);
  const names = Object.keys(columns).map(quoted);
  const updates = Object.keys(columns)
    .filter((name) => !key.includes(name))
    .map((name) => `${quoted(name)} = excluded.${quoted(name)}`);
  const conflict = updates.length > 0 ? `DO UPDATE SET ${updates.join(', ')}` : 'DO NOTHING';
  return `INSERT INTO ${target} (${names.join(', ')})
    SELECT ${names.join(', ')} FROM jsonb_populate_recordset(NULL::${target}, $1)
    ON CONFLICT (${key.map(quoted).join(', ')}) ${conflict}`;
}

function partsOf(table: string): [schema: string, name: string] {
  const [first, second] = table.split('.') as [string, string | undefined];
  return second === undefined ? ['public', first] : [first, second];
}

const quoted = (name: string) => `"${name.replaceAll('"', '""')}"`;
const shownTable = (table: string) => partsOf(table).map(quoted).join('.');

/** Before a run: what is missing would otherwise be found with its first page. */
export async function checkSinkTable(
  run: Transaction['run'],
  { table, columns, key }: SinkSpec,
  ownSchema: string,
): Promise<void> {
  const [schema, name] = partsOf(table);
  const [state] = await run('SELECT 1 WHERE to_regclass($1) IS NOT NULL', `${quoted(schema)}.seine_tasks`);
  // Whoever writes a job must not write the state of others, also not of another Seine in the same database.
  if (schema === ownSchema || state)
    throw new SeineError(`sink.table: ${table} is in a schema of Seine itself`, {
      hint: 'use a table of your own, in another schema',
    });
  const found = await run<{ column: string }>(COLUMNS, schema, name);
  if (found.length === 0)
    throw new SeineError(`sink.table: there is no table ${schema}.${name}, or it cannot be written`, {
      hint: `create it in the database of the store: CREATE TABLE ${schema}.${name} (…)`,
    });
  const known = new Set(found.map(({ column }) => column));
  const missing = Object.keys(columns).find((column) => !known.has(column));
  if (missing !== undefined)
    throw new SeineError(`sink.columns: ${schema}.${name} has no column ${missing}`, {
      hint: `its columns are ${[...known].join(', ')}`,
    });
  const [unique] = await run(UNIQUE, schema, name, [...key].sort());
  if (!unique)
    throw new SeineError(`sink.key: ${schema}.${name} has no unique index on ${key.join(', ')}`, {
      hint: `create one: CREATE UNIQUE INDEX ON ${schema}.${name} (${key.join(', ')})`,
    });
}

const COLUMNS = `
  SELECT attname AS column FROM pg_catalog.pg_attribute JOIN pg_catalog.pg_class ON pg_class.oid = attrelid
    JOIN pg_catalog.pg_namespace ON pg_namespace.oid = relnamespace
  WHERE nspname = $1 AND relname = $2 AND attnum > 0 AND NOT attisdropped AND relkind IN ('r', 'p')
    AND has_table_privilege(pg_class.oid, 'INSERT, UPDATE') AND has_schema_privilege(pg_namespace.oid, 'USAGE')
  ORDER BY attnum`;

const UNIQUE = `
  SELECT 1 FROM pg_catalog.pg_index JOIN pg_catalog.pg_class ON pg_class.oid = indrelid
    JOIN pg_catalog.pg_namespace ON pg_namespace.oid = relnamespace
  WHERE nspname = $1 AND relname = $2 AND indisunique AND indpred IS NULL
    AND (SELECT array_agg(attname::text ORDER BY attname::text) FROM pg_catalog.pg_attribute
         WHERE attrelid = indrelid AND attnum = ANY (indkey)) = $3::text[]
  LIMIT 1`;
