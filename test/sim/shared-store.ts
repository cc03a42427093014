import type { DueHost, Frontier, JobStore, LeasedBatch, LeaseRequest, Store } from '../../src/ports/store.ts';
import { SharedAlertStore } from '../../src/store/shared/alert-store.ts';
import { SharedJobRemovals } from '../../src/store/shared/job-removals.ts';
import { SharedRequestStore } from '../../src/store/shared/request-store.ts';
import { SharedWebhookStore } from '../../src/store/shared/webhooks/webhook-store.ts';
import { SharedWorkerStore } from '../../src/store/shared/worker-store.ts';
import { Database, type DatabaseOptions } from '../../src/store/sqlite/connection/database.ts';
import { SeenIndex } from '../../src/store/sqlite/dedupe/seen-index.ts';
import { SqliteEscalationStore } from '../../src/store/sqlite/escalation-store.ts';
import { TaskInserter } from '../../src/store/sqlite/frontier/insert-tasks.ts';
import { SqliteFrontier } from '../../src/store/sqlite/frontier-store.ts';
import { SqliteHostStore } from '../../src/store/sqlite/host-store.ts';
import { SqliteJobStore } from '../../src/store/sqlite/job-store.ts';
import { SqliteKeyStore } from '../../src/store/sqlite/key-store.ts';
import { SqliteProxyStore } from '../../src/store/sqlite/proxy-store.ts';
import { SqliteRollupStore } from '../../src/store/sqlite/rollup-store.ts';
import { SqliteSlotTimeStore } from '../../src/store/sqlite/slot-time-store.ts';
import { SqliteViews } from '../../src/store/sqlite/views/views.ts';
import { SqliteWebhookDatabase } from '../../src/store/sqlite/webhooks.ts';
import type { Process, World } from './virtual-time.ts';

export interface MemoryStore {
  store: Store;
  db: Database;
}

/** The real store, in memory, with the database itself for whoever checks it. */
export function openMemoryStore(options: Pick<DatabaseOptions, 'keepsRollups'> = {}): MemoryStore {
  return storeOn(new Database(':memory:', options));
}

/** A new store in the tables of one that has served: faster than new tables, and just as empty. */
export function emptied({ db }: MemoryStore): MemoryStore {
  db.transaction(() => {
    for (const { name } of db.all<{ name: string }>(SELECT_TABLES)) db.run(`DELETE FROM ${name}`);
    db.run(RESET_SEEN);
  });
  return storeOn(db);
}

const SELECT_TABLES = `SELECT name FROM sqlite_schema WHERE type = 'table' AND name <> 'seen_state'`;
/** As the migration leaves it. */
const RESET_SEEN = 'UPDATE seen_state SET indexed_to = 0, filtered = 1';

function storeOn(db: Database): MemoryStore {
  const inserter = new TaskInserter(db, new SeenIndex(db));
  const atWork = new Set<number>();
  const store: Store = {
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
    close: async () => db.close(),
  };
  return { store, db };
}

/** As long after its last heartbeat others take a coordinator for alive. */
const ALIVE_MS = 20_000;

/**
 * What the PostgreSQL store adds for coordinators that share a job: who holds which batches and hosts, who reads the
 * sources, and who is alive. The rows themselves are the SQLite store's.
 */
export class SharedJob {
  readonly #world: World;
  readonly #open: ReadonlyMap<number, unknown>;
  readonly #coordinators = new Map<Process, { heardAt: number; isAtWork: boolean }>();
  readonly #owners = new Map<number, Process>();
  readonly #hosts = new Map<number, number[]>();
  #reader: Process | null = null;

  constructor(world: World, open: ReadonlyMap<number, unknown>) {
    this.#world = world;
    this.#open = open;
  }

