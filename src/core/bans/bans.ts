import type { ProbeResult } from '../batch/batch.ts';
import type { Outcome } from '../batch/outcome.ts';
import { FAILURES, type FailureCode } from '../failures.ts';

/**
 * Bans: a host that answered before begins to refuse everything, and is left alone until it answers again.
 *
 * Refusal      status 403, or the page of a bot protection, to a request from our own address. What went through a proxy
 *              or a remote API is not counted: these have a health of their own (`core/proxies/`).
 * Answer       a page, a redirect, or a page that is not there. It says that the host lets us in.
 * Known page   a page of the host that answered before. Whether it still does tells a ban from pages that are forbidden.
 * Probe        the one request that a suspected or banned host gets: to its known page or, every other time from the
 *              second rest on, to a page that waits.
 * Cleared      the known page answered while others were refused: their refusals are their own.
 *
 *   from       | event                                          | to
 *   -----------|------------------------------------------------|------------------------------------------------------
 *   unknown    | refusal                                        | unknown: the page fails as it is (`core/giving-up/`)
 *   unknown    | refusal, while another batch asks the host     | unknown: a forbidden page is tried once more, last
 *   unknown    | a page                                         | open, also for refusals of the same report
 *   unknown    | another answer                                 | unknown: what redirects to https may refuse every page
 *   open       | refusal                                        | open: a forbidden page is tried once more, last
 *   open       | the third refusal in a row, or one that would  | suspected: the page waits
 *              | be the last attempt of its page                |
 *   suspected  | the known page answers                         | cleared
 *   suspected  | the known page is refused, or fails            | banned: the first rest
 *   cleared    | refusal                                        | cleared: the page fails
 *   cleared    | 6 refusals in a row, the next time 12, 24 …    | suspected
 *   banned     | refusals of batches that were out before       | banned, the rest gets no longer
 *   banned     | the rest is over                               | banned: one probe
 *   banned     | the probe is refused, or fails                 | banned: the next rest, twice as long, up to an hour
 *   banned     | the known page answers                         | cleared
 *   any        | another page answers                           | open
 *   any        | refusal under a permit that came back before   | as it was: the page waits
 *   unknown    | a page, under a permit that came back before   | open
 *   banned     | for a day, and nothing else is left to request | the job stops (`coordinator/stop.ts`)
 *
 * By address   where a host counts requests by address (`core/pace/address-pace.ts`), it may ban one of ours and answer the
 *              others. So the worker that is refused requests the known page itself. When it is refused that as well, the host
 *              rests as a whole, and answers to other addresses do not end the rest. Each such ban within an hour of the last
 *              one doubles the rest: the next probe may come from an address that is not banned.
 *
 * Slow start   where nothing but parallelism limits requests, all that are open when a ban begins go into it. So a host
 *              that is unknown, or was banned, gets one request at a time, and one more for every few answers.
 *
 * While a host is suspected or banned, its refused pages wait: that is no attempt. The worker sends no more under a permit
 * once as many pages in a row were refused as are tolerated. The state is kept with the host in the store.
 */
export interface HostBan {
  /** The known page, and when it answered; null while the host is unknown. */
  known: { url: string; at: number } | null;
  /** Since the last answer. */
  refusals: number;
  /** Refusals in a row after which the host is suspected; more than at first where it was cleared. */
  tolerated: number;
  /** When it was first suspected; null while it is open or cleared. Epoch milliseconds. */
  since: number | null;
  /** Since then; 0 while it is only suspected. */
  rests: number;
  restUntil: number;
  /** Since the host was unknown or banned, as far as slow start counts them; absent where that was before they were counted. */
  answers?: number;
  /** The last ban of one of several addresses: when its rest was over, and which of them in a row it was. */
  last?: { at: number; rests: number };
}

/** Refused pages in a row that say nothing yet, with one fewer. */
export const TOLERATED = 3;
const TOLERATED_MAX = 384;
/** A ban of some seconds costs little; each refused probe doubles the rest. */
const FIRST_REST_MS = 20_000;
/** Bans of half an hour are usual; one that lasts longer is noticed within the hour. */
const REST_MS_MAX = 3_600_000;
/** A known page is replaced by a newer one this often: pages go, too. */
const KNOWN_MS = 60_000;
/** After that somebody has to look. */
export const BAN_MS_MAX = 24 * 3_600_000;
/** Requests for a page that is forbidden, while the host answers. */
const FORBIDDEN_ATTEMPTS = 2;
/** A host that has refused so many pages and let in none refuses them all: what another batch hears will be the same. */
const UNKNOWN_REFUSALS_MAX = 100;

