import { DatabaseSync } from 'node:sqlite';

/** Lines that are sorted outside of memory, by their bytes: SQLite keeps them in a temporary file of its own. */
export class SortedLines {
  /** Without a name it is a file that is gone when it is closed. */
  readonly #db = new DatabaseSync('');
  readonly #insert;

  constructor() {
    this.#db.exec(
      'PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; CREATE TABLE lines (line TEXT NOT NULL)',
    );
    this.#insert = this.#db.prepare('INSERT INTO lines VALUES (?)');
  }

  /** Those of one file: each for itself would be a transaction. */
  add(lines: Iterable<string>): void {
    this.#db.exec('BEGIN');
    for (const line of lines) this.#insert.run(line);
    this.#db.exec('COMMIT');
  }

  /** The same line comes once. */
  *[Symbol.iterator](): Generator<string> {
    for (const row of this.#db.prepare('SELECT DISTINCT line FROM lines ORDER BY line').iterate())
      yield String(row.line);
  }

  close(): void {
    this.#db.close();
  }
}
