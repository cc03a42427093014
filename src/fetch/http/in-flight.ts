import type { FailureCode } from '../../core/failures.ts';
import type { Clock } from '../../ports/ambient.ts';
import type { FetchRequest } from '../../ports/fetcher.ts';
import type { Exchange } from './exchange.ts';
import type { Slot } from './origin-pool.ts';

/** What may come beside a body: heads and chunk sizes. */
const FRAMING_BYTES_MAX = 2 * 1024 * 1024;
/** For each byte of a body: three times what the smallest chunks need. */
const FRAMING_RATIO_MAX = 16;

type Dialling = NonNullable<Slot['dial']>['stage'];

/** How often timeouts are looked at. They come due up to this late, and never early. */
const SWEEP_MS = 50;
/** A process that was stopped or starved for longer than this did not give the sites their time. */
const STALL_MS = 250;

/** What timing needs of an exchange. */
export interface TimedExchange
  extends Pick<Exchange, 'startedAt' | 'since' | 'stage' | 'slot' | 'wireBytes' | 'fail' | 'abort'> {
  readonly request: Pick<FetchRequest, 'timeouts' | 'signal' | 'headersMs'>;
  /** In the list of those under way; -1 when it is not there. */
  place: number;
}

/**
 * Every request under way, timed by one interval instead of up to four timers each, and ended by one
 * listener per abort signal instead of one per request.
 */
export class InFlight {
  /** At the last sweep. */
  #sweptMs = 0;
  #clock: Clock;
  #lastAt = 0;
  #timer: NodeJS.Timeout | null = null;
  /**
   * Not a Set: when V8 makes a new table for one, the former keeps its members and refers to the new one. From the first
   * table on that a full collection has made old, all of them stay until the next one, and with them every page: 23 MB of
   * bodies for 1,000 pages, and a full collection for every 350.
   */
  readonly #exchanges: TimedExchange[] = [];
  #signals = new Set<AbortSignal>();
  #onAbort = (event: Event): void => {
    const signal = event.target as AbortSignal;
    this.#unwatch(signal);
    this.#abort(signal);
  };
  #onEnded: () => void;

  /** `onEnded` is called after each exchange that ends. */
  constructor(clock: Clock, onEnded: () => void) {
    this.#clock = clock;
    this.#onEnded = onEnded;
  }

  /** Counts only time in which something was under way, and answers could have been read. */
  get nowMs(): number {
    return this.#timer === null ? this.#sweptMs : this.#sweptMs + this.#sinceSweep(this.#clock.now());
  }

  /** A sweep may be late: what begins just before it must not be taken for as old as the sweep before. */
  #sinceSweep(at: number): number {
    return Math.min(Math.max(at - this.#lastAt, 0), STALL_MS);
  }

  add(exchange: TimedExchange): void {
    exchange.place = this.#exchanges.push(exchange) - 1;
    const { signal } = exchange.request;
    if (!this.#signals.has(signal)) {
      this.#signals.add(signal);
      signal.addEventListener('abort', this.#onAbort);
    }
    if (this.#timer !== null) return;
    this.#lastAt = this.#clock.now();
    // Sockets and look-ups keep the process alive for as long as there is something to time.
    this.#timer = setInterval(() => this.#sweep(), SWEEP_MS).unref();
  }

  remove(exchange: TimedExchange): void {
    const { place } = exchange;
    if (place === -1) return;
    exchange.place = -1;
    const last = this.#exchanges.pop()!;
    // The last one takes the place of the one that ends.
    if (last !== exchange) {
      this.#exchanges[place] = last;
      last.place = place;
    }
    this.#onEnded();
  }

  close(): void {
    this.#abort(null);
    for (const signal of this.#signals) this.#unwatch(signal);
    this.#stop();
  }

  /** Null means all. Those that wait go first, or the end of one would set up a connection for the next. */
  #abort(signal: AbortSignal | null): void {
    for (const waiting of [true, false]) {
      for (const exchange of [...this.#exchanges]) {
        if (waiting && exchange.slot !== null) continue;
        if (signal === null || exchange.request.signal === signal) exchange.abort();
      }
    }
  }

  #unwatch(signal: AbortSignal): void {
    this.#signals.delete(signal);
    signal.removeEventListener('abort', this.#onAbort);
  }

  #stop(): void {
    if (this.#timer !== null) clearInterval(this.#timer);
    this.#timer = null;
  }

  #sweep(): void {
    const at = this.#clock.now();
    this.#sweptMs += this.#sinceSweep(at);
    this.#lastAt = at;
    const used = new Set<AbortSignal>();
    for (const exchange of [...this.#exchanges]) {
      used.add(exchange.request.signal);
      expire(exchange, this.#sweptMs);
    }
    for (const signal of this.#signals) {
      if (!used.has(signal)) this.#unwatch(signal);
    }
    if (this.#exchanges.length === 0) this.#stop();
  }
}

function expire(exchange: TimedExchange, nowMs: number): void {
  const { timeouts } = exchange.request;
  if (nowMs - exchange.startedAt > timeouts.taskMs) {
    exchange.fail('task-timeout', `the task took longer than ${timeouts.taskMs} ms`);
    return;
  }
  if (isFlooded(exchange)) {
    exchange.fail('protocol', 'the response is much larger than its headers and body');
    return;
  }
  const stageMs = nowMs - exchange.since;
  if (exchange.stage === 'body' && stageMs > timeouts.bodyMs) {
    exchange.fail('body-timeout', `the body stalled for ${timeouts.bodyMs} ms`);
  } else if (exchange.stage === 'headers' && stageMs > headersMs(exchange)) {
    exchange.fail('headers-timeout', `no complete response headers within ${headersMs(exchange)} ms`);
  } else if (exchange.stage === 'dialling' && stageMs > timeouts.connectMs) {
    exchange.fail(...slowDial(exchange.slot?.dial?.stage, timeouts.connectMs));
  }
}

function headersMs({ request }: TimedExchange): number {
  return Math.round(Math.min(request.timeouts.headersMs, request.headersMs?.() ?? Number.POSITIVE_INFINITY));
}

/** Chunk extensions, reasons and empty lines may go on for ever, and the parser reports none of them. */
function isFlooded({ slot, wireBytes }: TimedExchange): boolean {
  return slot !== null && isFloodOf(slot.received, wireBytes);
}

export function isFloodOf(received: number, wireBytes: number): boolean {
  return received - wireBytes > FRAMING_BYTES_MAX + FRAMING_RATIO_MAX * wireBytes;
}

function slowDial(stage: Dialling | undefined, connectMs: number): [code: FailureCode, detail: string] {
  if (stage === 'dns') return ['dns', `the host name was not resolved within ${connectMs} ms`];
  if (stage === 'proxy') return ['proxy', `the proxy could not be reached within ${connectMs} ms`];
  if (stage === 'tunnel')
    return ['proxy-tunnel', `the proxy did not connect to the host within ${connectMs} ms`];
  return ['connect-timeout', `no connection within ${connectMs} ms`];
}
