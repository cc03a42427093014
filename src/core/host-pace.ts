/**
 * How fast a host may be asked, learned from how it answers. Starts gently, rises while answers stay quick and
 * clean, and halves when the host refuses. From then on two rates are known, one that held and one that was
 * refused: tries between them bring them together, and after that only a little more is tried now and then.
 */
export interface HostPace {
  /** Requests per second. */
  rate: number;
  /** The highest rate that held for a whole permit. */
  clean: number | null;
  /** The lowest rate that was refused since; null when none was. */
  refused: number | null;
  /** A higher rate is tried after this time; epoch milliseconds. */
  tryAt: number;
  /** How often in a row a try was refused: each time the next comes later. */
  refusals: number;
  /** What the host usually takes to answer. */
  latencyMs: number | null;
}

/** What one permit brought. */
export interface PaceEvidence {
  /** Requests per second that it was granted for: the pace may have moved on since. */
  rate: number;
  /** Answers of any kind. */
  answers: number;
  /** Asked for fewer requests: 429, 503. */
  refused: number;
  /** Failed in another way that is the host's. */
  faults: number;
  /** Median of the answers; null without any. */
  latencyMs: number | null;
  /** Requests per second that were really sent: what is refused when the cap knows no limit. */
  sentRate: number | null;
}

const START_SHARE = 0.5;
/** Nobody is asked less than once in 20 seconds, unless robots.txt or the job says so. */
export const RATE_FLOOR = 0.05;
/** Rates this close are one. */
const SAME = 0.02;
const RISE = 1.5;
/** Closer together than this, the rate that held is good enough. */
const CLOSE = 1.15;
const NUDGE = 1.05;
/** Six hundred requests between two tries keep refusals far below one in a hundred. */
const REQUESTS_BETWEEN_TRIES = 600;
const TRY_MS_MIN = 60_000;
const TRY_DOUBLINGS_MAX = 6;
/** While the limit is still being searched for. */
const REQUESTS_IN_SEARCH = 40;
/** Answers that take this much longer than usual are a sign of strain. */
const STRAINED = 2;
const STRAINED_EXTRA_MS = 100;
const EASE = 0.8;
const LATENCY_WEIGHT = 0.2;

export function startPace(cap: number): HostPace {
  const rate = Number.isFinite(cap) ? cap * START_SHARE : cap;
  return { rate, clean: null, refused: null, tryAt: 0, refusals: 0, latencyMs: null };
}

export function adaptPace(pace: HostPace, seen: PaceEvidence, cap: number, now: number): HostPace {
  const isOld = !(seen.rate === pace.rate || Math.abs(seen.rate - pace.rate) <= pace.rate * SAME);
  if (seen.refused > 0) return isOld ? noteRefusal(pace, seen.rate) : slowedDown(pace, seen, now);
  if (seen.answers === 0 || isOld) return pace;
  const strained =
    seen.faults * 2 > seen.answers ||
    (pace.latencyMs !== null &&
      seen.latencyMs !== null &&
      seen.latencyMs > pace.latencyMs * STRAINED + STRAINED_EXTRA_MS);
  // Without a limit of ours parallelism limits already: answers that take longer mean fewer requests by themselves.
  if (strained && !Number.isFinite(pace.rate)) return pace;
  if (strained) return { ...pace, rate: Math.max(RATE_FLOOR, pace.rate * EASE) };
  const latencyMs = usual(pace.latencyMs, seen.latencyMs);
  if (seen.faults > 0) return { ...pace, latencyMs };
  return risen({ ...pace, latencyMs }, cap, now);
}

/** A permit of before was refused too: what it was refused at is known now, and slower it is already. */
function noteRefusal(pace: HostPace, rate: number): HostPace {
  if (!Number.isFinite(rate) || rate <= pace.rate) return pace;
  return { ...pace, refused: Math.min(pace.refused ?? rate, rate) };
}

function slowedDown(pace: HostPace, seen: PaceEvidence, now: number): HostPace {
  const rate = finite(pace.rate, seen);
  const next = {
    ...pace,
    rate: Math.max(RATE_FLOOR, rate / 2),
    clean: pace.clean !== null && pace.clean < rate ? pace.clean : null,
    refused: rate,
    refusals: pace.refusals + 1,
  };
  return { ...next, tryAt: now + pauseMs(next) };
}

function risen(pace: HostPace, cap: number, now: number): HostPace {
  if (pace.refused === null) {
    const rate = Math.min(cap, pace.rate * RISE);
    return { ...pace, rate, clean: Math.max(pace.clean ?? 0, pace.rate) };
  }
  // After a refusal, back to what held before.
  if (pace.clean !== null && pace.clean > pace.rate) return { ...pace, rate: Math.min(cap, pace.clean) };
  const held = { ...pace, clean: pace.rate };
  if (now < pace.tryAt) return held;
  const close = pace.refused / held.clean < CLOSE;
  const rate = Math.min(cap, close ? held.clean * NUDGE : Math.sqrt(held.clean * pace.refused));
  const next = { ...held, rate, refused: Math.max(pace.refused, rate * NUDGE), refusals: 0 };
  return rate >= cap ? { ...next, refused: null } : { ...next, tryAt: now + pauseMs(next) };
}

function pauseMs({ clean, refused, refusals }: HostPace): number {
  if (clean === null || refused === null || refused / clean >= CLOSE)
    return (REQUESTS_IN_SEARCH / (clean ?? refused ?? 1)) * 1_000;
  const pause = Math.max(TRY_MS_MIN, (REQUESTS_BETWEEN_TRIES / clean) * 1_000);
  return pause * 2 ** Math.min(refusals, TRY_DOUBLINGS_MAX);
}

/** Whether clean permits are followed by faster ones: the sooner they end, the better. */
export function isRising({ rate, clean, refused }: HostPace, cap: number): boolean {
  return refused === null ? rate < cap : clean === null || rate < clean || refused / clean >= CLOSE;
}

/** Without a limit of ours, what was sent is what was refused. */
function finite(rate: number, seen: PaceEvidence): number {
  return Number.isFinite(rate) ? rate : Math.max(RATE_FLOOR, seen.sentRate ?? 1);
}

function usual(before: number | null, latest: number | null): number | null {
  if (latest === null) return before;
  return before === null ? latest : before + (latest - before) * LATENCY_WEIGHT;
}
