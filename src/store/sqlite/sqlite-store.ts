import type { Store } from '../../ports/store.ts';
import { SharedAlertStore } from '../shared/alert-store.ts';
import { SharedJobRemovals } from '../shared/job-removals.ts';
import { SharedRequestStore } from '../shared/request-store.ts';
import { SharedWebhookStore } from '../shared/webhooks/webhook-store.ts';
import { SharedWorkerStore } from '../shared/worker-store.ts';
import { GUEST_PAGES, openCheckpointer } from './connection/checkpointer.ts';
import { Database, type DatabaseOptions } from './connection/database.ts';
import { SeenIndex } from './dedupe/seen-index.ts';
import { SqliteEscalationStore } from './escalation-store.ts';
import { TaskInserter } from './frontier/insert-tasks.ts';
import { SqliteFrontier } from './frontier-store.ts';
import { SqliteHostStore } from './host-store.ts';
import { SqliteJobStore } from './job-store.ts';
import { SqliteKeyStore } from './key-store.ts';
import { SqliteProxyStore } from './proxy-store.ts';
import { openReads } from './reads/open-reads.ts';
import { SqliteRollupStore } from './rollup-store.ts';
import { SqliteSlotTimeStore } from './slot-time-store.ts';
import { SqliteViews } from './views/views.ts';
import { SqliteWebhookDatabase } from './webhooks.ts';

interface SqliteStoreOptions extends DatabaseOptions {
  /** Checkpoints in a thread of their own: for whoever writes much. */
  checkpointThread?: boolean;
  /** Another process works on the same file and keeps its log short. */
  isGuest?: boolean;
  /** URLs that are gathered before they go into the dedupe index. */
  urlsGathered?: number;
}

export function openSqliteStore(path: string, options: SqliteStoreOptions = {}): Store {
  return storeIn(new Database(path, options), options);
}

export function storeIn(db: Database, options: SqliteStoreOptions = {}): Store {
  const checkpointer = options.checkpointThread ? openCheckpointer(db) : null;
  if (options.isGuest) db.checkpointEvery(GUEST_PAGES);
  const inserter = new TaskInserter(db, new SeenIndex(db, options.urlsGathered));
  const atWork = new Set<number>();
  return {
    jobs: new SqliteJobStore(db, atWork),
    frontier: new SqliteFrontier(db, inserter, atWork),
    hosts: new SqliteHostStore(db),
    escalations: new SqliteEscalationStore(db),
    proxies: new SqliteProxyStore(db),
    keys: new SqliteKeyStore(db),
    webhooks: new SharedWebhookStore(new SqliteWebhookDatabase(db)),
    alerts: new SharedAlertStore(new SqliteWebhookDatabase(db)),
    rollups: new SqliteRollupStore(db),
    slotTimes: new SqliteSlotTimeStore(db),
    workers: new SharedWorkerStore(new SqliteWebhookDatabase(db)),
    requests: new SharedRequestStore(new SqliteWebhookDatabase(db)),
    removals: new SharedJobRemovals(new SqliteWebhookDatabase(db)),
    views: new SqliteViews(db, inserter),
    ...(db.path === ':memory:' ? {} : { openReads: () => openReads(db.path) }),
    async close() {
      inserter.close();
      await checkpointer?.close();
      db.close();
    },
  };
}
