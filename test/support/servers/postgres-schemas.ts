import pg from 'pg';
import type { Store } from '../../../src/ports/store.ts';
import { openPostgresStore } from '../../../src/store/postgres/postgres-store.ts';

/**
 * A place for each test without the cost of making one: the tables of a place that no longer counts are emptied and
 * given to the next. Making new ones took about half of the time of a test, and `postgres-open.test.ts` has tests of that.
 */
export class PostgresSchemas {
  readonly #url: string;
  readonly #client: pg.Client;
  readonly #schemas = new Map<string, string>();
  /** Made, and used by nobody now. */
  readonly #free: string[] = [];
  #made = 0;

  private constructor(url: string, client: pg.Client) {
    this.#url = url;
    this.#client = client;
  }

  static async open(url: string): Promise<PostgresSchemas> {
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    return new PostgresSchemas(url, client);
  }

  async openStore(place: string): Promise<Store> {
    let schema = this.#schemas.get(place);
    if (schema === undefined) {
      schema = this.#free.pop() ?? `t${this.#made++}`;
      this.#schemas.set(place, schema);
    }
    const url = new URL(this.#url);
    url.searchParams.set('schema', schema);
    return openPostgresStore(url.href, { connections: 3 });
  }

  /** Empties the place and those below it. The stores there are closed. */
  async forget(place: string): Promise<void> {
    for (const [known, schema] of this.#schemas) {
      if (known !== place && !known.startsWith(`${place}/`)) continue;
      this.#schemas.delete(known);
      const { rows } = await this.#client.query<{ text: string }>(
        `SELECT 'TRUNCATE ' || string_agg(format('%I.%I', schemaname, tablename), ', ') AS text FROM pg_tables
         WHERE schemaname = $1 AND tablename <> 'migrations' HAVING count(*) > 0
         UNION ALL SELECT format('ALTER SEQUENCE %I.%I RESTART', schemaname, sequencename) FROM pg_sequences
         WHERE schemaname = $1`,
        [schema],
      );
      await this.#client.query(rows.map(({ text }) => text).join(';'));
      this.#free.push(schema);
    }
  }

  close(): Promise<void> {
    return this.#client.end();
  }
}
