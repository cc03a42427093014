import type { Batch } from '../core/batch/batch.ts';
import type { Outcome } from '../core/batch/outcome.ts';
import { withSince } from '../core/text/since.ts';
import type { Clock, Logger } from '../ports/ambient.ts';
import type { Dispatcher } from '../ports/dispatcher.ts';
import type { OpenBatches } from './run-state.ts';

interface BrowserSlotsParts {
  dispatcher: Pick<Dispatcher, 'slotsFor'>;
  clock: Clock;
  logger: Pick<Logger, 'warn'>;
  batches: OpenBatches;
}

/** How long a page waits that found all browsers busy: not long, or browsers that are free again would wait for it. */
const WAIT_MS = 2_000;
/** When none was free for long, so many pages wait that they would come again before what stands behind them. */
const WAIT_MS_MAX = 10_000;
/** After pages that all had to wait, the next are looked at so much later. */
const REST_MS = 250;
/** The same where no worker has a browser: behind those pages may be many that need none. */
const REST_WITHOUT_MS = 50;

/**
 * Where few of the workers have a browser, no more goes out for one than those can take: it would wait there and hold
 * places, and permits, that others could use. Where none has one, pages that need it come after all others of their host.
 */
export class BrowserSlots {
  readonly #parts: BrowserSlotsParts;
  #fullUntil = Number.NEGATIVE_INFINITY;
  /** Batches in a row that found no room. */
  #inVain = 0;
  /** Since when none has a browser, as far as pages needed one. */
  #noneSince: number | null = null;

  constructor(parts: BrowserSlotsParts) {
    this.#parts = parts;
  }

  /** Tasks of a batch that have to wait. When none of its tasks can go, no more are looked at for a moment. */
  deferBrowserTasks({ tasks }: Batch): Outcome[] {
    const shown = tasks.filter(({ fetchMethod }) => fetchMethod?.fetcher === 'browser');
    if (shown.length === 0) return [];
    if (this.#hasRoom()) {
      this.#inVain = 0;
      this.#noneSince = null;
      return [];
    }
    const isNone = this.#slots === 0;
    if (isNone) this.#tell();
    const now = this.#parts.clock.now();
    const until = now + Math.min(Math.max(WAIT_MS, ++this.#inVain * 2 * REST_MS), WAIT_MS_MAX);
    if (shown.length === tasks.length) this.#fullUntil = now + (isNone ? REST_WITHOUT_MS : REST_MS);
    return shown.map(({ id }) => ({
      kind: 'deferred',
      taskId: id,
      until,
      ...(isNone ? { last: true as const } : {}),
    }));
  }

  get isFull(): boolean {
    return this.#parts.clock.now() < this.#fullUntil && !this.#hasRoom();
  }

  /** Why pages wait, in words; null while there is a browser for them. */
  get trouble(): string | null {
    if (this.#noneSince === null || this.#slots !== 0) return null;
    return withSince('no worker with a browser', this.#parts.clock.now() - this.#noneSince);
  }

  get #slots(): number | undefined {
    return this.#parts.dispatcher.slotsFor?.('browser');
  }

  #hasRoom(): boolean {
    const slots = this.#slots;
    return slots === undefined || this.#parts.batches.count('browser') < slots;
  }

  /** Once, until there is one. */
  #tell(): void {
    if (this.#noneSince !== null) return;
    this.#noneSince = this.#parts.clock.now();
    this.#parts.logger.warn(
      'pages need a browser, but no worker has one: start some with `seine worker --kind browser`; other pages go on',
    );
  }
}
