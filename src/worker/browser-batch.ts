import type { Batch, BatchTask } from '../core/batch/batch.ts';
import type { SendContext } from './send.ts';

/** While a browser starts, a batch that needs one works on its other tasks. */

/** Starts the browser now; what goes wrong shows when a task asks for it. */
export function prepareBrowser({ needs }: Batch, fetcherOf: SendContext['fetcherOf']): void {
  if (needs !== 'browser' || !fetcherOf) return;
  fetcherOf('browser')
    .then((browser) => browser.prepare?.())
    .catch(() => {});
}

/** Those that can begin at once come first, otherwise in their order. */
export function browserLast(tasks: BatchTask[]): BatchTask[] {
  const waits = ({ approach }: BatchTask) => approach?.fetcher === 'browser';
  return [...tasks.filter((task) => !waits(task)), ...tasks.filter(waits)];
}
