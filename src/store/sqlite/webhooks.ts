import type { ReadValue } from '../shared/views/reader.ts';
import type { Outbox } from '../shared/webhooks/outbox.ts';
import type { WebhookDatabase } from '../shared/webhooks/webhook-store.ts';
import type { Database } from './connection/database.ts';
import { SqliteReader } from './connection/reader.ts';

export const SQLITE_OUTBOX: WebhookDatabase['dialect'] = {
  numbersOf1: 'SELECT value FROM json_each($1)',
  deliveriesOf1: `(SELECT value ->> '$.m' AS m, value ->> '$.e' AS e, value ->> '$.t' AS t, value ->> '$.j' AS j,
    value ->> '$.b' AS b, value ->> '$.o' AS o FROM json_each($1))`,
  textsOf4: 'SELECT value FROM json_each($4)',
  skipLocked: '',
};

/** They remember what they have translated. */
const readers = new WeakMap<Database, SqliteReader>();

/** Inside somebody's transaction. */
export function writeOutbox(db: Database, outbox: Outbox): void {
  const reader = readers.get(db) ?? new SqliteReader(db);
  readers.set(db, reader);
  for (let step = outbox.next(); !step.done; )
    step = outbox.next(reader.all(step.value.text, ...step.value.values));
}

export class SqliteWebhookDatabase implements WebhookDatabase {
  readonly dialect = SQLITE_OUTBOX;
  readonly #db: Database;
  readonly #reader: SqliteReader;

  constructor(db: Database) {
    this.#db = db;
    this.#reader = new SqliteReader(db);
  }

  async run<T>(text: string, ...values: ReadValue[]): Promise<T[]> {
    return this.#reader.all<T>(text, ...values);
  }

  async write(make: () => Outbox): Promise<void> {
    this.#db.transaction(() => writeOutbox(this.#db, make()));
  }
}
