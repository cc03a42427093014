/** Upper bounds in seconds, as OpenTelemetry advises for the duration of HTTP requests. */
export const LATENCY_BOUNDS_SECONDS = [
  0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10,
] as const;

const BOUNDS_MS = LATENCY_BOUNDS_SECONDS.map((seconds) => seconds * 1_000);

/** One more than bounds: the last bucket has all that took longer. */
export const LATENCY_BUCKETS = BOUNDS_MS.length + 1;

/** Latencies in buckets. Two histograms can be merged, and quantiles of the sum are as good as those of each. */
export interface Histogram {
  buckets: number[];
  sumMs: number;
  maxMs: number;
}

export interface Quantiles {
  p50: number | null;
  p95: number | null;
  p99: number | null;
}

export function emptyHistogram(): Histogram {
  return { buckets: new Array<number>(LATENCY_BUCKETS).fill(0), sumMs: 0, maxMs: 0 };
}

export function addLatency(histogram: Histogram, ms: number): void {
  // A clock that was set back must not make sums shrink.
  const took = Math.max(0, ms);
  let bucket = 0;
  while (bucket < BOUNDS_MS.length && took > BOUNDS_MS[bucket]!) bucket++;
  histogram.buckets[bucket]!++;
  histogram.sumMs += took;
  if (took > histogram.maxMs) histogram.maxMs = took;
}

export function addHistogram(into: Histogram, other: Histogram): void {
  for (let bucket = 0; bucket < LATENCY_BUCKETS; bucket++) into.buckets[bucket]! += other.buckets[bucket]!;
  into.sumMs += other.sumMs;
  into.maxMs = Math.max(into.maxMs, other.maxMs);
}

export function countOf({ buckets }: Histogram): number {
  return buckets.reduce((sum, count) => sum + count, 0);
}

export function quantilesOf(histogram: Histogram): Quantiles {
  return { p50: quantile(histogram, 0.5), p95: quantile(histogram, 0.95), p99: quantile(histogram, 0.99) };
}

/** In milliseconds, evenly spread within its bucket and never above the longest; null when nothing was measured. */
export function quantile(histogram: Histogram, q: number): number | null {
  const { buckets, maxMs } = histogram;
  let left = q * countOf(histogram);
  if (left === 0) return null;
  for (const [bucket, count] of buckets.entries()) {
    if (left > count) {
      left -= count;
      continue;
    }
    const from = bucket === 0 ? 0 : BOUNDS_MS[bucket - 1]!;
    const to = Math.min(maxMs, BOUNDS_MS[bucket] ?? maxMs);
    return Math.round((from + Math.max(0, to - from) * (left / count)) * 10) / 10;
  }
  return Math.round(maxMs * 10) / 10;
}
