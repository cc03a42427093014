import type { Outcome, RobotsOutcome } from '../batch/outcome.ts';
import { failureKind, isOwnFailure } from '../failures.ts';
import type { JobSpec } from '../job-schema/job.ts';
import { LIMITS } from '../limits.ts';

/**
 * Circuit breakers: a host that only fails is left alone, and a job that only fails ends.
 *
 * Fault     a failure that is the host's: it is down, slow, broken, or blocks. See `hostFault` in `failures.ts`.
 * Rest      the time in which an open host breaker lets nothing through. It doubles with each rest in a row.
 * Known page  a page of the host that answered before (`core/bans/`).
 * Probe     what is sent after a rest: the known page and, if it answers, one task; every other time, or where no page is
 *           known, one task alone. Pages that always fail may be all that is left of a host: they say nothing of it.
 * Lost      a batch whose worker died or did not answer. Blameless when what carried the batch broke.
 *
 * The breaker of a host, or of hosts that are counted together (`politeness.groupBy`):
 *
 *   from       | event                                       | to
 *   -----------|---------------------------------------------|-------------------------------------------
 *   closed     | fault, fewer than `hostFailures` in a row   | closed, one failure more
 *   closed     | fault, the `hostFailures`th in a row        | open: the first rest
 *   open       | faults of batches that were out before      | open, the rest gets no longer
 *   open       | the rest is over                            | half-open: one permit at a time, for one task
 *   half-open  | the known page answers                      | closed, whatever becomes of the task
 *   half-open  | the probe fails                             | open: the next rest, twice as long
 *   half-open  | the `hostProbes`th probe in a row fails     | given up (`core/giving-up/`)
 *   any        | a fault of a request that began before one  | as it was: it is the page that does not answer
 *              | that has been answered                      |
 *   any        | a fault of a page that failed before, where | as it was: these pages are sick
 *              | the same report has an answer               |
 *   any        | any other response                          | closed, no failures
 *
 * In a group only the host that failed the last probe is given up. The others are probed after a first, short rest.
 *
 * The breaker of a job:
 *
 *   from       | event                                       | to
 *   -----------|---------------------------------------------|-------------------------------------------
 *   closed     | a batch in which something succeeded        | closed, no failed batches
 *   closed     | a batch without a success, or a lost one    | closed, one failed batch more
 *   closed     | the same, of nothing but pages that failed  | as it was: these pages are sick, unless no page of
 *              | before                                      | the job has ever answered
 *   closed     | a blameless loss, or nothing was tried      | as it was
 *   closed     | the `jobBatches`th failed batch in a row    | open: the job ends as `tripped`
 *   closed     | the code of a route throws 20 times in a row | open: the job ends as `tripped`
 *
 * The coordinator keeps the state: of hosts with their permits (`coordinator/hosts/open-permits.ts`) and in the store,
 * of the job in `coordinator/circuit-breaker/job-breaker.ts`.
 */
export interface HostBreaker {
  failuresInRow: number;
  /** Rests since the last success. */
  rests: number;
  /** Epoch milliseconds; 0 when the host never rested. */
  restUntil: number;
  /** When the latest request began that was answered, in epoch milliseconds; 0 where none is known. */
  answeredAt: number;
}

export const CLOSED: Readonly<HostBreaker> = { failuresInRow: 0, rests: 0, restUntil: 0, answeredAt: 0 };

export interface HostBreakerPolicy
  extends Pick<JobSpec['breaker'], 'hostFailures' | 'hostProbes' | 'hostRestMs'> {
  /** Whether several hosts share the breaker. */
  isGroup: boolean;
}

type Result = Outcome | RobotsOutcome;

/** The breaker after the results of a report, in their order. `isAgain`: of a page that failed before. */
export function nextHostBreaker(
  before: HostBreaker,
  results: readonly Result[],
  policy: HostBreakerPolicy,
  now: number,
  isAgain: (result: Result) => boolean = () => false,
): HostBreaker {
  let { failuresInRow, rests } = before;
  const { restUntil } = before;
  // A clock may have been ahead: what it said would hide all faults until then.
  let answeredAt = before.answeredAt > now ? 0 : before.answeredAt;
  const answers = results.filter(isAnswer);
  for (const answer of answers) answeredAt = Math.max(answeredAt, Math.min(beganAt(answer), now));
  const isOfPage = (fault: Result) => beganAt(fault) < answeredAt || (answers.length > 0 && isAgain(fault));
  let hasFailed = false;
  for (const result of results) {
    if (!isFromHost(result) || (isFault(result) && isOfPage(result))) continue;
    hasFailed = isFault(result);
    if (hasFailed) failuresInRow++;
    else failuresInRow = rests = 0;
  }
  // Batches that were out when the rest began must not lengthen it, and a probe that was put off has not failed.
  if (!hasFailed || !isProbing(failuresInRow, policy.hostFailures) || now < restUntil)
    return { failuresInRow, rests, restUntil, answeredAt };
  if (policy.isGroup && rests >= policy.hostProbes)
    return {
      ...{ failuresInRow, answeredAt },
      ...{ rests: policy.hostProbes + 1, restUntil: now + restMs(1, policy.hostRestMs) },
    };
  return {
    ...{ failuresInRow, answeredAt },
    ...{ rests: rests + 1, restUntil: now + restMs(rests + 1, policy.hostRestMs) },
  };
}

