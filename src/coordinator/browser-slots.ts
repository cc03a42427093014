import type { Batch } from '../core/batch/batch.ts';
import type { Outcome } from '../core/batch/outcome.ts';
import type { Clock } from '../ports/ambient.ts';
import type { Dispatcher } from '../ports/dispatcher.ts';
import type { OpenBatches } from './run-state.ts';

interface BrowserSlotsParts {
  dispatcher: Pick<Dispatcher, 'slotsFor'>;
  clock: Clock;
  batches: OpenBatches;
}

/** How long a page waits that found all browsers busy: not long, or browsers that are free again would wait for it. */
const WAIT_MS = 2_000;
/** When none was free for long, so many pages wait that they would come again before what stands behind them. */
const WAIT_MS_MAX = 10_000;
/** After pages that all had to wait, the next are looked at so much later. */
const REST_MS = 250;

/**
 * Where few of the workers have a browser, no more goes out for one than those can take: it would wait there and hold
 * places, and permits, that others could use.
 */
export class BrowserSlots {
  readonly #parts: BrowserSlotsParts;
  #fullUntil = Number.NEGATIVE_INFINITY;
  /** Batches in a row that found no room. */
  #inVain = 0;

  constructor(parts: BrowserSlotsParts) {
    this.#parts = parts;
  }

  /** Tasks of a batch that have to wait. When none of its tasks can go, no more are looked at for a moment. */
  deferBrowserTasks({ tasks }: Batch): Outcome[] {
    const shown = tasks.filter(({ fetchMethod }) => fetchMethod?.fetcher === 'browser');
    if (shown.length === 0) return [];
    if (this.#hasRoom()) {
      this.#inVain = 0;
      return [];
    }
    const now = this.#parts.clock.now();
    const until = now + Math.min(Math.max(WAIT_MS, ++this.#inVain * 2 * REST_MS), WAIT_MS_MAX);
    if (shown.length === tasks.length) this.#fullUntil = now + REST_MS;
    return shown.map(({ id }) => ({ kind: 'deferred', taskId: id, until }));
  }

  get isFull(): boolean {
    return this.#parts.clock.now() < this.#fullUntil && !this.#hasRoom();
  }

  /** One may always be out: the dispatcher says when no worker can take it. */
  #hasRoom(): boolean {
    const { dispatcher, batches } = this.#parts;
    const slots = dispatcher.slotsFor?.('browser');
    return slots === undefined || batches.count('browser') < Math.max(1, slots);
  }
}
