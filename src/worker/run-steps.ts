/** Runs steps that may wait: a promise comes back only when one of them gave a promise. */
export function runSteps<T>(steps: Generator<unknown, T, unknown>): T | Promise<T> {
  let step = steps.next();
  while (!step.done) {
    if (isPromise(step.value)) return waitFor(steps, step.value);
    step = steps.next(step.value);
  }
  return step.value;
}

async function waitFor<T>(steps: Generator<unknown, T, unknown>, first: PromiseLike<unknown>): Promise<T> {
  let step = steps.next(await first);
  while (!step.done) step = steps.next(await step.value);
  return step.value;
}

function isPromise(value: unknown): value is PromiseLike<unknown> {
  return typeof (value as PromiseLike<unknown> | null | undefined)?.then === 'function';
}
