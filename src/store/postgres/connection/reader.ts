import type { Dialect, Reader, ReadValue } from '../../shared/views/reader.ts';
import { lastAttempt } from './attempt-numbers.ts';
import type { Database } from './database.ts';

/** Keys may be too long for an index: it has their beginning, and for records their hash. */
export const POSTGRES_DIALECT: Dialect = {
  recordKey: (key) => `left(${key}, 500), md5(${key})`,
  versionKey: (key) => `left(${key}, 500)`,
  lastAttempt,
  indexOf: 'strpos',
};

/**
 * Reads for people have connections of their own, so that they do not wait behind settles. Slow ones have one besides, so
 * that quick ones do not wait behind them.
 */
export interface ReadDatabases {
  quick: Pick<Database, 'read'>;
  slow: Pick<Database, 'readSlowly'>;
}

export class PostgresReader implements Reader {
  readonly dialect = POSTGRES_DIALECT;
  readonly #reads: ReadDatabases;

  constructor(reads: ReadDatabases) {
    this.#reads = reads;
  }

  all<T>(text: string, ...values: ReadValue[]): Promise<T[]> {
    return this.#reads.quick.read<T>(text, ...values);
  }

  allSlowly<T>(text: string, ...values: ReadValue[]): Promise<T[]> {
    return this.#reads.slow.readSlowly<T>(text, ...values);
  }
}
