import { writeFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { migratedTables } from '../../test/support/migrated-tables.ts';

/** Writes the tables that the migrations of SQLite come to into src/; run it after adding a migration. */
const CONSTANT = 'NEW_TABLES';
const database = new DatabaseSync(':memory:');
const sql = migratedTables(database).replaceAll('\\', '\\\\').replaceAll('`', '\\`').replaceAll('${', '\\${');
writeFileSync(
  'src/store/sqlite/migrations/new-tables.ts',
  `/**
 * The tables of an empty database after all migrations, written by scripts/build/write-new-tables.ts. Running the
 * migrations one by one takes ten times as long, because SQLite reads all tables again after each change of one.
 */
export const ${CONSTANT} = \`
${sql}
\`;
`,
);
