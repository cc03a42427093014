import type { RobotsOutcome } from '../batch/outcome.ts';
import { hasFailedProbes } from '../circuit-breaker/circuit-breaker.ts';
import { type FailureCode, failureKind, isHostThrottling } from '../failures.ts';
import type { JobSpec } from '../job-schema/job.ts';

/**
 * Giving up: when a failure is the last word on a task, on a host, or on an origin.
 *
 * Dead letter   a task that is given up (state `dead`). It keeps its failure code; `seine dead --retry` makes it
 *               pending again.
 * Failed host   a host, or a group of hosts that are counted together, that is given up with all its tasks.
 * Place         what is given up within a group: one host, or one origin whose robots.txt cannot be fetched.
 *
 *   what     | event                                                    | becomes
 *   ---------|----------------------------------------------------------|-----------------------------------------------
 *   task     | a failure that a retry would only repeat                 | dead, unless it escalates (`core/escalation/`)
 *   task     | its host asked for fewer requests, up to 20 times        | pending: that is no attempt
 *   task     | a failure at its last attempt (`retry.attempts`)         | dead, unless it escalates
 *   host     | `breaker.hostProbes` failed probes in a row               | failed: its tasks are dead, `host-down`
 *   host     | robots.txt failed for good, or `retry.attempts` times    | failed: its tasks are dead, `robots-unreachable`
 *            |                                                          | or the failure itself
 *   place    | as a host, but in a group                                | its tasks are dead as soon as they are leased
 *
 * A new run tries failed hosts and places again. The coordinator's half is `coordinator/giving-up/`.
 */
export interface FailedHost {
  host: string;
  code: FailureCode;
  detail: string;
}

export interface FailedPlace {
  /** A host, or an origin whose robots.txt cannot be fetched. */
  place: string;
  code: FailureCode;
  detail: string;
}

/** Whether another attempt would only repeat the failure. */
export function isPermanent(code: FailureCode): boolean {
  return failureKind(code).retry === 'permanent';
}

export function isOutOfAttempts(
  code: FailureCode,
  attempt: number,
  { attempts }: Pick<JobSpec['retry'], 'attempts'>,
): boolean {
  return isPermanent(code) || attempt >= attempts;
}

/** A host that asks for fewer requests says nothing of the page, unless it does so whenever that page is requested. */
const THROTTLES_MAX = 20;

/** Whether a request that its host refused to take now counts as no attempt. */
export function isThrottledOnly(
  failure: { code: FailureCode; httpStatus: number | null; retryAfterMs: number | null },
  throttles: number,
): boolean {
  const { code, httpStatus, retryAfterMs } = failure;
  if (failureKind(code).retry !== 'throttled' || throttles >= THROTTLES_MAX) return false;
  return isHostThrottling(code, httpStatus, retryAfterMs);
}

interface RobotsState {
  origin: string;
  host: string;
  failures: number;
  text: string | null;
  redirectTo: string | null;
}

/** Hosts that failed every probe, and those whose robots.txt cannot be fetched. */
export function failedHostsOf(
  hosts: readonly { host: string; rests: number }[],
  answers: readonly RobotsOutcome[],
  robots: readonly RobotsState[],
  spec: Pick<JobSpec, 'breaker' | 'retry'>,
): FailedHost[] {
  const { hostProbes } = spec.breaker;
  const failed: FailedHost[] = hosts
    .filter(({ rests }) => hasFailedProbes(rests, hostProbes))
    .map(({ host }) => ({ host, code: 'host-down', detail: `${hostProbes} probes failed` }));
  for (const answer of answers) {
    const entry = robots.find(({ origin }) => origin === answer.origin);
    if (answer.kind !== 'failed' || !entry) continue;
    const throttles = answer.code === 'throttled' ? THROTTLES_MAX : 0;
    if (!isOutOfAttempts(answer.code, entry.failures - throttles, spec.retry)) continue;
    failed.push({
      host: entry.host,
      code: codeOfRobotsFailure(answer.code),
      detail: `robots.txt: ${answer.detail}`,
    });
  }
  return failed;
}

/**
 * Where hosts are counted together, the others must not go down with one of them: only the host that failed the last
 * probe is given up, or the origin without a robots.txt. `faults`: where in which group the host was at fault.
 */
export function failedPlacesOf(
  failed: readonly FailedHost[],
  faults: readonly { group: string; url: string }[],
  robots: readonly RobotsState[],
): FailedPlace[] {
  return failed.flatMap(({ host: group, code, detail }): FailedPlace[] => {
    if (code === 'host-down')
      return faults
        .filter((fault) => fault.group === group)
        .map(({ url }) => ({ place: new URL(url).host, code, detail }));
    return robots
      .filter(({ host, text, redirectTo }) => host === group && text === null && redirectTo === null)
      .map(({ origin }) => ({ place: origin, code: 'robots-unreachable', detail }));
  });
}

/** The code for tasks of a host whose robots.txt cannot be fetched. */
export function codeOfRobotsFailure(code: FailureCode): FailureCode {
  return code === 'server-error' || code === 'unavailable' || code === 'throttled'
    ? 'robots-unreachable'
    : code;
}
