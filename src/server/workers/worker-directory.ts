import type { AppSettings } from '../../app/app.ts';
import { WorkerHealthLog } from '../../coordinator/workers/worker-health-log.ts';
import { messageOf } from '../../core/errors.ts';
import { WORKER_LOOK_MS } from '../../core/workers/worker-health.ts';
import type { WorkerHeartbeat } from '../../ports/dispatcher.ts';
import type { Store } from '../../ports/store.ts';
import type { Fleet } from '../../transport/bullmq/fleet.ts';
import { SLOTS_PER_THREAD } from '../../transport/thread/thread-dispatcher.ts';

interface DirectoryOptions {
  settings: Pick<AppSettings, 'dispatch' | 'fleetKeys' | 'lambda' | 'logger' | 'workers'>;
  /** Workers that runs of this process use. */
  used(): Promise<WorkerHeartbeat[]>;
  /** Where it is written down how they are; null where nothing is written. */
  store: Pick<Store, 'workers'> | null;
  now(): number;
}

/** After a Redis could not be reached, it is not asked for so long. */
const UNREACHABLE_MS = 10_000;
/** What was read a moment ago is good enough for whoever asks next. */
const FRESH_MS = 1_000;

/** The workers that a server knows: those of its runs, and those that wait at its queues, also while no job runs. */
export class WorkerDirectory {
  readonly #options: DirectoryOptions;
  readonly #queues: readonly string[];
  readonly #fleets = new Map<string, Fleet>();
  readonly #failedAt = new Map<string, number>();
  readonly #health: WorkerHealthLog | null;
  #known: { at: number; workers: Promise<WorkerHeartbeat[]> } | null = null;
  #timer: NodeJS.Timeout | null = null;
  #looking: Promise<void> = Promise.resolve();
  #isClosed = false;

  constructor(options: DirectoryOptions) {
    this.#options = options;
    const targets = options.settings.dispatch ?? [];
    this.#queues = targets.flatMap((target) => (target.kind === 'bullmq' ? [target.url] : []));
    const { store, now } = options;
    this.#health = store && new WorkerHealthLog({ store, heartbeats: () => this.live(), clock: { now } });
  }

  /** Writes down how the workers are, every ten seconds. */
  start(): void {
    this.#timer = setInterval(() => {
      this.#looking = this.#looking
        .then(() => this.#health?.note())
        .catch((error: unknown) => {
          this.#options.settings.logger.warn(`cannot note how workers are: ${messageOf(error)}`);
        });
    }, WORKER_LOOK_MS);
    this.#timer.unref();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    if (this.#timer) clearInterval(this.#timer);
    await this.#looking;
    for (const fleet of this.#fleets.values()) fleet.close();
  }

  /** Those that are alive, by name. */
  live(): Promise<WorkerHeartbeat[]> {
    const at = this.#options.now();
    if (!this.#known || Math.abs(at - this.#known.at) > FRESH_MS) this.#known = { at, workers: this.#read() };
    return this.#known.workers;
  }

  /** Batches that workers could have at once while no job runs: threads begin with the first job, and so do calls of Lambda. */
  async waitingSlots(): Promise<number> {
    const { dispatch = [{ kind: 'threads' }], workers, lambda } = this.#options.settings;
    let slots = 0;
    for (const { kind } of dispatch) {
      if (kind === 'threads') slots += workers * SLOTS_PER_THREAD;
      if (kind === 'lambda') slots += lambda?.concurrency ?? 0;
    }
    for (const worker of this.#queues.length > 0 ? await this.live() : [])
      if (worker.kind !== 'threads' && !worker.isDraining) slots += worker.slots;
    return slots;
  }

  /** Asks a worker to take no more batches; null when there is none of this name that can be asked. */
  async drain(worker: string): Promise<WorkerHeartbeat | null> {
    for (const queue of this.#queues) {
      const found = await (await this.#fleetAt(queue))?.drain(worker);
      if (found) return found;
    }
    return null;
  }

  async #read(): Promise<WorkerHeartbeat[]> {
    const byName = new Map<string, WorkerHeartbeat>();
    for (const heartbeat of await this.#options.used()) byName.set(heartbeat.worker, heartbeat);
    for (const queue of this.#queues)
      for (const heartbeat of (await (await this.#fleetAt(queue))?.workers())?.heartbeats ?? [])
        byName.set(heartbeat.worker, heartbeat);
    return [...byName.values()].sort((one, other) => (one.worker < other.worker ? -1 : 1));
  }

  /** Null while its Redis cannot be reached: what a server shows does not wait for it. */
  async #fleetAt(url: string): Promise<Fleet | null> {
    const known = this.#fleets.get(url);
    if (known) return known.isReachable ? known : null;
    const { settings, now } = this.#options;
    if (this.#isClosed || now() - (this.#failedAt.get(url) ?? Number.NEGATIVE_INFINITY) < UNREACHABLE_MS)
      return null;
    try {
      const { openFleet } = await import('../../transport/bullmq/fleet.ts');
      const fleet = await openFleet({ url, fleetKeys: settings.fleetKeys ?? [], logger: settings.logger });
      const other = this.#fleets.get(url);
      if (other || this.#isClosed) fleet.close();
      else this.#fleets.set(url, fleet);
      return other ?? (this.#isClosed ? null : fleet);
    } catch (error) {
      this.#failedAt.set(url, now());
      settings.logger.warn(`cannot look for workers: ${messageOf(error)}`);
      return null;
    }
  }
}
