import { afterAll, beforeAll } from 'vitest';
import { runStoreContract } from '../../../contract/store-contract.ts';
import { PostgresSchemas } from '../../../support/servers/postgres-schemas.ts';
import { type PostgresServer, startPostgres } from '../../../support/servers/services.ts';

let server: PostgresServer;
let schemas: PostgresSchemas;
beforeAll(async () => {
  // Nobody kills this server: nothing has to survive it.
  server = await startPostgres({ settings: { synchronous_commit: 'off', full_page_writes: 'off' } });
  schemas = await PostgresSchemas.open(server.url);
});
afterAll(async () => {
  await schemas.close();
  await server.stop();
});

/** Each place is a schema of its own in one database. */
runStoreContract(
  'postgres',
  (place) => schemas.openStore(place),
  (place) => schemas.forget(place),
  // A run takes a third of a second here. Each `npm test` has another seed.
  { modelRuns: 12 },
);
