import type { Outcome } from '../../core/batch/outcome.ts';
import { failureKind } from '../../core/failures.ts';
import { FadingRate, LatencyHistogram } from './meters.ts';
import type { HostActivity, HostView } from './run-view.ts';

/** About 600 bytes each, so a little over a megabyte in all. */
const HOSTS_TRACKED_MAX = 2_000;

const FADE_MS = 10_000;
/** As long as a permit lasts: until then a host with an open batch has merely not reported yet. */
const SILENCE_MS = 10_000;
const FAILING_IN_ROW = 3;
const THROTTLED_MS = 5_000;

export class HostEntry {
  readonly host: string;
  requests = 0;
  done = 0;
  failed = 0;
  openBatches = 0;
  #failuresInRow = 0;
  #failing: { what: string; count: number } | null = null;
  #throttledUntil = 0;
  readonly #rate: FadingRate;
  readonly #latency = new LatencyHistogram();

  constructor(host: string, now: number) {
    this.host = host;
    this.#rate = new FadingRate(now, FADE_MS);
  }

  get lastAt(): number {
    return this.#rate.lastAt;
  }

  onOutcome(outcome: Outcome, at: number): void {
    if (outcome.kind === 'deferred' || outcome.trace === null) return;
    this.#rate.add(at, 1);
    this.#latency.add(outcome.trace.durationMs);
    if (outcome.kind !== 'failed') {
      if (outcome.kind !== 'skipped') this.done++;
      this.#failuresInRow = 0;
      this.#failing = null;
      return;
    }
    this.failed++;
    const { httpStatus } = outcome.trace;
    const what = httpStatus !== null && httpStatus >= 400 ? String(httpStatus) : outcome.code;
    this.#failing = { what, count: this.#failing?.what === what ? this.#failing.count + 1 : 1 };
    const { retry, hostFault } = failureKind(outcome.code);
    this.#failuresInRow = hostFault ? this.#failuresInRow + 1 : 0;
    if (retry === 'throttled') this.#throttledUntil = at + (outcome.retryAfterMs ?? THROTTLED_MS);
  }

  requestsPerSecond(now: number): number {
    const silentMs = now - this.#rate.lastAt;
    const heardUntil = this.openBatches > 0 ? now - Math.min(SILENCE_MS, silentMs) : now;
    return this.#rate.perSecond(heardUntil);
  }

  state(now: number): HostActivity {
    if (this.#throttledUntil > now) return 'throttled';
    if (this.#failuresInRow >= FAILING_IN_ROW) return 'failing';
    return this.openBatches > 0 || now - this.#rate.lastAt < 1_000 ? 'active' : 'idle';
  }

  view(now: number): HostView {
    const { host, requests, done, failed } = this;
    return {
      host,
      state: this.state(now),
      requests,
      done,
      failed,
      failing: this.#failing,
      requestsPerSecond: this.requestsPerSecond(now),
      p50Ms: this.#latency.quantile(0.5),
      p95Ms: this.#latency.quantile(0.95),
    };
  }
}

/** Remembers the liveliest hosts; the least active make room for new ones. */
export class BusiestHosts {
  readonly #entries = new Map<string, HostEntry>();

  get size(): number {
    return this.#entries.size;
  }

  entry(host: string, now: number): HostEntry {
    const known = this.#entries.get(host);
    if (known !== undefined) return known;
    if (this.#entries.size >= HOSTS_TRACKED_MAX) this.#evict(now);
    const entry = new HostEntry(host, now);
    this.#entries.set(host, entry);
    return entry;
  }

  /** A tenth at a time, so that the sort is paid once per two hundred new hosts. */
  #evict(now: number): void {
    const scored = [...this.#entries.values()].map((entry) => ({
      entry,
      rate: entry.requestsPerSecond(now),
    }));
    scored.sort(
      (a, b) =>
        Math.sign(a.entry.openBatches) - Math.sign(b.entry.openBatches) ||
        a.rate - b.rate ||
        a.entry.lastAt - b.entry.lastAt,
    );
    for (const { entry } of scored.slice(0, HOSTS_TRACKED_MAX / 10)) this.#entries.delete(entry.host);
  }

  /** Hosts at work first, then by requests: an order that does not jump about from one look to the next. */
  top(now: number, most: number): HostView[] {
    const ranked = [...this.#entries.values()].map((entry) => ({
      entry,
      lively: entry.state(now) === 'idle' ? 0 : 1,
    }));
    ranked.sort(
      (a, b) =>
        b.lively - a.lively || b.entry.requests - a.entry.requests || (a.entry.host < b.entry.host ? -1 : 1),
    );
    return ranked.slice(0, most).map(({ entry }) => entry.view(now));
  }
}
