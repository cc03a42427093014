import pg from 'pg';
import type { Store } from '../../../src/ports/store.ts';
import { openPostgresStore } from '../../../src/store/postgres/postgres-store.ts';

/**
 * TRUNCATE makes new files for a table and each of its indexes, which costs more than a whole test: it is for tables
 * that have grown. The order of tables is of no matter to foreign keys as long as triggers are off.
 */
const EMPTY = `
SET session_replication_role = replica;
CREATE FUNCTION pg_temp.empty(place text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE each record;
BEGIN
  FOR each IN
    SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables
    WHERE schemaname = place AND tablename <> 'migrations'
  LOOP
    IF pg_relation_size(each.name) > 64 * 1024 THEN
      EXECUTE 'TRUNCATE ' || each.name || ' CASCADE';
    ELSE
      EXECUTE 'DELETE FROM ' || each.name;
    END IF;
  END LOOP;
  PERFORM setval(format('%I.%I', schemaname, sequencename), start_value, false) FROM pg_sequences
    WHERE schemaname = place;
END $$`;

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
    await client.query(EMPTY);
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
      await this.#client.query('SELECT pg_temp.empty($1)', [schema]);
      this.#free.push(schema);
    }
  }

  close(): Promise<void> {
    return this.#client.end();
  }
}
