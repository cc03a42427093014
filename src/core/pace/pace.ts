/**
 * Pace: how many requests per second a host accepts, learned from how it answers.
 *
 * Cap        the job's rate for the host: the pace never exceeds it.
 * Permit     a time window for requests (`core/politeness/permits.ts`). The pace changes after a permit, never within.
 * Clean      a permit without a refusal and without a fault of the host.
 * Refusal    429, 503 with Retry-After, or 503 for many pages: the host asked for fewer requests (`core/failures.ts`).
 * Held       said of a rate at which a permit was clean; for `proofMs`, where earlier rates were believed too soon.
 *
 * Two rates are known after the first refusals, one that held (`clean`) and one that was refused (`refused`). Tries
 * between them bring them together. `docs/politeness.md` has the same states, with their numbers:
 *
 *   state      | the host gets                            | event                            | next
 *   -----------|------------------------------------------|----------------------------------|--------------------------
 *   rising     | half of the cap, more with each permit   | clean permit                     | rising, or full rate
 *              |                                          | refusal                          | searching
 *   full rate  | the cap                                  | refusal                          | searching
 *   searching  | half of the refused rate for a permit,   | some requests or seconds later   | trying
 *              | then the rate that held                  | the two rates are close          | settled
 *   trying     | a rate between the two, or a little more | clean permit (it held)           | searching, or settled;
 *              | when settled; one permit at a time       |                                  | full rate at the cap
 *              |                                          | refusal                          | searching, or settled
 *   settled    | a little less than the rate that held    | many requests later              | trying
 *              |                                          | refusal after many answers       | slip
 *              |                                          | refusal before                   | searching
 *   slip       | half the rate for a permit, then a       | clean permit                     | settled
 *              | little less than before                  | refusal                          | searching
 *   strained   | less, while answers are slow or fail     | clean permit                     | the state before
 *   closed     | a pause (`refusalPauseMs`)               | answer                           | the state before, or
 *              |                                          |                                  | searching at a long limit
 *
 * Resting, the last state of that table, is the host's circuit breaker (`core/circuit-breaker/`). The state is not kept by
 * name: `rate`, `clean` and `refused` tell it, see `isRising`, `isTrying` and `isSettled`. The coordinator's half is
 * `coordinator/pace/`, which gathers what a permit brought; the worker's is `worker/batch/pace.ts`, which keeps the gaps.
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
  /** Answers without a refusal since the last one, or since something was tried. */
  since?: number;
  /** Refusals in a row with no other answer between: the host is closed for a while, whatever the rate. */
  blocked?: number;
  /** How long a rate must hold before it is believed, and from when on the present one is. */
  proofMs?: number;
  provenAt?: number;
  stretch?: Stretch;
  /** Of the pages that failed and were requested again, the share that answered then; recent ones above all. */
  recovery?: number;
  /** How many such pages this is known from. */
  retried?: number;
  /** Requests between two tries while none was refused, where many are under way and so refused together. */
  tryRequests?: number;
  /** The pace comes from calibration, which counts no longer after this; epoch milliseconds. */
  knownUntil?: number;
  /** Of the job that it was learned under; absent where that had none. */
  cap?: number;
  /** Where a job has paces by address: what each of them has learned (`address-pace.ts`). */
  addresses?: Record<string, AddressPace>;
}

export interface AddressPace extends Omit<HostPace, 'addresses'> {
  /** When it last reported; epoch milliseconds. */
  at: number;
}

/** What one permit brought. */
export interface PaceEvidence {
  /** Requests per second that it was granted for: the pace may have moved on since. */
  rate: number;
  /** Answers of any kind. */
  answers: number;
  /** Asked for fewer requests: 429, 503. */
  refused: number;
  /** Of these, those that may have been about one page: 503. */
  unavailable?: number;
  /** Failed in another way that is the host's. */
  faults: number;
  /** Median of the answers; null without any. */
  latencyMs: number | null;
  /** Requests per second that were really sent: what is refused when the cap knows no limit. Null for a single one. */
  sentRate: number | null;
}

const START_SHARE = 0.5;
/** No host is asked less than once in 20 seconds, unless robots.txt or the job says so. */
const RATE_FLOOR = 0.05;
/**
 * A host without a limit of ours that refuses a lone request, or one of a few: which rate it takes is not known, so it begins
 * low and rises. What was sent was taken for that rate, and the host was asked every 20 seconds, for hours.
 */
