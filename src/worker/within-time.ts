import type { Trace } from '../core/batch/outcome.ts';
import type { VisitContext } from './visit.ts';

/** A handler was cut off by the end of its batch. */
export const OVER: unique symbol = Symbol('the batch has ended');

/** A handler that waits has what is left of the task's time; the batch may end before that. */
export async function withinTime<T>(
  result: Promise<T>,
  context: VisitContext,
  trace: Trace,
): Promise<T | typeof OVER> {
  const { signal, job } = context;
  const leftMs = Math.max(1, job.spec.timeouts.taskMs - trace.durationMs);
  const { promise: ended, resolve, reject } = Promise.withResolvers<typeof OVER>();
  const timer = setTimeout(
    () => reject(new Error(`the handler did not finish within ${job.spec.timeouts.taskMs} ms`)),
    leftMs,
  );
  const onAbort = () => resolve(OVER);
  signal.addEventListener('abort', onAbort);
  try {
    return await Promise.race([result, ended]);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener('abort', onAbort);
  }
}
