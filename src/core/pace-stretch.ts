import type { PaceEvidence } from './host-pace.ts';

/** What a host answered since it last refused. */
export interface Stretch {
  from: number;
  answers: number;
  /** The first refusal after them, and the last so far; epoch milliseconds. */
  refusedAt?: number;
  closedAt?: number;
}

/** A limit that counts over a longer time: it lies between these rates. */
export interface LongLimit {
  least: number;
  most: number;
  windowMs: number;
}

/** Who takes fewer before it refuses, or refuses for a shorter time, does not count over much more than a second. */
const ANSWERS_MIN = 50;
const CLOSED_MS_MIN = 4_000;
/** Nobody is known to count over more than a minute; what is refused later than this has other reasons. */
const WINDOW_MS_MAX = 90_000;
/** Who was not asked for longer than any pause says nothing by answering again. */
const SILENCE_MS_MAX = 90_000;

/** Notes what a permit brought; when it is the first to be answered after refusals, they may tell a limit. */
export function continueStretch(
  before: Stretch | undefined,
  seen: PaceEvidence,
  now: number,
): { stretch: Stretch; limit: LongLimit | null } {
  const startedAt = Number.isFinite(seen.rate) ? now - (seen.answers / seen.rate) * 1_000 : now;
  const answers = seen.answers - seen.refused;
  const isOpenAgain = before?.refusedAt !== undefined && answers > 0;
  const limit = isOpenAgain ? limitOf(before, Math.max(startedAt, before.closedAt!)) : null;
  const base = before && !isOpenAgain ? before : { from: startedAt, answers: 0 };
  const stretch = { ...base, answers: base.answers + answers };
  if (seen.refused === 0) return { stretch, limit };
  return { stretch: { ...stretch, refusedAt: stretch.refusedAt ?? now, closedAt: now }, limit };
}

/**
 * A host that takes so many requests and then none for a while counts over a longer time: one that ends between its last
 * refusal and its next answer, whatever rate seemed to hold for some seconds before.
 */
function limitOf({ from, answers, refusedAt, closedAt }: Stretch, openAt: number): LongLimit | null {
  if (answers < ANSWERS_MIN) return null;
  if (refusedAt! - from > WINDOW_MS_MAX || openAt - refusedAt! < CLOSED_MS_MIN) return null;
  if (openAt - closedAt! > SILENCE_MS_MAX) return null;
  const windowMs = openAt - from;
  return { least: (answers / windowMs) * 1_000, most: (answers / (closedAt! - from)) * 1_000, windowMs };
}
