import type { FailureCode } from '../failures.ts';

/** How long one request took. `isCut` is a timeout: it would have taken longer, nobody knows how much. */
export interface Runtime {
  ms: number;
  isCut: boolean;
}

/** Whether a request was cut off by one of its timeouts. */
export function isTimeout(code: FailureCode): boolean {
  return code.endsWith('-timeout');
}

const TAIL = 0.99;
const CONFIDENCE = 0.95;
const TIMEOUT_FACTOR = 1.5;
/** A timeout below this would cut off answers that meet one lost packet: it is sent again after a second or two. */
const TIMEOUT_MS_MIN = 3_000;
/** Fewer runtimes say nothing of a tail. */
const RUNTIMES_MIN = 20;

/**
 * An upper bound of the 99th percentile, at 95 %: the runtime that lies above it with that probability. With fewer than 299
 * runtimes there is none, and the longest stands for it. Runtimes that were cut say only that theirs is longer: how many
 * are longer than a time is estimated from those that were still under way then (Kaplan and Meier), so it does not matter
 * that the timeout changes. Null where too few are known; `isCut` where the bound lies beyond all that were cut: then it
 * is higher than `ms`.
 */
export function tailBound(runtimes: readonly Runtime[]): { ms: number; isCut: boolean } | null {
  const count = runtimes.length;
  if (count < RUNTIMES_MIN) return null;
  const sorted = [...runtimes].sort((a, b) => a.ms - b.ms || Number(a.isCut) - Number(b.isCut));
  let longerShare = 1;
  let cut = 0;
  for (const [index, runtime] of sorted.entries()) {
    if (runtime.isCut) cut++;
    else longerShare *= 1 - 1 / (count - index);
    if (!runtime.isCut && longerShare <= shareBelow(count - cut)) return runtime;
  }
  return sorted.at(-1)!;
}

/** The share of longer runtimes at which the percentile is passed with the wanted probability (normal approximation). */
function shareBelow(count: number): number {
  const spread = Math.sqrt((TAIL * (1 - TAIL)) / count);
  // With few values even the largest is above it with a lower probability only.
  const isKnown = count * Math.log(TAIL) <= Math.log(1 - CONFIDENCE);
  return isKnown ? Math.max(0, 1 - TAIL - 1.645 * spread) + ROUNDING : -1;
}

/** Products of shares miss the exact ones by so little. */
const ROUNDING = 1e-9;

/**
 * 1.5 × the upper bound of the 99th percentile. Where more than one in a hundred were cut by the present timeout, that
 * one is too short: it grows by half, and the next estimate sees further. Null where too little is known.
 */
export function timeoutFor(runtimes: readonly Runtime[], timeoutMsMax: number): number | null {
  const bound = tailBound(runtimes);
  if (bound === null) return null;
  return Math.min(timeoutMsMax, Math.max(TIMEOUT_MS_MIN, Math.ceil(bound.ms * TIMEOUT_FACTOR)));
}
