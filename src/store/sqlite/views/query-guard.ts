import { randomBytes } from 'node:crypto';
import { constants, type DatabaseSync } from 'node:sqlite';
import { readTokens } from './query-tokens.ts';

/** What queries may read. */
const VIEWS = ['seine_tasks', 'seine_records'];
/** Tables that SQLite makes of a value of the query itself. */
const OF_VALUES = new Set(['json_each', 'json_tree']);

/** The part of a connection that a guarded query may use. */
interface GuardedConnection {
  /** Names that cannot be guessed: a query that names a table of its own as one of ours would pass for it. */
  spool: string;
  /** Throws where a query reads anything but the views. To be asked before it is prepared. */
  check(sql: string): void;
}

/**
 * Makes a connection that can read the views and nothing else. SQLite says on behalf of which view a table is read, but
 * by name, and a query can give that name to a part of its own: so the views that are trusted have random names, and the
 * known names lead to them.
 */
export function guardConnection(db: DatabaseSync): GuardedConnection {
  const mark = randomBytes(12).toString('hex');
  const spool = `spool_${mark}`;
  const trusted = new Set<string>();
  for (const view of VIEWS) {
    const { sql } = db
      .prepare("SELECT sql FROM main.sqlite_schema WHERE type = 'view' AND name = ?")
      .get(view) as {
      sql: string;
    };
    const body = sql.slice(sql.search(/\bAS\b/i) + 2);
    db.exec(
      `CREATE TEMP VIEW ${view}_${mark} AS ${body}; CREATE TEMP VIEW ${view} AS SELECT * FROM ${view}_${mark}`,
    );
    trusted.add(`${view}_${mark}`);
  }
  db.exec(`CREATE TEMP TABLE ${spool} (id INTEGER PRIMARY KEY, row BLOB NOT NULL)`);
  // Node 22 has no authorizer.
  if (typeof db.setAuthorizer !== 'function') return { spool, check: checkerOf(db) };

  const tables = tablesOf(db, trusted);
  const names = namesOf(db);
  const isTable = (name: string) => names.has(name) || OF_SQLITE.test(name);
  const isReadable = (table: string, column: string, view: string | null) =>
    (view !== null && trusted.has(view)) ||
    VIEWS.includes(table) ||
    trusted.has(table) ||
    table === spool ||
    OF_VALUES.has(table) ||
    // Rows are also counted without a column of them, and SQLite does not say then for which view. What is no table is a
    // name within the query.
    (column === '' && (tables.has(table) || !isTable(table.toLowerCase())));
  db.setAuthorizer((action, first, second, _database, view) => {
    if (action === constants.SQLITE_READ) return verdict(isReadable(first ?? '', second ?? '', view));
    if (action === constants.SQLITE_INSERT) return verdict(first === spool);
    if (action === constants.SQLITE_FUNCTION) return verdict(second !== 'load_extension');
    return verdict(HARMLESS.has(action));
  });
  return { spool, check() {} };
}

const HARMLESS = new Set([constants.SQLITE_SELECT, constants.SQLITE_RECURSIVE, constants.SQLITE_TRANSACTION]);

function verdict(isAllowed: boolean): number {
  return isAllowed ? constants.SQLITE_OK : constants.SQLITE_DENY;
}

/** Tables that the views are made of. */
function tablesOf(db: DatabaseSync, views: Iterable<string>): Set<string> {
  const tables = new Set<string>();
  db.setAuthorizer((action, table) => {
    if (action === constants.SQLITE_READ && table !== null) tables.add(table);
    return constants.SQLITE_OK;
  });
  for (const view of views) db.prepare(`SELECT * FROM ${view}`);
  return tables;
}

/** Every table, index and view, in lower case. */
function namesOf(db: DatabaseSync): Set<string> {
  const rows = db.prepare('SELECT lower(name) AS name FROM main.sqlite_schema').all();
  return new Set(rows.map(({ name }) => String(name)));
}

/** Without an authorizer a query that names a table is refused, even where the name is only text. */
function checkerOf(db: DatabaseSync): (sql: string) => void {
  const names = namesOf(db);
  for (const view of VIEWS) names.delete(view);
  return (sql) => refuseNames(sql, names);
}

/** Tables and functions of SQLite itself that tell more than the views. */
const OF_SQLITE = /^(sqlite_|pragma_|dbstat$|load_extension$)/;

/** Throws where a word of a query is one of the names. */
export function refuseNames(sql: string, names: ReadonlySet<string>): void {
  for (const token of readTokens(sql)) {
    const name = token.toLowerCase();
    if (names.has(name) || OF_SQLITE.test(name)) throw new Error(`access to ${name} is prohibited`);
  }
}
