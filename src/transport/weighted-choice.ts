/** Which of several dispatchers gets the next batch. Pure: what they can take, and the time, are given. */

/** So many losses in a row, with nothing answered in between, and a dispatcher rests. */
export const LOSSES_MAX = 3;
const REST_MS = 2_000;
const REST_MS_MAX = 60_000;

/** What is remembered of one dispatcher. */
export interface Share {
  readonly weight: number;
  /** What it is owed, in weights: the one that is owed most comes next. */
  credit: number;
  /** Batches under way. */
  out: number;
  lossesInRow: number;
  /** Losses of batches sent before this moment count no more: what was out together is lost together. */
  lostAt: number;
  /** Gets nothing before. */
  restUntil: number;
}

/** What a dispatcher can take now. */
interface Room {
  workers: number;
  slots: number;
}

export function startShare(weight: number): Share {
  return {
    weight,
    credit: 0,
    out: 0,
    lossesInRow: 0,
    lostAt: Number.NEGATIVE_INFINITY,
    restUntil: Number.NEGATIVE_INFINITY,
  };
}

/** How many more batches it may get. One that was resting proves itself with a single one. */
export function freeOf(share: Share, { workers, slots }: Room, now: number): number {
  if (workers < 1 || now < share.restUntil) return 0;
  const most = share.lossesInRow >= LOSSES_MAX ? Math.min(1, slots) : slots;
  return Math.max(0, most - share.out);
}

/**
 * Smooth weighted round robin: of weights 3 and 1 the order is a a b a, not a a a b. Who has no room is left out and
 * is owed nothing for it, so that it is not flooded when it is back.
 */
export function chooseShare(shares: readonly Share[], open: (index: number) => boolean): number | null {
  let chosen: number | null = null;
  let total = 0;
  for (const [index, share] of shares.entries()) {
    if (!open(index)) continue;
    share.credit += share.weight;
    total += share.weight;
    if (chosen === null || share.credit > shares[chosen]!.credit) chosen = index;
  }
  if (chosen !== null) shares[chosen]!.credit -= total;
  return chosen;
}

export function noteAnswer(share: Share): void {
  share.lossesInRow = 0;
  share.restUntil = Number.NEGATIVE_INFINITY;
}

export function noteLoss(share: Share, { sentAt, now }: { sentAt: number; now: number }): void {
  if (sentAt < share.lostAt) return;
  share.lostAt = now;
  share.lossesInRow++;
  const rests = share.lossesInRow - LOSSES_MAX;
  if (rests >= 0) share.restUntil = now + Math.min(REST_MS_MAX, REST_MS * 2 ** Math.min(rests, 16));
}
