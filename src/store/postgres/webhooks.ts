import type { ReadValue } from '../shared/views/reader.ts';
import type { Outbox } from '../shared/webhooks/outbox.ts';
import type { WebhookDatabase } from '../shared/webhooks/webhook-store.ts';
import type { Database, Transaction } from './connection/database.ts';

export const POSTGRES_OUTBOX: WebhookDatabase['dialect'] = {
  numbersOf1: 'SELECT CAST(value AS bigint) FROM json_array_elements_text($1::json)',
  deliveriesOf1: 'json_to_recordset($1::json) AS row (m text, e text, t text, j bigint, b text, o text)',
  textsOf4: 'SELECT value FROM json_array_elements_text($4::json)',
  skipLocked: 'FOR UPDATE SKIP LOCKED',
};

/** Inside somebody's transaction. */
export async function writeOutbox(tx: Transaction, outbox: Outbox): Promise<void> {
  for (let step = outbox.next(); !step.done; )
    step = outbox.next(await tx.run(step.value.text, ...step.value.values));
}

export class PostgresWebhookDatabase implements WebhookDatabase {
  readonly dialect = POSTGRES_OUTBOX;
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  run<T>(text: string, ...values: ReadValue[]): Promise<T[]> {
    return this.#db.write((tx) => tx.run<T>(text, ...values));
  }

  /** A generator runs once, and a transaction that lost against others runs again. */
  async write(make: () => Outbox): Promise<void> {
    await this.#db.write((tx) => writeOutbox(tx, make()));
  }
}
