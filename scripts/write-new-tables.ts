import { writeFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { migratedTables } from '../test/support/migrated-tables.ts';

/** Writes the tables that the migrations of SQLite come to into src/; run it after adding a migration. */
const CONSTANT = 'NEW_TABLES';
const database = new DatabaseSync(':memory:');
const sql = migratedTables(database).replaceAll('\\', '\\\\').replaceAll('`', '\\`').replaceAll('${', '\\${');
writeFileSync(
  'src/store/sqlite/migrations/new-tables.ts',
  `/**
 * What all migrations come to in an empty database, written by scripts/write-new-tables.ts. One migration after the other
 * takes ten times as long, because SQLite reads all tables again after each change of one.
 */
export const ${CONSTANT} = \`
${sql}
\`;
`,
);