export const NO_BAN: Readonly<HostBan> = {
  known: null,
  refusals: 0,
  tolerated: TOLERATED,
  since: null,
  rests: 0,
  restUntil: 0,
  answers: 0,
};

const ANSWERS_PER_REQUEST = 5;
/** A host that has answered so often is likely to go on. */
const ANSWERS_MAX = 75;

/** Answers of a host so far; null where it has had its slow start. */
export function slowStartOf(ban: HostBan | null): number | null {
  const answers = answersOf(ban ?? NO_BAN);
  return answers < ANSWERS_MAX ? answers : null;
}

/** Parallel requests of a host in its slow start. */
export function parallelAfter(answers: number): number {
  return 1 + Math.floor(answers / ANSWERS_PER_REQUEST);
}

function answersOf({ answers, known }: HostBan): number {
  return answers ?? (known === null ? 0 : ANSWERS_MAX);
}

/** What a report says of a host, in the order in which it happened. */
interface BanEvidence {
  outcomes: readonly Outcome[];
  /** How often the page of an outcome was requested, with this time. */
  attemptOf(outcome: Outcome): number;
  urlOf(outcome: Outcome): string;
  /** The permit was for a probe. */
  isProbe: boolean;
  /** Null when the known page was not requested. */
  probe: ProbeResult | null;
  /** What became of the known page when a worker that was refused others requested it; null when it did not. */
  ownProbe?: ProbeResult | null;
  /** Other addresses may be asked at the same time. */
  isByAddress?: boolean;
  /** Another batch asks the host as well, and what it hears is not known yet. */
  areOthersOut?: boolean;
  /** The permit came back before: what the state is now was judged without this. */
  isLate?: boolean;
  /** Whether a request of the permit was answered or failed, and none will follow. */
  isOver: boolean;
}

export interface BanDecision {
  ban: HostBan;
  /** Tasks that wait until the host answers again: that was no attempt. */
  waiting: ReadonlySet<number>;
  /** Tasks with a forbidden page that are tried once more. */
  again: ReadonlySet<number>;
}

/** The state of a host after the results of a report. */
export function nextBan(
  before: HostBan,
  seen: BanEvidence,
  { attempts }: { attempts: number },
  now: number,
): BanDecision {
  const waiting = new Set<number>();
  const again = new Set<number>();
  // A rest that is longer than any was begun under a clock that was ahead: it is over.
  let ban = before.restUntil - now > REST_MS_MAX ? { ...before, restUntil: 0 } : before;
  let askedMs = 0;
  let hasAnswered = false;
  // Of requests at the same time, the page that was let in may be slower than the refusals after it.
  const first = ban.known === null && seen.outcomes.find((outcome) => isAnswer(outcome) && isPage(outcome));
  if (first) ban = opened(ban, first, seen, now);
  if (seen.isLate) {
    for (const outcome of seen.outcomes) if (isBanLike(outcome)) waiting.add(outcome.taskId);
    return { ban, waiting, again };
  }
  if (seen.probe === 'answered') {
    if (isBanned(ban)) ban = cleared(ban);
    hasAnswered = true;
  }
  // What other addresses got, which were asked before, says nothing of the one that is banned.
  const isRest = seen.isByAddress === true && isBanned(ban) && ban.rests > 0 && !seen.isProbe;
  for (const outcome of seen.outcomes) {
    if (isAnswer(outcome)) {
      if (isRest) continue;
      ban = opened(ban, outcome, seen, now);
      hasAnswered = true;
    } else if (isBanLike(outcome) && ban.known !== null) {
      askedMs = Math.max(askedMs, outcome.retryAfterMs ?? 0);
      const attempt = seen.attemptOf(outcome);
      const attemptsMax = outcome.code === 'forbidden' ? Math.min(FORBIDDEN_ATTEMPTS, attempts) : attempts;
      ban = refused(ban, attempt >= attemptsMax, now);
      if (isBanned(ban)) waiting.add(outcome.taskId);
      else if (outcome.code === 'forbidden' && attempt < attemptsMax) again.add(outcome.taskId);
    } else if (isBanLike(outcome)) {
      // The page that was let in may be in the other report: which of the two comes first must not decide what is lost.
      ban = { ...ban, refusals: Math.min(ban.refusals + 1, UNKNOWN_REFUSALS_MAX) };
      const mayAnswer = seen.areOthersOut === true && ban.refusals < UNKNOWN_REFUSALS_MAX;
      const isFirst = seen.attemptOf(outcome) < Math.min(FORBIDDEN_ATTEMPTS, attempts);
      if (mayAnswer && isFirst && outcome.code === 'forbidden') again.add(outcome.taskId);
    }
  }
  if (isBanned(ban) && seen.isProbe && seen.isOver && !hasAnswered && now >= ban.restUntil)
    ban = resting(ban, ban.rests + 1, askedMs, now);
  if (seen.ownProbe === 'answered' && isBanned(ban) && ban.rests === 0) ban = cleared(ban);
  if (seen.ownProbe === 'refused' && !isRest && ban.known !== null) {
    const { last } = ban;
    const inRow = last && now - last.at < REST_MS_MAX ? last.rests + 1 : 1;
    ban = resting(
      { ...ban, since: ban.since ?? Math.floor(now), answers: 0, last: { at: 0, rests: 0 } },
      inRow,
      askedMs,
      now,
    );
    for (const outcome of seen.outcomes) if (isBanLike(outcome)) waiting.add(outcome.taskId);
    again.clear();
  }
  return { ban, waiting, again };
}