const LONE_RATE = 1;
/** Four halvings: who wants still less says for how long, with Retry-After. */
const FLOOR_SHARE = 1 / 16;
const FLOOR_MAX = 1;
/** Rates this close are one. */
const SAME = 0.02;
const RISE = 1.5;
/** Closer together than this, the limit is known: it lies between the rate that held and the one that was refused. */
const CLOSE = 1.1;
/**
 * Kept below the rate that held. Of a limit within a second this leaves 75 ms for requests to come early or late, and
 * with all that is lost on the way (`CLOSE`, pauses between permits) more than 80 % of it.
 */
const KEPT = 0.93;
const NUDGE = 1.05;
/** Six hundred requests between two tries keep refusals far below one in a hundred. */
const REQUESTS_BETWEEN_TRIES = 600;
const TRY_MS_MIN = 60_000;
const TRY_DOUBLINGS_MAX = 6;
/** While the limit is still being searched for. */
const REQUESTS_IN_SEARCH = 20;
const SEARCH_MS_MAX = 15_000;
/** A refusal after so many answers, at a rate below one that held, is a slip: a machine stood still, requests bunched. */
const ANSWERS_BETWEEN_SLIPS = 100;
const SLIPPED = 0.97;
/** A limit within a minute shows late: rates that were believed too soon are held for longer the next time. */
const PROOF_MS_MIN = 10_000;
const PROOF_MS_MAX = 120_000;
/** 503 to one in eight answers or fewer is about pages and not about the host; so are five in a row, at the most. */
const ANSWERS_TO_UNAVAILABLE = 8;
const UNAVAILABLE_MAX = 5;
/** Answers that take this much longer than usual are a sign of strain. */
const STRAINED = 2;
const STRAINED_EXTRA_MS = 100;
const EASE = 0.8;
const LATENCY_WEIGHT = 0.2;

export function startPace(cap: number): HostPace {
  const rate = Number.isFinite(cap) ? cap * START_SHARE : cap;
  return { rate, clean: null, refused: null, tryAt: 0, refusals: 0, latencyMs: null };
}

/**
 * The pace of a host under a cap. A lower cap of before says nothing of what the host takes: one that was neither refused
 * nor strained under it begins as a new host does.
 */
export function paceUnder(pace: HostPace | null, cap: number): HostPace {
  const start = startPace(cap);
  // A rate that is none must not become no limit.
  if (pace === null || !(pace.rate > 0)) return start;
  const { cap: before, rate, refused, knownUntil } = pace;
  const isRaised = before != null && cap > before && knownUntil === undefined;
  const wasHeldBack = isRaised && refused === null && rate >= before * START_SHARE;
  return wasHeldBack && rate < start.rate ? { ...pace, rate: start.rate } : pace;
}

/** Notes what it was learned under. A pace above the cap was learned by another job. */
export function notedCap(pace: HostPace, cap: number): HostPace {
  return Number.isFinite(cap) && pace.rate <= cap ? { ...pace, cap } : pace;
}

/** The last eight or so decide. */
const RECOVERY_WEIGHT = 1 / 8;
/** Fewer say nothing. */
const RETRIED_MIN = 2;

/** Notes what became of pages that had failed before. */
export function noteRetries(pace: HostPace, recovered: number, relapsed: number): HostPace {
  const count = recovered + relapsed;
  if (count === 0) return pace;
  const retried = pace.retried ?? 0;
  const weight = Math.max(count / (retried + count), 1 - (1 - RECOVERY_WEIGHT) ** count);
  const recovery = (pace.recovery ?? 0) * (1 - weight) + (recovered / count) * weight;
  return {
    ...pace,
    recovery: Math.round(recovery * 1_000) / 1_000,
    retried: Math.min(retried + count, 1_000),
  };
}

/** Whether pages that fail answer the next time, so that it was the host that refused them. */
export function pagesRecover({ recovery, retried }: HostPace): boolean {
  return (retried ?? 0) >= RETRIED_MIN && (recovery ?? 0) >= 0.5;
}

