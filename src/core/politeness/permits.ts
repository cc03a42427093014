import type { Permit } from '../batch/batch.ts';
import { LIMITS } from '../limits.ts';

/**
 * Sending is timed here, but the gap counts where the host sees it: timers, sockets and
 * schedulers move a request by a millisecond or two. Hosts are promised the gap, so it is
 * granted with this margin.
 */
export function guardedGapMs(gapMs: number, crawlDelayMs: number | null): number {
  const asked = Math.max(gapMs, crawlDelayMs ?? 0);
  return asked === 0 ? 0 : asked + Math.min(GUARD_MS_MAX, asked * GUARD_SHARE);
}

/** The gap that was asked for, from the one that was granted. */
export function unguardedGapMs(guardedMs: number): number {
  return Math.max(guardedMs - GUARD_MS_MAX, guardedMs / (1 + GUARD_SHARE));
}

const GUARD_MS_MAX = 30;
const GUARD_SHARE = 0.055;

/** Time that one permit covers: long enough to be worth a batch, short enough to lose little with a worker. */
const PERMIT_MS = 5_000;

/** While the pace of a host is on its way up: the sooner a permit ends, the sooner the next is faster. */
export const SHORT_PERMIT_MS = 1_500;

export function tasksPerPermit(gapMs: number, permitMs = PERMIT_MS): number {
  return Math.max(1, Math.floor(Math.min(permitMs, LIMITS.permitMsMax) / gapMs));
}

/** One gap in fifty is a longer pause. */
const PAUSE_CHANCE = 0.02;
const PAUSE_FACTOR = 8;

/** The next gap: never shorter than what is permitted. `chance` and `share` are random, in [0, 1). */
export function jitteredGapMs(gapMs: number, jitter: number, chance: number, share: number): number {
  return gapMs * (1 + jitter * (chance < PAUSE_CHANCE ? PAUSE_FACTOR : 1) * share);
}

/** What a gap takes on average, with its jitter. */
export function meanGapMs(gapMs: number, jitter: number): number {
  return gapMs * (1 + (jitter / 2) * (1 + PAUSE_CHANCE * (PAUSE_FACTOR - 1)));
}

/** A hand-over takes no longer than this, as a rule. */
const HAND_OVER_MS = 50;

/**
 * Every timer fires a millisecond or two late, and the first may be later: with this slack all requests of
 * a permit still fit in. A single one has nothing to make up for a slow hand-over; one that is handed over ahead of its
 * time needs nothing for that.
 */
function slackMs(count: number, aheadMs: number): number {
  if (count === 1) return 3 * HAND_OVER_MS;
  return Math.max(20, HAND_OVER_MS - aheadMs) + Math.min(2 * count, 100);
}

/** A browser has to start, and then to open a page before each request. What is not used is given back at once. */
const BROWSER_START_MS = 15_000;
const BROWSER_PAGE_MS = 500;

/** A permit for `count` requests. */
export function permitFor(
  host: string,
  options: {
    now: number;
    nextAt: number;
    gapMs: number;
    jitter?: number;
    parallel: number;
    count: number;
    openMs: number;
    /** Its requests are sent by a browser. */
    renders?: boolean;
    /** The end of the host's allowed hours. */
    closesAt?: number | undefined;
    /** Where workers have to keep longer gaps: what most of them need, and how much more at the most. */
    usualGapMs?: number;
    longerGapMs?: number;
  },
): Permit {
  const { gapMs, jitter = 0, count, usualGapMs = gapMs, longerGapMs = 0 } = options;
  const startAt = Math.ceil(Math.max(options.now, options.nextAt));
  const startMs = options.renders ? BROWSER_START_MS + count * BROWSER_PAGE_MS : 0;
  const slack = slackMs(count, startAt - options.now) + startMs + longerGapMs;
  const spanMs = count * meanGapMs(usualGapMs, jitter) + slack;
  const endAt = gapMs === 0 ? startAt + options.openMs : Math.ceil(startAt + spanMs);
  const { closesAt = Number.POSITIVE_INFINITY } = options;
  return {
    ...{ host, startAt, endAt, gapMs, parallel: options.parallel },
    ...(jitter > 0 ? { jitter } : {}),
    ...(closesAt < endAt ? { closesAt } : {}),
  };
}

/** When the next permit may start after this one was used: from the last request really sent. */
export function freeAgainAt(permit: Permit, lastSentAt: number | null, gapMs: number): number {
  if (permit.gapMs === 0 && gapMs === 0) return permit.startAt;
  return Math.ceil(lastSentAt === null ? permit.startAt : lastSentAt + Math.max(permit.gapMs, gapMs));
}

/**
 * When the host is free after a permit whose worker was lost. One that is known to have ended sends nothing from now on;
 * one that only fell silent may still send until the permit ends, unless it has no gap to keep.
 */
export function freeAfterLoss(permit: Permit, { now, ended }: { now: number; ended: boolean }): number {
  if (!ended && permit.gapMs > 0) return permit.endAt;
  return Math.min(permit.endAt, freeAgainAt(permit, now < permit.startAt ? null : now, 0));
}

/** No window of 429s is known to be longer, without a Retry-After that says so. */
const BLOCKED_MS_MAX = 60_000;

/**
 * Pause of a host that refuses and did not say for how long. One that refuses the next request as well is closed for a
 * while, often a minute: asking every few seconds would only use up the attempts of its tasks.
 */
export function refusalPauseMs(blocked: number, firstMs: number): number {
  return blocked === 0 ? firstMs : Math.max(firstMs, Math.min(firstMs * 8 ** blocked, BLOCKED_MS_MAX));
}