  /** Its own view of the store. */
  viewOf(
    process: Process,
    store: Pick<Store, 'frontier' | 'jobs'>,
    isSamePlace: boolean,
  ): {
    frontier: Partial<Frontier>;
    jobs: Partial<JobStore>;
  } {
    const { frontier } = store;
    // Whoever had the lock of this folder before is gone, whatever its time says.
    if (isSamePlace)
      for (const [other, state] of this.#coordinators)
        if (!other.isAlive) state.heardAt = Number.NEGATIVE_INFINITY;
    this.#coordinators.set(process, { heardAt: this.#world.now, isAtWork: false });
    const orphans = async () => this.#batchesWhere((owner) => owner !== process && !this.#isAlive(owner));
    return {
      frontier: {
        dueHosts: async (jobId, options) => this.#free(process, await frontier.dueHosts(jobId, options)),
        hostsNamed: async (hosts) => this.#free(process, await frontier.hostsNamed(hosts)),
        lease: (jobId, request) => this.#lease(process, frontier, jobId, request),
        expired: async (jobId, now) => {
          const own = new Set(this.#batchesWhere((owner) => owner === process));
          return (await frontier.expired(jobId, now)).filter((id) => own.has(id));
        },
        orphans,
        abandoned: orphans,
        release: async (batchId, options) =>
          this.#isOthers(batchId, process)
            ? { returned: 0, dead: 0, isOthers: true }
            : frontier.release(batchId, options),
        adopt: async (jobId, batchId) => {
          const owner = this.#owners.get(batchId);
          // Another was faster, or it is not gone after all.
          if (owner !== undefined && owner !== process && this.#isAlive(owner)) return null;
          const adopted = await frontier.adopt(jobId, batchId);
          if (adopted) this.#owners.set(batchId, process);
          return adopted;
        },
      },
      jobs: {
        join: async () => {
          this.#coordinators.get(process)!.isAtWork = true;
        },
        leave: async () => {
          this.#coordinators.get(process)!.isAtWork = false;
          return this.#atWork(process);
        },
        takeSources: async () => {
          if (this.#reader && this.#reader !== process && this.#isAlive(this.#reader)) return false;
          this.#reader = process;
          return true;
        },
      },
    };
  }

  /** When something changes without any call: a coordinator that is gone counts as such. */
  nextChangeAt(): number {
    let nextAt = Number.POSITIVE_INFINITY;
    for (const [process, { heardAt }] of this.#coordinators) {
      const at = heardAt + ALIVE_MS;
      if (!process.isAlive && at > this.#world.now && at < nextAt) nextAt = at;
    }
    return nextAt;
  }

  #isAlive(process: Process): boolean {
    const state = this.#coordinators.get(process)!;
    // A process that stands still sends no heartbeats; `heardAt` is from when it stopped or died.
    if (process.isAlive && process.frozenUntil <= this.#world.now) state.heardAt = this.#world.now;
    return this.#world.now - state.heardAt < ALIVE_MS;
  }

  /** Called whenever one may have stopped: notes when it was last heard of. */
  hear(): void {
    for (const process of this.#coordinators.keys()) this.#isAlive(process);
  }

  #atWork(except: Process): number {
    let count = 0;
    for (const [process, { isAtWork }] of this.#coordinators)
      if (process !== except && isAtWork && this.#isAlive(process)) count++;
    return count;
  }

  #isOthers(batchId: number, process: Process): boolean {
    const owner = this.#owners.get(batchId);
    return this.#open.has(batchId) && owner !== undefined && owner !== process && this.#isAlive(owner);
  }

  #batchesWhere(matches: (owner: Process) => boolean): number[] {
    return [...this.#open.keys()].filter((id) => matches(this.#owners.get(id)!));
  }

  #free(process: Process, hosts: DueHost[]): DueHost[] {
    const taken = this.#takenFrom(process);
    return taken.size === 0 ? hosts : hosts.filter(({ id }) => !taken.has(id));
  }

  #takenFrom(process: Process): Set<number> {
    const others = this.#batchesWhere((owner) => owner !== process && this.#isAlive(owner));
    return new Set(others.flatMap((id) => this.#hosts.get(id)!));
  }

  async #lease(
    process: Process,
    frontier: Frontier,
    jobId: number,
    request: LeaseRequest,
  ): Promise<LeasedBatch[]> {
    const taken = this.#takenFrom(process);
    const batches = request.batches.map((batch) => ({
      ...batch,
      grants: batch.grants.filter(({ hostId }) => !taken.has(hostId)),
    }));
    const leased = await frontier.lease(jobId, { ...request, batches });
    leased.forEach(({ id, tasks, piggybacked = [] }) => {
      if (tasks.length === 0) return;
      this.#owners.set(id, process);
      this.#hosts.set(id, [...new Set([...tasks.map(({ hostId }) => hostId), ...piggybacked])]);
    });
    return leased;
  }
}
