/**
 * Simulated hosts that limit requests, in more than twenty kinds. A seed decides the limit, the window and the latency of
 * each. `limit` is what a host takes for ever, in requests per second: what a perfect crawler would send.
 */

export interface HostAnswer {
  kind: 'answered' | 'refused' | 'blocked' | 'failed';
  /** The limiter refused it, and not an outage or chance. */
  byLimiter: boolean;
  latencyMs: number;
  retryAfterMs: number | null;
}

export interface ArenaHost {
  kind: string;
  /** Window of the limiter. */
  windowMs: number;
  limit: number;
  /** The limit at a time, for hosts whose limit moves. */
  limitAt(now: number): number;
  /** Called in the order of arrival. */
  take(now: number, underWay: number): HostAnswer;
}

export type Random = () => number;

/** A generator of random numbers that a seed decides (mulberry32). */
export function randomOf(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** Says for a request whether it is taken, and when the next would be. */
interface Limiter {
  take(now: number): { ok: boolean; opensAt: number };
}

class FixedWindow implements Limiter {
  #window = Number.NaN;
  #count = 0;
  readonly #max: number;
  readonly #windowMs: number;
  readonly #phaseMs: number;
  constructor(max: number, windowMs: number, phaseMs: number) {
    this.#max = max;
    this.#windowMs = windowMs;
    this.#phaseMs = phaseMs;
  }
  take(now: number): { ok: boolean; opensAt: number } {
    const window = Math.floor((now + this.#phaseMs) / this.#windowMs);
    if (window !== this.#window) {
      this.#window = window;
      this.#count = 0;
    }
    const ok = this.#count < this.#max;
    if (ok) this.#count++;
    return { ok, opensAt: (window + 1) * this.#windowMs - this.#phaseMs };
  }
}

class SlidingLog implements Limiter {
  /** The times of the last `max` requests, in a ring. */
  readonly #times: Float64Array;
  #next = 0;
  readonly #windowMs: number;
  constructor(max: number, windowMs: number) {
    this.#times = new Float64Array(max).fill(Number.NEGATIVE_INFINITY);
    this.#windowMs = windowMs;
  }
  take(now: number): { ok: boolean; opensAt: number } {
    const oldest = this.#times[this.#next]!;
    const ok = oldest <= now - this.#windowMs;
    if (ok) {
      this.#times[this.#next] = now;
      this.#next = (this.#next + 1) % this.#times.length;
    }
    return { ok, opensAt: oldest + this.#windowMs };
  }
}

/** Two fixed windows, weighted: what Cloudflare and many gateways do. */
class SlidingCounter implements Limiter {
  #window = Number.NaN;
  #count = 0;
  #before = 0;
  readonly #max: number;
  readonly #windowMs: number;
  constructor(max: number, windowMs: number) {
    this.#max = max;
    this.#windowMs = windowMs;
  }
  take(now: number): { ok: boolean; opensAt: number } {
    const window = Math.floor(now / this.#windowMs);
    if (window !== this.#window) {
      this.#before = window === this.#window + 1 ? this.#count : 0;
      this.#window = window;
      this.#count = 0;
    }
    const share = 1 - (now / this.#windowMs - window);
    const ok = this.#before * share + this.#count < this.#max;
    if (ok) this.#count++;
    return { ok, opensAt: now + this.#windowMs / this.#max };
  }
}

class TokenBucket implements Limiter {
  #tokens: number;
  #at = 0;
  readonly #rateAt: (now: number) => number;
  readonly #depth: number;
  constructor(rateAt: (now: number) => number, depth: number) {
    this.#rateAt = rateAt;
    this.#depth = depth;
    this.#tokens = depth;
  }
  take(now: number): { ok: boolean; opensAt: number } {
    const rate = this.#rateAt(now);
    this.#tokens = Math.min(this.#depth, this.#tokens + ((now - this.#at) / 1_000) * rate);
    this.#at = now;
    const ok = this.#tokens >= 1;
    if (ok) this.#tokens--;
    return { ok, opensAt: now + ((1 - this.#tokens) / rate) * 1_000 };
  }
}

interface Traits {
  limiter?: 'fixed' | 'log' | 'counter' | 'bucket';
  windowMs: number;
  /** Whether refusals say how long to wait. */
  says?: boolean;
  /** After a refusal everything is refused for so long. */
  penaltyMs?: number;
  /** After so many refusals within a minute, 403 for ten minutes. */
  bansAfter?: number;
  /** Latency grows as the load comes near to the limit. */
  loaded?: boolean;
  /** Nothing is refused: requests wait in a queue. */
  queued?: boolean;
  /** The limit moves by this share over a day. */
  drift?: number;
  outage?: 'refused' | 'failed';
  /** This share of requests fails with a bare 503. */
  unavailable?: number;
  slowTail?: boolean;
}

const MINUTE = 60_000;

export const HOST_KINDS: Readonly<Record<string, Traits>> = {
  'fixed 1 s': { limiter: 'fixed', windowMs: 1_000 },
  'fixed 1 s, Retry-After': { limiter: 'fixed', windowMs: 1_000, says: true },
  'fixed 10 s': { limiter: 'fixed', windowMs: 10_000 },
  'fixed 1 min': { limiter: 'fixed', windowMs: MINUTE },
  'fixed 1 min, Retry-After': { limiter: 'fixed', windowMs: MINUTE, says: true },
  'fixed 10 min': { limiter: 'fixed', windowMs: 10 * MINUTE },
  'fixed 10 min, Retry-After': { limiter: 'fixed', windowMs: 10 * MINUTE, says: true },
  'sliding 1 s': { limiter: 'log', windowMs: 1_000 },
  'sliding 10 s': { limiter: 'log', windowMs: 10_000, says: true },
  'sliding 1 min': { limiter: 'log', windowMs: MINUTE },
  'sliding 10 min': { limiter: 'log', windowMs: 10 * MINUTE, says: true },
  'two counters 1 min': { limiter: 'counter', windowMs: MINUTE },
  'bucket of 1 s': { limiter: 'bucket', windowMs: 1_000 },
  'bucket of 10 s': { limiter: 'bucket', windowMs: 10_000, says: true },
  'bucket of 1 min': { limiter: 'bucket', windowMs: MINUTE },
  'bucket of 10 min': { limiter: 'bucket', windowMs: 10 * MINUTE, says: true },
  'closed for 1 min after a refusal': { limiter: 'fixed', windowMs: 1_000, penaltyMs: MINUTE },
  'closed for 5 min, Retry-After': { limiter: 'bucket', windowMs: 2_000, penaltyMs: 5 * MINUTE, says: true },
  'bans after 10 refusals': { limiter: 'log', windowMs: 1_000, bansAfter: 10 },
  'slower under load': { limiter: 'log', windowMs: 2_000, loaded: true },
  'queues, never refuses': { windowMs: 1_000, queued: true },
  'daily drift': { limiter: 'bucket', windowMs: 5_000, drift: 0.15 },
  'outages with 503': { limiter: 'bucket', windowMs: 2_000, outage: 'refused' },
  'outages without answers': { limiter: 'fixed', windowMs: 1_000, outage: 'failed' },
  'random 1 % 503': { limiter: 'log', windowMs: 5_000, unavailable: 0.01 },
  'slow tails': { limiter: 'bucket', windowMs: 2_000, slowTail: true },
};

const LIMIT_MIN = 0.5;
const LIMIT_MAX = 200;
const DAY_MS = 86_400_000;

export function openHost(kind: string, seed: number): ArenaHost {
  const traits = HOST_KINDS[kind]!;
  const random = randomOf(seed);
  const { windowMs } = traits;
  const between = (low: number, high: number) => low * (high / low) ** random();
  const count = Math.max(1, Math.round((between(LIMIT_MIN, LIMIT_MAX) * windowMs) / 1_000));
  const limit = (count * 1_000) / windowMs;
  const phase = random();
  const { drift = 0 } = traits;
  const limitAt = (now: number) => limit * (1 + drift * Math.sin((now / DAY_MS + phase) * 2 * Math.PI));
  const limiter = limiterOf(traits, { count, limit, phase, limitAt, random });
  const baseMs = between(20, 250);
  const outages = traits.outage ? outagesOf(random) : [];
  let closedUntil = 0;
  let bannedUntil = 0;
  let refusedAt: number[] = [];
  let load = 0;
  let loadAt = 0;
  let queueFreeAt = 0;

  const latency = (now: number) => {
    const tail = traits.slowTail && random() < 0.02 ? 10 + 20 * random() : 1;
    const usual = baseMs * Math.exp(0.3 * normal(random)) * tail;
    return traits.loaded ? usual / Math.max(0.25, 1 - 0.75 * (load / limitAt(now))) : usual;
  };
  const refused = (now: number, opensAt: number): HostAnswer => {
    if (traits.bansAfter !== undefined) {
      refusedAt = [...refusedAt.filter((at) => at > now - MINUTE), now];
      if (refusedAt.length > traits.bansAfter) bannedUntil = now + 10 * MINUTE;
    }
    if (traits.penaltyMs !== undefined && now >= closedUntil) closedUntil = now + traits.penaltyMs;
    const until = Math.max(opensAt, closedUntil);
    const retryAfterMs = traits.says ? Math.max(1, Math.ceil((until - now) / 1_000)) * 1_000 : null;
    return { kind: 'refused', byLimiter: true, latencyMs: baseMs, retryAfterMs };
  };
  return {
    ...{ kind, windowMs, limit, limitAt },
    take(now) {
      load = load * Math.exp((loadAt - now) / 5_000) + 1 / 5;
      loadAt = now;
      const outage = outages.find(({ from, to }) => now >= from && now < to);
      if (outage && traits.outage === 'failed')
        return { kind: 'failed', byLimiter: false, latencyMs: 1_000, retryAfterMs: null };
      if (outage) return { kind: 'refused', byLimiter: false, latencyMs: baseMs, retryAfterMs: 10_000 };
      if (now < bannedUntil)
        return { kind: 'blocked', byLimiter: true, latencyMs: baseMs, retryAfterMs: null };
      if (traits.queued) {
        queueFreeAt = Math.max(queueFreeAt, now) + 1_000 / limit;
        return {
          kind: 'answered',
          byLimiter: false,
          latencyMs: latency(now) + queueFreeAt - now,
          retryAfterMs: null,
        };
      }
      if (now < closedUntil) return refused(now, closedUntil);
      const { ok, opensAt } = limiter!.take(now);
      if (!ok) return refused(now, opensAt);
      if (traits.unavailable !== undefined && random() < traits.unavailable)
        return { kind: 'failed', byLimiter: false, latencyMs: baseMs, retryAfterMs: null };
      return { kind: 'answered', byLimiter: false, latencyMs: latency(now), retryAfterMs: null };
    },
  };
}

function limiterOf(
  { limiter, windowMs }: Traits,
  options: { count: number; limit: number; phase: number; limitAt: (now: number) => number; random: Random },
): Limiter | null {
  if (limiter === 'fixed') return new FixedWindow(options.count, windowMs, options.phase * windowMs);
  if (limiter === 'log') return new SlidingLog(options.count, windowMs);
  if (limiter === 'counter') return new SlidingCounter(options.count, windowMs);
  // A bucket that holds less than two could not take two requests that arrive a little too close.
  if (limiter === 'bucket') return new TokenBucket(options.limitAt, Math.max(2, options.count));
  return null;
}

/** Some minutes apart, 20 to 120 seconds each. */
function outagesOf(random: Random): { from: number; to: number }[] {
  const outages: { from: number; to: number }[] = [];
  let at = 0;
  while (outages.length < 200) {
    at += (3 + 40 * random()) * MINUTE;
    const to = at + (20 + 100 * random()) * 1_000;
    outages.push({ from: at, to });
    at = to;
  }
  return outages;
}

function normal(random: Random): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}
