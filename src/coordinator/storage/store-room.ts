import { messageOf, StorageFullError } from '../../core/errors.ts';
import { type Clock, type Logger, startTimer } from '../../ports/ambient.ts';
import type { Store } from '../../ports/store.ts';

const PAUSE_MS = 1_000;

/** Waits while a store has no room. What could not be written is tried again until it can: nothing is lost by it. */
export class StoreRoom {
  readonly #clock: Clock;
  readonly #logger: Pick<Logger, 'warn'>;
  readonly #stopping = new AbortController();
  #waiting = 0;
  #since = 0;
  #isPutOff = false;

  constructor({ clock, logger }: { clock: Clock; logger: Pick<Logger, 'warn'> }) {
    this.#clock = clock;
    this.#logger = logger;
  }

  /** A run that is asked to stop does not wait: what is not written is done again by the next. */
  stopWaiting(): void {
    this.#stopping.abort();
  }

  async retry<T>(work: () => Promise<T>): Promise<T> {
    let isWaiting = false;
    try {
      while (true) {
        try {
          return await work();
        } catch (error) {
          if (!(error instanceof StorageFullError)) throw error;
          if (!isWaiting) this.#begin(error);
          isWaiting = true;
          if (this.#stopping.signal.aborted) throw error;
          await this.#pause();
        }
      }
    } finally {
      if (isWaiting) this.#end();
    }
  }

  /** Does it once. Without room it waits a little and returns `nothing`: a plan would be out of date by then. */
  async orNothing<T>(work: () => Promise<T>, nothing: T): Promise<T> {
    try {
      const result = await work();
      if (this.#isPutOff) this.#end();
      this.#isPutOff = false;
      return result;
    } catch (error) {
      if (!(error instanceof StorageFullError)) throw error;
      if (!this.#isPutOff) this.#begin(error);
      this.#isPutOff = true;
      await this.#pause();
      return nothing;
    }
  }

  async #pause(): Promise<void> {
    const { signal } = this.#stopping;
    if (signal.aborted) return;
    await new Promise<void>((resolve) => {
      const end = () => {
        cancel();
        signal.removeEventListener('abort', end);
        resolve();
      };
      const cancel = startTimer(this.#clock, PAUSE_MS, end);
      signal.addEventListener('abort', end);
    });
  }

  #begin(error: unknown): void {
    if (this.#waiting++ > 0) return;
    this.#since = this.#clock.now();
    this.#logger.warn(`${messageOf(error)}; waiting until there is room`);
  }

  #end(): void {
    if (--this.#waiting > 0 || this.#stopping.signal.aborted) return;
    const seconds = Math.round((this.#clock.now() - this.#since) / 1_000);
    this.#logger.warn(`the store has room again, after ${seconds} s`);
  }
}

/** The same store, whose writes wait for room. Each method is one transaction, so each can be called again. */
export function waitForRoom(store: Store, room: StoreRoom): Store {
  const frontier = waiting(store.frontier, room, {
    lease: (jobId, request) =>
      room.orNothing(
        () => store.frontier.lease(jobId, request),
        request.batches.map(() => ({ id: 0, tasks: [], hosts: [] })),
      ),
  });
  return {
    jobs: waiting(store.jobs, room),
    frontier,
    hosts: waiting(store.hosts, room),
    escalations: waiting(store.escalations, room),
    proxies: waiting(store.proxies, room),
    keys: waiting(store.keys, room),
    webhooks: waiting(store.webhooks, room),
    alerts: waiting(store.alerts, room),
    rollups: waiting(store.rollups, room),
    slotTimes: waiting(store.slotTimes, room),
    workers: waiting(store.workers, room),
    requests: waiting(store.requests, room),
    removals: waiting(store.removals, room),
    views: waiting(store.views, room),
    ...(store.openReads ? { openReads: () => store.openReads!() } : {}),
    close: () => store.close(),
  };
}

function waiting<T extends object>(part: T, room: StoreRoom, instead: Partial<T> = {}): T {
  return new Proxy(part, {
    get(target, name) {
      const other = Reflect.get(instead, name);
      if (other !== undefined) return other;
      const method = Reflect.get(target, name);
      if (typeof method !== 'function') return method;
      return (...values: unknown[]) => {
        const first = method.apply(target, values);
        if (!(first instanceof Promise)) return first;
        let result: Promise<unknown> | null = first;
        return room.retry(() => {
          const current = result ?? method.apply(target, values);
          result = null;
          return current;
        });
      };
    },
  });
}
