import type { Dialect, Reader, ReadValue } from '../../shared/views/reader.ts';
import type { Database } from './database.ts';

/** Keys may be too long for an index: it has their beginning, and for records their hash. */
export const POSTGRES_DIALECT: Dialect = {
  recordKey: (key) => `left(${key}, 500), md5(${key})`,
  versionKey: (key) => `left(${key}, 500)`,
  indexOf: 'strpos',
};

export class PostgresReader implements Reader {
  readonly dialect = POSTGRES_DIALECT;
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  all<T>(text: string, ...values: ReadValue[]): Promise<T[]> {
    return this.#db.read<T>(text, ...values);
  }

  allSlowly<T>(text: string, ...values: ReadValue[]): Promise<T[]> {
    return this.#db.readSlowly<T>(text, ...values);
  }
}
