/** Small measuring instruments with a fixed size, whatever the length of the run. */

/** Counts by time in a ring of buckets: the rate over any recent stretch, and its history. */
export class RateRing {
  readonly bucketMs: number;
  #counts: Float64Array;
  #newest = -1;

  constructor(bucketMs: number, buckets: number) {
    this.bucketMs = bucketMs;
    this.#counts = new Float64Array(buckets);
  }

  add(at: number, amount: number): void {
    const bucket = Math.floor(at / this.bucketMs);
    const size = this.#counts.length;
    if (bucket > this.#newest) {
      const from = Math.max(this.#newest + 1, bucket - size + 1);
      for (let b = from; b <= bucket; b++) this.#counts[b % size] = 0;
      this.#newest = bucket;
    } else if (bucket <= this.#newest - size) {
      return;
    }
    this.#counts[bucket % size]! += amount;
  }

  #count(bucket: number): number {
    const size = this.#counts.length;
    return bucket > this.#newest || bucket <= this.#newest - size ? 0 : this.#counts[bucket % size]!;
  }

  /** Per second over the `windowMs` up to and with `until`, or since `startedAt` when that is later. */
  rate(until: number, windowMs: number, startedAt: number): number {
    const last = Math.floor(until / this.bucketMs);
    const first = Math.floor(Math.max(until - windowMs, startedAt) / this.bucketMs);
    let sum = 0;
    for (let b = first; b <= last; b++) sum += this.#count(b);
    // Under a second there is no rate to speak of, only the size of the first batch.
    const spanMs = Math.max(until - Math.max(first * this.bucketMs, startedAt), 1_000);
    return (sum * 1_000) / spanMs;
  }

  /** Rates of the whole buckets from `startedAt` to `until`, oldest first. */
  history(until: number, startedAt: number): number[] {
    const end = Math.floor((until + 1) / this.bucketMs);
    const first = Math.max(Math.floor(startedAt / this.bucketMs), end - this.#counts.length + 1);
    const rates: number[] = [];
    for (let b = first; b < end; b++) rates.push((this.#count(b) * 1_000) / this.bucketMs);
    return rates;
  }
}

/** A count that forgets: a rate in two numbers, for the thousands of hosts that a ring each would be too much for. */
export class FadingRate {
  #amount = 0;
  #at: number;
  readonly #firstAt: number;
  readonly #fadeMs: number;

  constructor(now: number, fadeMs: number) {
    this.#at = now;
    this.#firstAt = now;
    this.#fadeMs = fadeMs;
  }

  get lastAt(): number {
    return this.#at;
  }

  add(at: number, amount: number): void {
    const faded = Math.exp(-Math.abs(at - this.#at) / this.#fadeMs);
    if (at >= this.#at) {
      this.#amount = this.#amount * faded + amount;
      this.#at = at;
    } else {
      this.#amount += amount * faded;
    }
  }

  perSecond(now: number): number {
    const faded = this.#amount * Math.exp(-Math.max(0, now - this.#at) / this.#fadeMs);
    const heardMs = Math.max(1_000, now - this.#firstAt);
    return (faded * 1_000) / (this.#fadeMs * (1 - Math.exp(-heardMs / this.#fadeMs)));
  }
}

const LATENCY_BUCKETS = 36;

/** Latencies in buckets half a power of two wide: 1 ms to 3 minutes, right to within a fifth. */
export class LatencyHistogram {
  #counts = new Uint32Array(LATENCY_BUCKETS);
  #total = 0;

  add(ms: number): void {
    const bucket = ms <= 1 ? 0 : Math.min(LATENCY_BUCKETS - 1, Math.floor(Math.log2(ms) * 2));
    this.#counts[bucket]!++;
    this.#total++;
  }

  quantile(q: number): number | null {
    if (this.#total === 0) return null;
    let left = q * this.#total;
    for (let b = 0; b < LATENCY_BUCKETS; b++) {
      const count = this.#counts[b]!;
      if (count > 0 && left <= count) return Math.round(2 ** ((b + left / count) / 2) * 10) / 10;
      left -= count;
    }
    return 2 ** (LATENCY_BUCKETS / 2);
  }
}
