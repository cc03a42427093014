import type { Logger } from '../ports/ambient.ts';
import { DEAD_MS, type Presence } from './bullmq-signs.ts';
import type { Ticket } from './bullmq-tickets.ts';

/** Tells the operator what only an operator can change: that nobody works, or nobody who could. Once each. */
export class WorkerNotices {
  readonly #presence: Presence;
  readonly #place: string;
  readonly #logger: Logger;
  #aliveAt = Number.NEGATIVE_INFINITY;
  #told: string | null = null;

  constructor(presence: Presence, options: { place: string; logger: Logger }) {
    this.#presence = presence;
    this.#place = options.place;
    this.#logger = options.logger;
  }

  look(open: readonly Ticket[], now: number): void {
    const count = this.#presence.live(now).length;
    if (count > 0) this.#aliveAt = now;
    // A Redis that was just emptied knows nobody, for a moment.
    else if (now - this.#aliveAt <= DEAD_MS) return;
    const text = this.#trouble(count, open, now);
    if (text !== null && text !== this.#told) this.#logger.warn(text);
    if (text === null && this.#told !== null) this.#logger.warn(`${count} workers are running`);
    this.#told = text;
  }

  #trouble(count: number, open: readonly Ticket[], now: number): string | null {
    const [stranger] = this.#presence.strangers(now);
    if (stranger)
      return `the worker ${stranger.worker} uses another version of the wire format: install the same Seine version everywhere`;
    if (count === 0)
      return `no live workers at Redis ${this.#place}: start some with \`seine worker --dispatch bullmq://… --blobs …\`; the run waits`;
    if (open.some(({ batch }) => batch.needs === 'browser') && !this.#presence.serves('browser', now))
      return `batches need a browser, but no worker at Redis ${this.#place} has one: start some with \`seine worker --kind browser\``;
    return null;
  }
}
