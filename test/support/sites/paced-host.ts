import { adaptPace, isRising, isTrying, startPace } from '../../../src/core/pace/pace.ts';
import {
  freeAgainAt,
  guardedGapMs,
  permitFor,
  refusalPauseMs,
  SHORT_PERMIT_MS,
  tasksPerPermit,
} from '../../../src/core/politeness/permits.ts';

/** One host, its limit, and the machines between, in virtual time. */
export interface PacedHost {
  /** Requests that it takes within `windowMs`; 429 to the others. */
  limit: number;
  windowMs?: number;
  /**
   * How it counts: over the time before each request; in windows that begin anew, each by the clock; or in a bucket that
   * holds `limit` requests and fills in `windowMs`.
   */
  counts?: 'sliding' | 'windows' | 'bucket';
  /** Its refusals say for how long. */
  tells?: boolean;
  cap: number;
  seconds: number;
  seed: number;
  /** Longest time that a process of either side now and then stands still, and how often in a second. */
  stallMs: number;
  stallsPerSecond: number;
  /** Share of pages that are 503 whenever they are asked for. */
  brokenPages?: number;
}

interface Seen {
  at: number;
  refused: boolean;
  rate: number;
}

const LATENCY_MS = 20;
const LOOK_AHEAD_MS = 400;
const PAUSE_MS = 1_000;

/** As the coordinator and a worker would ask the host: permit after permit, two of them out at once. */
export function askInPermits(host: PacedHost): Seen[] {
  const random = seeded(host.seed);
  const site = openSite(host, random);
  const log: Seen[] = [];
  let pace = startPace(host.cap);
  let grantAt = 0;
  let nextAt = 0;
  while (grantAt < host.seconds * 1_000) {
    const { rate } = pace;
    const gapMs = guardedGapMs(1_000 / rate, null);
    const permit = permitFor('h', {
      now: grantAt,
      nextAt,
      gapMs,
      parallel: 4,
      count: tasksPerPermit(gapMs, isRising(pace, host.cap) ? SHORT_PERMIT_MS : undefined),
      openMs: 0,
    });
    const seen = {
      rate,
      answers: 0,
      refused: 0,
      unavailable: 0,
      faults: 0,
      latencyMs: LATENCY_MS,
      sentRate: rate,
    };
    const count = Math.round((permit.endAt - permit.startAt) / gapMs);
    let leftAt: number | null = null;
    let toldMs: number | null = null;
    for (let index = 0; index < count && seen.refused === 0; index++) {
      const dueAt = leftAt === null ? permit.startAt : leftAt + gapMs;
      const at: number =
        dueAt + 1 + exponential(random, 1) + (random() < 0.005 ? host.stallMs * random() : 0);
      if (at > permit.endAt - gapMs) break;
      leftAt = at;
      const answer = site.ask(at + 0.5 + exponential(random, 1));
      seen.answers++;
      if (answer.status !== 200) seen.refused++;
      if (answer.status === 503) seen.unavailable++;
      if (answer.status !== 200) toldMs = host.tells ? Math.ceil(answer.waitMs / 1_000) * 1_000 : null;
      log.push({ at: answer.at, refused: answer.status === 429, rate });
    }
    const reportAt = (leftAt ?? permit.startAt) + LATENCY_MS;
    const before = pace;
    pace = adaptPace(pace, seen, host.cap, reportAt);
    const followAt = permit.endAt - LOOK_AHEAD_MS;
    if (seen.refused > 0 || isTrying(before) || reportAt <= followAt) {
      grantAt = reportAt;
      const pauseMs = toldMs ?? refusalPauseMs(pace.blocked ?? 0, PAUSE_MS);
      nextAt = Math.max(freeAgainAt(permit, leftAt, 0), seen.refused > 0 ? reportAt + pauseMs : 0);
      continue;
    }
    // The next one went out before this was answered for: under the former pace.
    grantAt = Math.max(grantAt, followAt);
    nextAt = permit.endAt;
  }
  return log;
}

/** What the host answers, and when it looked at the request: while it stands still, requests gather. */
function openSite(host: PacedHost, random: () => number) {
  const { brokenPages = 0 } = host;
  const waitFor = openLimit(host, random);
  let stallFrom = 0;
  let stallTo = 0;
  let lastAt = 0;
  return {
    ask(arrivesAt: number): { at: number; status: number; waitMs: number } {
      while (stallTo < arrivesAt) {
        stallFrom = stallTo + exponential(random, 1_000 / host.stallsPerSecond);
        stallTo = stallFrom + host.stallMs * random();
      }
      const at = Math.max(lastAt, arrivesAt >= stallFrom ? stallTo : arrivesAt);
      lastAt = at;
      const waitMs = waitFor(at);
      if (waitMs > 0) return { at, status: 429, waitMs };
      return { at, status: random() < brokenPages ? 503 : 200, waitMs: PAUSE_MS };
    },
  };
}

/** How long a request that comes at a time has to wait; 0 when it is within the limit. */
function openLimit({ limit, windowMs = 1_000, counts = 'sliding' }: PacedHost, random: () => number) {
  if (counts === 'sliding') {
    const served: number[] = [];
    return (at: number): number => {
      while (served.length > 0 && served[0]! <= at - windowMs) served.shift();
      if (served.length >= limit) return served[0]! + windowMs - at;
      served.push(at);
      return 0;
    };
  }
  const shiftMs = random() * windowMs;
  let left = limit;
  let seenAt = 0;
  return (at: number): number => {
    const endsAt = Math.ceil((seenAt + shiftMs) / windowMs) * windowMs - shiftMs;
    if (counts === 'bucket') left = Math.min(limit, left + ((at - seenAt) * limit) / windowMs);
    else if (at >= endsAt) left = limit;
    seenAt = at;
    if (left < 1) return counts === 'bucket' ? ((1 - left) * windowMs) / limit : Math.max(1, endsAt - at);
    left--;
    return 0;
  };
}

function exponential(random: () => number, mean: number): number {
  return -mean * Math.log(1 - random());
}

/** Mulberry32: small, good enough, and the same everywhere. */
function seeded(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}