function resting(ban: HostBan, rests: number, askedMs: number, now: number): HostBan {
  const restUntil = Math.ceil(now + Math.max(banRestMs(rests), askedMs));
  return { ...ban, rests, restUntil, ...(ban.last ? { last: { at: restUntil, rests } } : {}) };
}

/** Suspected or banned: the host gets one probe at a time. */
export function isBanned(ban: Pick<HostBan, 'since'> | null): boolean {
  return ban !== null && ban.since !== null;
}

/** The page that a probe requests first; null when it is a page that waits. */
export function probeUrlOf({ known, rests }: HostBan): string | null {
  return rests > 1 && rests % 2 === 0 ? null : (known?.url ?? null);
}

/** Refusals in a row after which a worker sends no more under a permit; null when there is no such number. */
export function refusalsLeft({ known, tolerated, refusals }: HostBan): number | null {
  return known === null ? null : Math.max(1, tolerated - refusals);
}

export function banRestMs(rests: number): number {
  return Math.min(FIRST_REST_MS * 2 ** Math.min(rests - 1, 20), REST_MS_MAX);
}

/** Whether the host refused the request as it refuses all during a ban. Throttling (429) has rules of its own. */
export function isBanLike(outcome: Outcome): outcome is Extract<Outcome, { kind: 'failed' }> {
  if (outcome.kind !== 'failed' || !isFromOwnAddress(outcome)) return false;
  const status = outcome.trace?.httpStatus ?? null;
  if (status === 429) return false;
  return isBanCode(outcome.code, status);
}

/** Status 451 is about the page, by law. */
function isBanCode(code: FailureCode, httpStatus: number | null): boolean {
  return FAILURES[code].retry === 'blocked' || (code === 'forbidden' && httpStatus !== 451);
}

/** Whether the host let the request in. */
export function isAnswer(outcome: Outcome): boolean {
  if (outcome.kind === 'deferred' || outcome.kind === 'skipped' || !isFromOwnAddress(outcome)) return false;
  if (outcome.kind !== 'failed') return true;
  const status = outcome.trace?.httpStatus ?? null;
  if (status === null || FAILURES[outcome.code].retry === 'blocked') return false;
  return status < 400 || status === 404 || status === 410;
}

function isFromOwnAddress(outcome: Exclude<Outcome, { kind: 'deferred' }>): boolean {
  const via = outcome.trace?.via;
  return via === undefined || (via.proxy === null && via.fetcher !== 'api');
}

function isPage({ kind }: Outcome): boolean {
  return kind === 'fetched' || kind === 'unchanged';
}

function opened(before: HostBan, outcome: Outcome, { urlOf }: BanEvidence, now: number): HostBan {
  const isKept = before.known !== null && Math.abs(now - before.known.at) < KNOWN_MS;
  const known = isPage(outcome) && !isKept ? { url: urlOf(outcome), at: Math.floor(now) } : before.known;
  return {
    ...{ ...NO_BAN, known, answers: Math.min(answersOf(before) + 1, ANSWERS_MAX) },
    ...(before.last ? { last: before.last } : {}),
  };
}

function cleared(ban: HostBan): HostBan {
  return {
    ...NO_BAN,
    known: ban.known,
    answers: answersOf(ban),
    tolerated: Math.min(ban.tolerated * 2, TOLERATED_MAX),
    ...(ban.last ? { last: ban.last } : {}),
  };
}

function refused(ban: HostBan, isLastAttempt: boolean, now: number): HostBan {
  const refusals = ban.refusals + 1;
  if (isBanned(ban)) return ban;
  const isCleared = ban.tolerated > TOLERATED;
  if (refusals < ban.tolerated && (isCleared || !isLastAttempt)) return { ...ban, refusals };
  return { ...ban, refusals, since: Math.floor(now), rests: 0, restUntil: 0, answers: 0 };
}
