import type { ClientConfig } from 'pg';
import type { Logger } from '../../ports/ambient.ts';
import type { Store } from '../../ports/store.ts';
import { atMost, type ConnectionOptions } from './connection/connections.ts';
import { Database } from './connection/database.ts';
import { parseStoreUrl } from './connection/store-url.ts';
import { PostgresEscalationStore } from './escalation-store.ts';
import { ALIVE_MS_DEFAULT, CoordinatorHeartbeats } from './frontier/coordinator-heartbeats.ts';
import { HostIds } from './frontier/host-ids.ts';
import { JobMemories } from './frontier/job-memory.ts';
import { PostgresFrontier } from './frontier-store.ts';
import { PostgresHostStore } from './host-store.ts';
import { PostgresJobStore } from './job-store.ts';
import { prepareDatabase } from './migrations/migrate.ts';
import { PostgresProxyStore } from './proxy-store.ts';
import { PostgresViews } from './views/views.ts';

export interface PostgresStoreOptions {
  passwordFile?: string | null;
  /** Connections at once. */
  connections?: number;
  /** Names a folder whose lock the caller holds: what its last owner held is taken back at once. */
  place?: string | null;
  /** How long a database that does not answer is waited for. */
  patienceMs?: number;
  /** A connection that does not answer for so long is given up; nothing that a job needs takes longer. */
  silenceMs?: number;
  /** How long this process counts as alive after its last heartbeat. */
  aliveMs?: number;
  logger?: Logger;
}

const CONNECTIONS_DEFAULT = 8;
/** Longer than a restart, a failover or an update of the server. */
const PATIENCE_MS_DEFAULT = 600_000;
const SILENCE_MS_DEFAULT = 15_000;
const HEARTBEAT_PATIENCE_MS = 15_000;
const CLOSE_MS = 3_000;
const SILENT: Logger = { info() {}, warn() {}, error() {} };

export async function openPostgresStore(url: string, options: PostgresStoreOptions = {}): Promise<Store> {
  const { logger = SILENT } = options;
  const { default: pg } = await import('pg');
  const connectionOptions: ConnectionOptions = {
    place: parseStoreUrl(url, options.passwordFile ?? null),
    connect: (config: ClientConfig) => new pg.Client(config),
    silenceMs: options.silenceMs ?? SILENCE_MS_DEFAULT,
  };
  await prepareDatabase(connectionOptions);
  const patienceMs = options.patienceMs ?? PATIENCE_MS_DEFAULT;
  const db = new Database({
    ...connectionOptions,
    connections: options.connections ?? CONNECTIONS_DEFAULT,
    patienceMs,
    logger,
  });
  // Heartbeats must not wait behind work, and not for long: the next one comes soon.
  const heartbeatDb = new Database({
    ...connectionOptions,
    connections: 1,
    patienceMs: HEARTBEAT_PATIENCE_MS,
    logger: SILENT,
  });
  const heartbeats = new CoordinatorHeartbeats(heartbeatDb, {
    place: options.place ?? null,
    aliveMs: options.aliveMs ?? ALIVE_MS_DEFAULT,
    logger,
  });
  const memories = new JobMemories(db);
  return {
    jobs: new PostgresJobStore(db, heartbeats),
    frontier: new PostgresFrontier({ db, hosts: new HostIds(db), memories, heartbeats }),
    hosts: new PostgresHostStore(db),
    escalations: new PostgresEscalationStore(db),
    proxies: new PostgresProxyStore(db),
    views: new PostgresViews(db, memories, connectionOptions),
    async close() {
      // A database that does not answer must not keep a process from its end: others clean up behind it.
      await atMost(
        CLOSE_MS,
        heartbeats.leave().then(() => Promise.all([db.forgetWrites(), heartbeatDb.forgetWrites()])),
      );
      await heartbeatDb.close();
      await db.close();
    },
  };
}