export function adaptPace(before: HostPace, seen: PaceEvidence, cap: number, now: number): HostPace {
  if (seen.answers === 0) return before;
  const { stretch, limit } = continueStretch(before.stretch, seen, now);
  const pace = { ...(limit ? enlightened(before, limit, cap, now) : before), stretch };
  const isOld = !(seen.rate === pace.rate || Math.abs(seen.rate - pace.rate) <= pace.rate * SAME);
  if (seen.refused > 0) return isOld ? noteRefusal(pace, seen.rate) : slowedDown(pace, seen, cap, now);
  if (isOld) return pace;
  const strained =
    seen.faults * 2 > seen.answers ||
    (pace.latencyMs !== null &&
      seen.latencyMs !== null &&
      seen.latencyMs > pace.latencyMs * STRAINED + STRAINED_EXTRA_MS);
  // Without a limit of ours parallelism limits already: answers that take longer mean fewer requests by themselves.
  if (strained && !Number.isFinite(pace.rate)) return pace;
  if (strained) return { ...pace, rate: Math.min(pace.rate, Math.max(floorOf(cap), pace.rate * EASE)) };
  const latencyMs = usual(pace.latencyMs, seen.latencyMs);
  const since = Math.min((pace.since ?? 0) + seen.answers, REQUESTS_BETWEEN_TRIES);
  const better = { ...pace, latencyMs, since, blocked: 0 };
  return seen.faults > 0 ? better : risen(better, cap, now);
}

/** After a ban the host gets less, as after a refused request. Without a limit of ours there is nothing to halve. */
export function slowedByBan(pace: HostPace, cap: number, now: number): HostPace {
  if (!Number.isFinite(pace.rate)) return pace;
  const seen = { rate: pace.rate, answers: 1, refused: 1, faults: 0, latencyMs: null, sentRate: null };
  return slowedDown({ ...pace, since: Math.max(1, pace.since ?? 0) }, seen, cap, now);
}

/** What held for some seconds is not believed above a limit that counts over a longer time. */
function enlightened(
  pace: HostPace,
  { least, most, windowMs }: LongLimit,
  cap: number,
  now: number,
): HostPace {
  const clean = pace.clean !== null && pace.clean < most ? Math.max(pace.clean, least) : least;
  const refused = Math.min(pace.refused ?? most, most);
  const proofMs = Math.min(PROOF_MS_MAX, Math.max(pace.proofMs ?? 0, windowMs));
  const next = { ...pace, rate: Math.min(cap, clean), clean, refused, refusals: 0, proofMs };
  return { ...next, provenAt: now + proofMs, tryAt: now + pauseMs(next) };
}

/** A permit of before was refused too: what it was refused at is known now, and slower it is already. */
function noteRefusal(pace: HostPace, rate: number): HostPace {
  if (!Number.isFinite(rate) || rate <= Math.max(pace.rate, pace.clean ?? 0)) return pace;
  return { ...pace, refused: Math.min(pace.refused ?? rate, rate) };
}

function slowedDown(pace: HostPace, seen: PaceEvidence, cap: number, now: number): HostPace {
  const rate = finite(pace.rate, seen);
  const halved = Math.min(rate, Math.max(floorOf(cap), rate / 2));
  const answered = (pace.since ?? 0) + seen.answers - seen.refused;
  const { clean } = pace;
  if (answered === 0 && pace.since === 0) return { ...pace, blocked: (pace.blocked ?? 0) + 1 };
  const credit = Math.min(answered, ANSWERS_TO_UNAVAILABLE * UNAVAILABLE_MAX);
  const since = credit - ANSWERS_TO_UNAVAILABLE * seen.refused;
  if (seen.unavailable === seen.refused && since >= 0) {
    // What held for a whole permit still does; what was tried is not known yet, and tried again later.
    return { ...pace, rate: Number.isFinite(pace.rate) ? halved : pace.rate, since };
  }
  if (!Number.isFinite(pace.rate) && (seen.sentRate ?? 0) < LONE_RATE)
    return { ...pace, rate: LONE_RATE, since: 0 };
  const wasBelieved = clean !== null && rate <= clean * (1 + SAME);
  const proofMs = wasBelieved
    ? Math.min(PROOF_MS_MAX, Math.max(PROOF_MS_MIN, (pace.proofMs ?? 0) * 2))
    : (pace.proofMs ?? 0);
  const isSlip = isSettled(pace) && rate < clean! * (1 - SAME) && answered >= ANSWERS_BETWEEN_SLIPS;
  const next = {
    ...pace,
    rate: halved,
    clean: isSlip ? clean! * SLIPPED : clean !== null && clean < rate ? clean : null,
    refused: isSlip ? pace.refused! * SLIPPED : rate,
    refusals: isSettled(pace) ? pace.refusals + 1 : 0,
    since: 0,
    proofMs,
    provenAt: now + proofMs,
  };
  return { ...next, tryAt: now + pauseMs(next) };
}

