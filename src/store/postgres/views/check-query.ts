import type { Client } from 'pg';
import { SeineError } from '../../../core/errors.ts';

/**
 * Refuses a query that reads anything but the views, or calls a function that does more than compute. The server itself
 * takes the query apart: a view is made of it and thrown away, and its parse tree names every table and function by
 * number, whatever the text looks like. The right to call some functions is not enough of a limit: the owner of the
 * tables may be a superuser, and functions that run SQL from a text, or set the role back, are open to everyone.
 */
export async function checkQuery(client: Client, sql: string, schema: string): Promise<void> {
  await client.query('SAVEPOINT before_check');
  // Prepared, so that it cannot be more than one statement. A view has no two columns of one name, so it has none of the
  // query's. What is a statement here and in the cursor is the same one: it has no bracket too many.
  const inner = sql.replace(/;\s*$/, '');
  const text = `CREATE VIEW ${schema}.seine_checked_query AS SELECT 1 AS found FROM (${inner}\n) AS asked`;
  await client.query({ text, queryMode: 'extended' } as { text: string });
  const { rows } = await client.query<{ refused: string }>(REFUSED, [
    schema,
    OPEN_FUNCTIONS,
    CLOSED_FUNCTIONS,
  ]);
  await client.query('ROLLBACK TO SAVEPOINT before_check');
  const [first] = rows;
  if (first)
    throw new SeineError(`the query failed: it may not use ${first.refused}`, {
      hint: 'a query may use the views seine_tasks and seine_records, and functions that only compute',
    });
}

/** Built-in functions whose result changes, and nothing else. */
const OPEN_FUNCTIONS = [
  'random',
  'clock_timestamp',
  'timeofday',
  'gen_random_uuid',
  'pg_typeof',
  'pg_size_pretty',
];

/** Built-in functions that only read, but the tables, files or settings of the server. */
const CLOSED_FUNCTIONS = '^pg_|_to_xml|^current_setting$|^lo_|^inet_|^ts_stat$|^ts_rewrite$';

/** Built in means made with the database: those that were added since have numbers from 16384 on. */
const REFUSED = `
  WITH tree AS (
    SELECT ev_class, ev_action::text AS text FROM pg_catalog.pg_rewrite
    WHERE ev_class = to_regclass($1 || '.seine_checked_query')
  ), named AS (
    SELECT found[1] AS kind, found[2]::oid AS number
    FROM tree, pg_catalog.regexp_matches(text, ':([a-z]*func|[a-z]*fnoid|[a-z]*funcid|opno|relid|tsmhandler) (\\d+)', 'g') AS found
  )
  SELECT 'the table ' || number::regclass AS refused FROM named, tree
  WHERE kind = 'relid' AND number <> 0 AND number <> ev_class
    AND number NOT IN (to_regclass($1 || '.seine_tasks'), to_regclass($1 || '.seine_records'))
  UNION ALL
  SELECT 'the operator ' || number::regoperator FROM named WHERE kind = 'opno' AND number >= 16384
  UNION ALL
  SELECT 'the function ' || pg_proc.oid::regprocedure FROM named JOIN pg_catalog.pg_proc ON pg_proc.oid = number
  WHERE kind NOT IN ('relid', 'opno') AND proname <> ALL ($2) AND (
    pg_proc.oid >= 16384 OR prosecdef OR provolatile = 'v' OR proname ~ $3
    OR prolang NOT IN (SELECT oid FROM pg_catalog.pg_language WHERE lanname IN ('internal', 'sql'))
  )
  LIMIT 1`;
