import type { ClientConfig } from 'pg';
import type { Logger } from '../../ports/ambient.ts';
import type { ReadStore } from '../../ports/store/read-store.ts';
import type { Store } from '../../ports/store.ts';
import { SharedAlertStore } from '../shared/alert-store.ts';
import { SharedJobRemovals } from '../shared/job-removals.ts';
import { SharedRequestStore } from '../shared/request-store.ts';
import { SharedWebhookStore } from '../shared/webhooks/webhook-store.ts';
import { SharedWorkerStore } from '../shared/worker-store.ts';
import { atMost, type ConnectionOptions } from './connection/connections.ts';
import { Database } from './connection/database.ts';
import { statementGroups } from './connection/statement-group.ts';
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
  /** Connections for work at once; few by default. */
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

/**
 * However many batches are out: a batch takes seconds and its settle some milliseconds, and reports that wait are written
 * together. With 8 on two cores a task took 8 to 10 % more CPU: 111 µs against 100 to 103, medians of two to four runs in
 * turns, three times. With 2 it took as much as with 4.
 */
const CONNECTIONS_DEFAULT = 4;
/** Counters of a job have a row for each connection; with fewer numbers than connections may be set they would be shared. */
const SHARDS_PER_COORDINATOR = 128;
/** Only those that are at work at the same time matter, and the number of a row has 15 bits. */
const COORDINATORS_APART = 64;
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
  const shared = await sharedOptions(url, options);
  const { logger } = shared;
  await prepareDatabase(shared);
  const db = new Database({
    ...shared,
    connections: options.connections ?? CONNECTIONS_DEFAULT,
    firstShard: () => (heartbeats.id % COORDINATORS_APART) * SHARDS_PER_COORDINATOR,
  });
  const reads = new Database({ ...shared, connections: READ_CONNECTIONS });
  const slowReads = new Database({ ...shared, connections: 1 });
  // Heartbeats must not wait behind work, and not for long: the next one comes soon.
  const heartbeatDb = new Database({
    ...shared,
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
    workers: new SharedWorkerStore(new PostgresWebhookDatabase(db)),
    requests: new SharedRequestStore(new PostgresWebhookDatabase(db)),
    removals: new SharedJobRemovals(new PostgresWebhookDatabase(db), ['coordinator_jobs', 'sink_rejects']),
    views: new PostgresViews(db, { quick: reads, slow: slowReads }, memories, shared),
    checkSink: (sink) =>
      checkSinkTable((text, ...values) => reads.read(text, ...values), sink, shared.place.schema),
    openReads: () => readsIn(shared),
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

/** The same database for readers alone, in another thread of a process that has the store open. */
export async function openPostgresReads(url: string, options: PostgresStoreOptions = {}): Promise<ReadStore> {
  return readsIn(await sharedOptions(url, options));
}

type SharedOptions = ConnectionOptions & { patienceMs: number; logger: Logger };

async function sharedOptions(url: string, options: PostgresStoreOptions): Promise<SharedOptions> {
  const { default: pg } = await import('pg');
  return {
    place: parseStoreUrl(url, options.passwordFile ?? null),
    connect: (config: ClientConfig) => new pg.Client(config),
    makeGroup: statementGroups(pg.Query),
    silenceMs: options.silenceMs ?? SILENCE_MS_DEFAULT,
    patienceMs: options.patienceMs ?? PATIENCE_MS_DEFAULT,
    logger: options.logger ?? SILENT,
  };
}

function readsIn(shared: SharedOptions): ReadStore {
  const quick = new Database({ ...shared, connections: API_CONNECTIONS });
  const slow = new Database({ ...shared, connections: 1 });
  // It works on no job, so it has no heartbeats to send.
  const heartbeats = new CoordinatorHeartbeats(quick, { place: null, aliveMs: 0, logger: shared.logger });
  return {
    jobs: new PostgresJobStore(quick, quick, heartbeats),
    hosts: new PostgresHostStore(quick, quick),
    views: new PostgresViews(quick, { quick, slow }, new JobMemories(quick), shared),
    rollups: new PostgresRollupStore(quick, { quick, slow }),
    slotTimes: new PostgresSlotTimeStore(quick, quick),
    workers: new SharedWorkerStore(new PostgresWebhookDatabase(quick)),
    keys: new PostgresKeyStore(quick, quick),
    close: async () => void (await Promise.all([quick.close(), slow.close()])),
  };
}