function risen(pace: HostPace, cap: number, now: number): HostPace {
  const { clean, refused } = pace;
  if (refused === null) {
    // Back to what held before; where nothing did, higher.
    const rate = clean !== null && pace.rate < clean * (1 - SAME) ? clean : pace.rate * RISE;
    return { ...pace, rate: Math.min(cap, rate), clean: Math.max(clean ?? 0, pace.rate) };
  }
  if (clean !== null && pace.rate <= clean) {
    const target = Math.min(cap, isSettled(pace) ? clean * KEPT : clean);
    // After a refusal, back to what held before.
    if (pace.rate < target * (1 - SAME)) return { ...pace, rate: target };
    if (now >= pace.tryAt) return tried(pace, clean, refused, cap, now);
    return { ...pace, rate: target };
  }
  if (now < (pace.provenAt ?? 0)) return pace;
  // A try that held.
  const held = {
    ...pace,
    clean: pace.rate,
    refused: Math.max(refused, pace.rate * NUDGE),
    refusals: 0,
  };
  const rate = isSettled(held) ? pace.rate * KEPT : pace.rate;
  return { ...held, rate, tryAt: now + pauseMs(held) };
}

function tried(pace: HostPace, clean: number, refused: number, cap: number, now: number): HostPace {
  const rate = Math.min(cap, isSettled(pace) ? clean * NUDGE : Math.sqrt(clean * refused));
  const next = { ...pace, rate, tryAt: now + pauseMs(pace), provenAt: now + (pace.proofMs ?? 0) };
  return rate >= cap ? { ...next, refused: null } : next;
}

function isSettled({ clean, refused }: HostPace): boolean {
  return clean !== null && refused !== null && refused / clean < CLOSE;
}

function pauseMs(pace: HostPace): number {
  const { clean, refused, refusals, tryRequests = REQUESTS_BETWEEN_TRIES } = pace;
  if (clean === null || !isSettled(pace))
    return Math.min(SEARCH_MS_MAX, (REQUESTS_IN_SEARCH / (clean ?? refused ?? 1)) * 1_000);
  const pause = Math.max(TRY_MS_MIN, (tryRequests / clean) * 1_000);
  return pause * 2 ** Math.min(refusals, TRY_DOUBLINGS_MAX);
}

/** Whether clean permits are followed by faster ones: the sooner they end, the better. */
export function isRising(pace: HostPace, cap: number): boolean {
  const { rate, clean, refused } = pace;
  if (refused === null) return rate < cap;
  return clean === null || !isSettled(pace) || rate < clean * KEPT * (1 - SAME);
}

/** Whether the pace is above what held: no second permit should go out before the first is answered for. */
export function isTrying({ rate, clean, refused }: HostPace): boolean {
  return refused !== null && clean !== null && rate > clean * (1 + SAME);
}

function floorOf(cap: number): number {
  return Math.max(RATE_FLOOR, Math.min(FLOOR_MAX, cap * FLOOR_SHARE));
}

/** Without a limit of ours, what was sent is what was refused. */
function finite(rate: number, seen: PaceEvidence): number {
  return Number.isFinite(rate) ? rate : Math.max(RATE_FLOOR, seen.sentRate ?? LONE_RATE);
}

function usual(before: number | null, latest: number | null): number | null {
  if (latest === null) return before;
  return before === null ? latest : before + (latest - before) * LATENCY_WEIGHT;
}

/** What a host answered since it last refused. */
interface Stretch {
  from: number;
  answers: number;
  /** The first refusal after them, and the last so far; epoch milliseconds. */
  refusedAt?: number;
  closedAt?: number;
}

/** A limit that counts over a longer time: it lies between these rates. */
interface LongLimit {
  least: number;
  most: number;
  windowMs: number;
}

/** Who takes fewer before it refuses, or refuses for a shorter time, does not count over much more than a second. */
const ANSWERS_MIN = 50;
const CLOSED_MS_MIN = 4_000;
/** No host is known to count over more than a minute; what is refused later than this has other reasons. */
const WINDOW_MS_MAX = 90_000;
/** Who was not asked for longer than any pause says nothing by answering again. */
const SILENCE_MS_MAX = 90_000;

/** Notes what a permit brought; when it is the first to be answered after refusals, they may tell a limit. */
function continueStretch(
  before: Stretch | undefined,
  seen: PaceEvidence,
  now: number,
): { stretch: Stretch; limit: LongLimit | null } {
  const startedAt = Number.isFinite(seen.rate) ? now - (seen.answers / seen.rate) * 1_000 : now;
  const answers = seen.answers - seen.refused;
  // Times of a clock that was set back since cannot be compared.
  if (before && Math.max(before.from, before.closedAt ?? 0) > now)
    return continueStretch(undefined, seen, now);
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
