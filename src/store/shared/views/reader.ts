/**
 * How the reading half of a store asks its database. The statements are the same for all: written as PostgreSQL reads
 * them, with `$1` for values, CAST instead of `::`, and COLLATE "C" where text is sorted. SQLite's reader translates.
 */
export interface Reader {
  all<T>(text: string, ...values: ReadValue[]): Promise<T[]> | T[];
  /** The same for statements that look at many rows. */
  allSlowly<T>(text: string, ...values: ReadValue[]): Promise<T[]> | T[];
  /** Where statements truly differ. */
  readonly dialect: Dialect;
}

export type ReadValue = string | number | null;

export interface Dialect {
  /** What the index over records has of a key, or of a value that is compared with one. */
  recordKey(key: string): string;
  /** The same for the index over earlier versions, in which their id comes next. */
  versionKey(key: string): string;
  /**
   * The number up to which all attempts are there that ever will be. Where transactions run side by side, one that has
   * higher numbers may be written first.
   */
  lastAttempt(reader: Pick<Reader, 'all'>): Promise<number>;
  /** The function that finds a text in another, counted from 1, or gives 0. */
  indexOf: string;
}

/** Rows per page: no transaction stays open, so exports never hold back the log or the vacuum of a running job. */
export const PAGE_ROWS = 1_000;

/** Page after page until one is empty; `read` gets the last row of the page before. */
export async function* rowPages<T>(
  read: (last: T | undefined) => Promise<T[]> | T[],
): AsyncGenerator<T[], void, void> {
  let last: T | undefined;
  while (true) {
    const rows = await read(last);
    if (rows.length === 0) return;
    yield rows;
    last = rows.at(-1);
  }
}
