import type { DatabaseSync } from 'node:sqlite';
import { MIGRATIONS } from '../../src/store/sqlite/migrations/migrations.ts';

/** Runs every migration in an empty database, and says in SQL what is there then. */
export function migratedTables(database: DatabaseSync): string {
  database.function('record_hash', (_record) => {
    throw new Error('a new database has no records');
  });
  for (const { sql } of MIGRATIONS) database.exec(sql);
  return describeTables(database);
}

export function describeTables(database: DatabaseSync): string {
  const made = database
    .prepare(
      "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite~_%' ESCAPE '~'",
    )
    .all() as { type: string; name: string; sql: string }[];
  const rows = made
    .filter(({ type }) => type === 'table')
    .flatMap(({ name }) => rowsOf(database, name).map((values) => `INSERT INTO ${name} VALUES (${values})`));
  return [...made.map(({ sql }) => sql), ...rows].map((statement) => `${statement};`).join('\n');
}

function rowsOf(database: DatabaseSync, table: string): string[] {
  const columns = database.prepare('SELECT name FROM pragma_table_info(?)').all(table) as { name: string }[];
  const values = columns.map(({ name }) => `quote("${name}")`).join(" || ', ' || ");
  const rows = database.prepare(`SELECT ${values} AS row FROM "${table}"`).all() as { row: string }[];
  return rows.map(({ row }) => row);
}
