import type { ClientConfig } from 'pg';
import type { Logger } from '../../ports/ambient.ts';
import type { Store } from '../../ports/store.ts';
import { SharedAlertStore } from '../shared/alert-store.ts';
import { SharedJobRemovals } from '../shared/job-removals.ts';
import { SharedRequestStore } from '../shared/request-store.ts';
import { SharedWebhookStore } from '../shared/webhooks/webhook-store.ts';
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
import { PostgresKeyStore } from './key-store.ts';
import { prepareDatabase } from './migrations/migrate.ts';
import { PostgresProxyStore } from './proxy-store.ts';
import { PostgresRollupStore } from './rollup-store.ts';
import { checkSinkTable } from './settle/write-sink.ts';
import { PostgresSlotTimeStore } from './slot-time-store.ts';
import { PostgresViews } from './views/views.ts';
import { PostgresWebhookDatabase } from './webhooks.ts';

export interface PostgresStoreOptions {
  passwordFile?: string | null;
  /** Connections for work at once; by default as many as the batches that are out need. */
  connections?: number | null;
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

/** A batch takes seconds and its settle some milliseconds, so several batches share a connection. */
const BATCHES_PER_CONNECTION = 4;
/** Planning and sources need some, however few batches are out. */
const CONNECTIONS_MIN = 4;
/** One process does not keep more of them busy. */
const CONNECTIONS_MAX = 16;
const READ_CONNECTIONS = 2;
/** For callers of a server. */
const API_CONNECTIONS = 4;
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
  const shared = { ...connectionOptions, patienceMs, logger };
  const db = new Database({ ...shared, connections: options.connections ?? CONNECTIONS_MIN });
  const reads = new Database({ ...shared, connections: READ_CONNECTIONS });
  const slowReads = new Database({ ...shared, connections: 1 });
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
  const memories = new JobMemories(reads);
  return {
    jobs: new PostgresJobStore(db, reads, heartbeats),
    frontier: new PostgresFrontier({ db, reads, hosts: new HostIds(db), memories, heartbeats }),
    hosts: new PostgresHostStore(db, reads),
    escalations: new PostgresEscalationStore(db),
    proxies: new PostgresProxyStore(db, reads),
    keys: new PostgresKeyStore(db, reads),
    webhooks: new SharedWebhookStore(new PostgresWebhookDatabase(db)),
    alerts: new SharedAlertStore(new PostgresWebhookDatabase(db)),
    rollups: new PostgresRollupStore(db, { quick: reads, slow: slowReads }),
    slotTimes: new PostgresSlotTimeStore(db, reads),
    requests: new SharedRequestStore(new PostgresWebhookDatabase(db)),
    removals: new SharedJobRemovals(new PostgresWebhookDatabase(db), ['coordinator_jobs', 'sink_rejects']),
    views: new PostgresViews(db, { quick: reads, slow: slowReads }, memories, connectionOptions),
    checkSink: (sink) =>
      checkSinkTable((text, ...values) => reads.read(text, ...values), sink, connectionOptions.place.schema),
    expectBatches(count) {
      if (options.connections == null) db.resize(connectionsFor(count));
    },
    openReads() {
      const own = new Database({ ...shared, connections: API_CONNECTIONS });
      const slow = new Database({ ...shared, connections: 1 });
      return {
        jobs: new PostgresJobStore(own, own, heartbeats),
        hosts: new PostgresHostStore(own, own),
        views: new PostgresViews(own, { quick: own, slow }, memories, connectionOptions),
        rollups: new PostgresRollupStore(own, { quick: own, slow }),
        slotTimes: new PostgresSlotTimeStore(own, own),
        close: async () => void (await Promise.all([own.close(), slow.close()])),
      };
    },
    async close() {
      // A database that does not answer must not keep a process from its end: others clean up behind it.
      await atMost(
        CLOSE_MS,
        heartbeats.leave().then(() => Promise.all([db.forgetWrites(), heartbeatDb.forgetWrites()])),
      );
      await Promise.all([heartbeatDb, db, reads, slowReads].map((each) => each.close()));
    },
  };
}

function connectionsFor(batches: number): number {
  const wanted = CONNECTIONS_MIN / 2 + Math.ceil(batches / BATCHES_PER_CONNECTION);
  return Math.min(CONNECTIONS_MAX, Math.max(CONNECTIONS_MIN, wanted));
}
