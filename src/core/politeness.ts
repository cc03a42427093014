import type { Permit } from './batch.ts';
import { LIMITS } from './limits.ts';

/**
 * Sending is timed here, but the gap counts where the host sees it: timers, sockets and
 * schedulers move a request by a millisecond or two. Hosts are promised the gap, so it is
 * granted with this margin.
 */
export function guardedGapMs(gapMs: number, crawlDelayMs: number | null): number {
  const asked = Math.max(gapMs, crawlDelayMs ?? 0);
  return asked === 0 ? 0 : asked + Math.min(30, asked * 0.055);
}

/** Time that one permit covers: long enough to be worth a batch, short enough to lose little with a worker. */
const PERMIT_MS = 5_000;

export function tasksPerPermit(gapMs: number): number {
  return Math.max(1, Math.floor(Math.min(PERMIT_MS, LIMITS.permitMsMax) / gapMs));
}

/**
 * Every timer fires a millisecond or two late, and the first may be later: with this slack all requests of
 * a permit still fit in. A single one has nothing to make up for a slow hand-over.
 */
function slackMs(count: number): number {
  return count === 1 ? 150 : 50 + Math.min(2 * count, 100);
}

/** A permit for `count` requests. */
export function permitFor(
  host: string,
  options: { now: number; nextAt: number; gapMs: number; parallel: number; count: number; openMs: number },
): Permit {
  const { gapMs, count } = options;
  const startAt = Math.ceil(Math.max(options.now, options.nextAt));
  const endAt = gapMs === 0 ? startAt + options.openMs : Math.ceil(startAt + count * gapMs + slackMs(count));
  return { host, startAt, endAt, gapMs, parallel: options.parallel };
}

/** When the next permit may start after this one was used: from the last request really sent. */
export function freeAgainAt(permit: Permit, lastSentAt: number | null, gapMs: number): number {
  if (permit.gapMs === 0 && gapMs === 0) return permit.startAt;
  return Math.ceil(lastSentAt === null ? permit.startAt : lastSentAt + Math.max(permit.gapMs, gapMs));
}

/** Rest of a host that fails: doubled each time. */
export function restMs(rests: number, firstMs: number): number {
  return Math.min(firstMs * 2 ** Math.min(rests - 1, 20), LIMITS.hostRestMsMax);
}