/** The breaker after a response that came before the results of a report. */
export function closedByAnswer({ restUntil, answeredAt }: HostBreaker): HostBreaker {
  return { ...CLOSED, restUntil, answeredAt };
}

function isAnswer(result: Result): boolean {
  return isFromHost(result) && !isFault(result);
}

/** Where it is not known, it says nothing of what was answered, and as a fault it counts. */
function beganAt(result: Result): number {
  const trace = result.kind === 'deferred' ? null : result.trace;
  return trace?.startedAt ?? (isFault(result) ? Number.POSITIVE_INFINITY : 0);
}

/** Whether a result tells how the host is: something was sent, and what failed was not of ours. */
export function isFromHost(result: Result): boolean {
  if (result.kind === 'deferred' || result.kind === 'skipped') return false;
  if (result.kind !== 'failed') return true;
  const isGivenUp = result.code === 'host-down' || result.code === 'robots-unreachable';
  return !isGivenUp && !isOwnFailure(result.code);
}

export function isFault(result: Result): boolean {
  return result.kind === 'failed' && failureKind(result.code).hostFault;
}

/** Open or half-open: once the rest is over, the host gets one task at a time. */
export function isProbing(failuresInRow: number, hostFailures: number): boolean {
  return failuresInRow >= hostFailures;
}

/** The page that a probe of the host requests first; null when it is a task that waits. */
export function knownPageFor({ rests }: Pick<HostBreaker, 'rests'>, known: string | null): string | null {
  return rests % 2 === 1 ? known : null;
}

/** Whether the host has had all its probes, and failed them. */
export function hasFailedProbes(rests: number, hostProbes: number): boolean {
  return rests > hostProbes;
}

/** Rest of a host that fails: doubled each time. */
export function restMs(rests: number, firstMs: number): number {
  return Math.min(firstMs * 2 ** Math.min(rests - 1, 20), LIMITS.hostRestMsMax);
}

export type BatchEnd =
  /** `relapsed`: of those that failed, tasks that had failed before. */
  | { kind: 'reported'; succeeded: number; failed: number; relapsed: number }
  | { kind: 'lost'; blameless: boolean };

/** Failed batches in a row, after one more batch has ended. `hasAnswers`: some task of the job has succeeded before. */
export function nextFailedBatches(before: number, batch: BatchEnd, hasAnswers: boolean): number {
  if (batch.kind === 'lost') return batch.blameless ? before : before + 1;
  if (batch.succeeded > 0) return 0;
  return batch.failed > (hasAnswers ? batch.relapsed : 0) ? before + 1 : before;
}

export function isJobTripped(failedBatchesInRow: number, jobBatches: number): boolean {
  return failedBatchesInRow >= jobBatches;
}

/** Code that throws for so many pages in a row is broken: more requests would only make more dead letters. */
const THROWS_MAX = 20;

/** How the code of one route fares: the pages in a row for which it threw, and what it said first. */
export interface CodeFailures {
  inRow: number;
  first: string | null;
}

const NO_FAILURES: CodeFailures = { inRow: 0, first: null };

/** By route, after the outcomes of a report in their order. */
export function nextCodeFailures(
  before: ReadonlyMap<string, CodeFailures>,
  outcomes: readonly Outcome[],
): ReadonlyMap<string, CodeFailures> {
  // Nearly always: this is asked for every page.
  if (before.size === 0 && outcomes.every(({ kind }) => kind !== 'failed')) return before;
  const after = new Map(before);
  for (const outcome of outcomes) {
    if (outcome.kind !== 'failed' && outcome.kind !== 'fetched') continue;
    const route = outcome.page?.route ?? null;
    if (route === null) continue;
    if (outcome.kind === 'fetched') {
      after.delete(route);
    } else if (outcome.code === 'parse-error') {
      const { inRow, first } = after.get(route) ?? NO_FAILURES;
      after.set(route, { inRow: inRow + 1, first: first ?? outcome.detail });
    }
  }
  return after;
}

/** Why a job whose code throws is over; null when it is not. */
export function brokenCode(failures: ReadonlyMap<string, CodeFailures>): string | null {
  for (const [route, { inRow, first }] of failures)
    if (inRow >= THROWS_MAX)
      return `the code of route '${route}' failed ${inRow} times in a row, first with: ${first}`;
  return null;
}
