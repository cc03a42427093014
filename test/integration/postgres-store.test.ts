import { createHash } from 'node:crypto';
import { afterAll, beforeAll } from 'vitest';
import { openPostgresStore } from '../../src/store/postgres/postgres-store.ts';
import { runStoreContract } from '../contract/store-contract.ts';
import { type PostgresServer, startPostgres } from '../support/services.ts';

let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server.stop());

/** Each place is a schema of its own in one database. */
runStoreContract('postgres', async (place) => {
  const url = new URL(server.url);
  url.searchParams.set('schema', `t${createHash('sha256').update(place).digest('hex').slice(0, 20)}`);
  return openPostgresStore(url.href, { connections: 3 });
});
