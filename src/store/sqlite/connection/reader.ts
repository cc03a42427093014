import type { Dialect, Reader, ReadValue } from '../../shared/views/reader.ts';
import type { Database } from './database.ts';

export const SQLITE_DIALECT: Dialect = {
  recordKey: (key) => key,
  versionKey: (key) => key,
  // One transaction writes at a time.
  async lastAttempt(reader) {
    const [row] = await reader.all<{ last: number | null }>('SELECT max(id) AS last FROM attempts');
    return row?.last ?? 0;
  },
  indexOf: 'instr',
};

interface Translation {
  sql: string;
  /** Which of the given values each `?` takes, from 0. */
  order: number[];
}

export class SqliteReader implements Reader {
  readonly dialect = SQLITE_DIALECT;
  readonly #db: Database;
  readonly #translations = new Map<string, Translation>();

  constructor(db: Database) {
    this.#db = db;
  }

  all<T>(text: string, ...values: ReadValue[]): T[] {
    let translation = this.#translations.get(text);
    if (!translation) {
      translation = translate(text);
      this.#translations.set(text, translation);
    }
    return this.#db.all<T>(translation.sql, ...translation.order.map((index) => values[index]!));
  }

  allSlowly<T>(text: string, ...values: ReadValue[]): T[] {
    return this.all(text, ...values);
  }
}

/** Node.js binds values to `?` alone; texts of SQLite are sorted as with COLLATE "C" anyway. */
function translate(text: string): Translation {
  const order: number[] = [];
  const sql = text.replaceAll(' COLLATE "C"', '').replace(/\$(\d+)/g, (_, number) => {
    order.push(Number(number) - 1);
    return '?';
  });
  return { sql, order };
}
