import type { Trace } from '../../core/batch/outcome.ts';
import { type Clock, startTimer } from '../../ports/ambient.ts';
import type { VisitContext } from '../request/visit.ts';

/** A batch's budget as a signal: what works under it returns what it has when it fires. */
export class Deadline {
  readonly #clock: Clock;
  readonly #endAt: number;
  readonly #controller = new AbortController();
  readonly #stopTimer: () => void;

  constructor(clock: Clock, budgetMs: number) {
    this.#clock = clock;
    this.#endAt = clock.now() + budgetMs;
    this.#stopTimer = startTimer(clock, budgetMs, () => this.cut());
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get over(): boolean {
    return this.#controller.signal.aborted;
  }

  remainingMs(): number {
    return Math.max(0, this.#endAt - this.#clock.now());
  }

  /** Ends the budget now: on drain, or when the time is up. */
  cut(): void {
    this.#controller.abort();
  }

  close(): void {
    this.#stopTimer();
  }
}

/** A handler was cut off by the end of its batch. */
export const OVER: unique symbol = Symbol('the batch has ended');

/** A handler that waits has what is left of the task's time; the batch may end before that. */
export async function withinTime<T>(
  result: Promise<T>,
  context: VisitContext,
  trace: Trace,
): Promise<T | typeof OVER> {
  const { signal, job, clock } = context;
  const leftMs = Math.max(1, job.spec.timeouts.taskMs - trace.durationMs);
  const { promise: ended, resolve, reject } = Promise.withResolvers<typeof OVER>();
  const stopTimer = startTimer(clock, leftMs, () =>
    reject(new Error(`the handler did not finish within ${job.spec.timeouts.taskMs} ms`)),
  );
  const onAbort = () => resolve(OVER);
  signal.addEventListener('abort', onAbort);
  try {
    return await Promise.race([result, ended]);
  } finally {
    stopTimer();
    signal.removeEventListener('abort', onAbort);
  }
}
