/** What was decided about workers or batches, and why, for people who ask later. */
export interface ScalingDecision {
  /** Epoch milliseconds. */
  at: number;
  text: string;
}

/** Decisions that are remembered. */
const DECISIONS_KEPT = 10;

/** `22:41:07 UTC  3 threads instead of 2: …` */
export function decisionText({ at, text }: ScalingDecision): string {
  return `${new Date(at).toISOString().slice(11, 19)} UTC  ${text}`;
}

/** Of several that decide; the newest last. */
export function newestDecisions(all: readonly ScalingDecision[]): ScalingDecision[] {
  return all.toSorted((one, other) => one.at - other.at).slice(-DECISIONS_KEPT);
}
