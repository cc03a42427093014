import type { FailureCode } from '../../core/failures.ts';
import type { FetchRequest, FetchResult } from '../../ports/fetcher.ts';

const DETAILS = {
  'headers-timeout': 'the response headers did not arrive in time',
  'body-timeout': 'the body stalled for too long',
  'task-timeout': 'the task took too long',
} as const satisfies Partial<Record<FailureCode, string>>;

/** The times of one request for libraries that know only an AbortSignal: says why it fired. */
export class Stopwatch {
  /** What the request ends with, once it must. */
  ending: FetchResult | null = null;
  /** Resolves when the request must end. */
  readonly over: Promise<void>;
  readonly #controller = new AbortController();
  readonly #signals: AbortSignal[];
  readonly #taskMs: number;
  #task: NodeJS.Timeout | undefined;
  #stage: NodeJS.Timeout | undefined;

  /** `begins: false` leaves it to `begin` when the time of the task starts. */
  constructor(request: FetchRequest, closing: AbortSignal, { begins = true } = {}) {
    this.#signals = [request.signal, closing];
    this.over = new Promise((resolve) => {
      this.signal.addEventListener('abort', () => resolve(), { once: true });
    });
    this.#taskMs = request.timeouts.taskMs;
    if (begins) this.begin();
    for (const signal of this.#signals) {
      if (signal.aborted) this.#abort();
      else listen(signal, this.#abort);
    }
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  begin(): void {
    this.#task ??= setTimeout(() => this.#timeOut('task-timeout'), this.#taskMs);
  }

  /** The present stage may last so long; it takes the place of the one before. */
  start(code: 'headers-timeout' | 'body-timeout', ms: number): void {
    clearTimeout(this.#stage);
    this.#stage = setTimeout(() => this.#timeOut(code), ms);
  }

  pause(): void {
    clearTimeout(this.#stage);
  }

  stop(): void {
    clearTimeout(this.#task);
    clearTimeout(this.#stage);
    for (const signal of this.#signals) unlisten(signal, this.#abort);
  }

  readonly #abort = (): void => {
    this.#end({ kind: 'aborted' });
  };

  #timeOut(code: keyof typeof DETAILS): void {
    this.#end({ kind: 'failure', code, detail: DETAILS[code], bytes: 0 });
  }

  #end(ending: FetchResult): void {
    if (this.ending !== null) return;
    this.ending = ending;
    this.#controller.abort();
  }
}

/** One listener a signal, whatever the number of requests: more than ten make Node warn. */
const listeners = new WeakMap<AbortSignal, { calls: Set<() => void>; fire: () => void }>();

function listen(signal: AbortSignal, call: () => void): void {
  let entry = listeners.get(signal);
  if (!entry) {
    const calls = new Set<() => void>();
    entry = { calls, fire: () => calls.forEach((each) => void each()) };
    listeners.set(signal, entry);
  }
  if (entry.calls.size === 0) signal.addEventListener('abort', entry.fire);
  entry.calls.add(call);
}

function unlisten(signal: AbortSignal, call: () => void): void {
  const entry = listeners.get(signal);
  entry?.calls.delete(call);
  if (entry && entry.calls.size === 0) signal.removeEventListener('abort', entry.fire);
}
