import { WORKER_LOOK_MS } from '../../core/workers/worker-health.ts';
import type { Clock } from '../../ports/ambient.ts';
import type { WorkerHeartbeat } from '../../ports/dispatcher.ts';
import type { WorkerStore } from '../../ports/store/worker-store.ts';

interface HealthLogOptions {
  store: { readonly workers: Pick<WorkerStore, 'note'> };
  heartbeats(): Promise<readonly WorkerHeartbeat[]>;
  clock: Pick<Clock, 'now'>;
}

/** Writes down every ten seconds how the workers are. */
export class WorkerHealthLog {
  readonly #options: HealthLogOptions;
  #notedAt = Number.NEGATIVE_INFINITY;

  constructor(options: HealthLogOptions) {
    this.#options = options;
  }

  async look(): Promise<void> {
    if (this.#options.clock.now() - this.#notedAt >= WORKER_LOOK_MS) await this.note();
  }

  /** Whenever it was last done: at the end of a run, which may have been short. */
  async note(): Promise<void> {
    const { store, heartbeats, clock } = this.#options;
    const now = clock.now();
    this.#notedAt = now;
    const found = await heartbeats();
    if (found.length > 0) await store.workers.note(found, Math.floor(now));
  }
}
