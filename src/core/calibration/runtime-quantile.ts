/** How long one request took. `isCut` is a timeout: it would have taken longer, nobody knows how much. */
export interface Runtime {
  ms: number;
  isCut: boolean;
}

const TAIL = 0.99;
const CONFIDENCE = 0.95;
const TIMEOUT_FACTOR = 1.5;
/** A timeout below this would cut off answers that meet one lost packet: it is sent again after a second or two. */
const TIMEOUT_MS_MIN = 3_000;
/** Fewer runtimes say nothing of a tail. */
const RUNTIMES_MIN = 20;

/**
 * An upper bound of the 99th percentile, at 95 %: the order statistic that lies above it with that probability. With fewer
 * than 299 runtimes there is none, and the longest stands for it. Runtimes that were cut are longer than any that was
 * seen. Null where too few are known; `isCut` where the bound lies among those that were cut: then it is higher than `ms`.
 */
export function tailBound(runtimes: readonly Runtime[]): { ms: number; isCut: boolean } | null {
  const count = runtimes.length;
  if (count < RUNTIMES_MIN) return null;
  const sorted = [...runtimes].sort((a, b) => Number(a.isCut) - Number(b.isCut) || a.ms - b.ms);
  return sorted[Math.min(count, rankAbove(count)) - 1]!;
}

/** The smallest rank whose value is above the quantile with the wanted probability (normal approximation). */
function rankAbove(count: number): number {
  const spread = Math.sqrt(count * TAIL * (1 - TAIL));
  const wanted = Math.ceil(count * TAIL + 1.645 * spread);
  // With few values even the largest is above it with a lower probability only.
  return count * Math.log(TAIL) > Math.log(1 - CONFIDENCE) ? count : wanted;
}

/**
 * 1.5 × the upper bound of the 99th percentile. Where more than one in a hundred were cut by the present timeout, that
 * one is too short: it grows by half, and the next estimate sees further. Null where too little is known.
 */
export function timeoutFor(runtimes: readonly Runtime[], timeoutMsMax: number): number | null {
  const bound = tailBound(runtimes);
  if (bound === null) return null;
  return Math.min(timeoutMsMax, Math.max(TIMEOUT_MS_MIN, Math.ceil(bound.ms * TIMEOUT_FACTOR)));
}
