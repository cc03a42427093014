import type { AnswerHistory } from './answer-history.ts';

/** The time over which a host counts requests: people choose round ones, so what was measured is one of these. */

const USUAL_WINDOW_SECONDS = [5, 10, 15, 20, 30, 60, 120, 180, 300, 600, 900, 1_200, 1_800, 3_600];
/** A cycle with fewer answers is no estimate. */
export const ESTIMATE_ANSWERS_MIN = 8;

export function isUsualLength(ms: number): boolean {
  return USUAL_WINDOW_SECONDS.includes(Math.round(ms / 1_000));
}

/** Of the windows that people choose, the one that fits; otherwise what was measured. */
export function fittingWindowMs({ ms, msMin, msMax }: { ms: number; msMin: number; msMax: number }): number {
  const fitting = USUAL_WINDOW_SECONDS.map((seconds) => seconds * 1_000).filter(
    (windowMs) => windowMs >= msMin * 0.98 && windowMs <= msMax * 1.02,
  );
  if (fitting.length === 0) return ms;
  return fitting.reduce((best, windowMs) =>
    Math.abs(Math.log(windowMs / ms)) < Math.abs(Math.log(best / ms)) ? windowMs : best,
  );
}

/**
 * The fixed window that a closure was the rest of, where the host said how long that is: of those that people choose, the
 * shortest in which the host did not answer more often before. What it answered in it is its limit.
 */
export function windowBehind(
  history: AnswerHistory,
  { from, openAt, closedMs }: { from: number; openAt: number; closedMs: number },
): { ms: number; rate: number } | null {
  for (const seconds of USUAL_WINDOW_SECONDS) {
    const ms = seconds * 1_000;
    if (ms < closedMs * 0.98) continue;
    const answered = history.between(openAt - ms, from);
    const before = history.between(openAt - 2 * ms, openAt - ms);
    if (answered >= ESTIMATE_ANSWERS_MIN && before <= answered * 1.01)
      return { ms, rate: (answered * 1_000) / ms };
  }
  return null;
}

/** Shorter windows are found by experiment, and a longer one has not been filled by what a calibration sends. */
const SLIDING_SECONDS = [60, 120, 180, 300, 600];
/** Buckets hold what they take in ten minutes, at the most. What was measured may be this much too low. */
const BUCKET_SECONDS = 600;
const BUCKET_SLACK = 1.5;
const AROUND_MS = 15_000;

/**
 * The sliding window that was full when a host began to refuse, and then took only `taken` requests per second. It takes as
 * many as leave it: of those that people choose, the shortest at whose beginning so few were answered.
 */
export function slidingWindowBehind(
  history: AnswerHistory,
  fullAt: number,
  taken: number,
): { ms: number; rate: number } | null {
  for (const seconds of SLIDING_SECONDS) {
    const ms = seconds * 1_000;
    const begin = fullAt - ms;
    const leaving = history.between(begin - AROUND_MS, begin + AROUND_MS) / (2 * (AROUND_MS / 1_000));
    const answered = history.between(begin, fullAt);
    // As many may come out of a bucket that was full.
    if (answered <= taken * (seconds + BUCKET_SECONDS) * BUCKET_SLACK) continue;
    if (leaving <= taken * 1.3) return { ms, rate: answered / seconds };
  }
  return null;
}
