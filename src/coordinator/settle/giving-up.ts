import type { Report } from '../../core/batch/batch.ts';
import type { Outcome } from '../../core/batch/outcome.ts';
import { type FailureCode, failureKind } from '../../core/failures.ts';
import type { JobSpec } from '../../core/job-schema/job.ts';
import { LruMap } from '../../core/lru.ts';
import type { HostChange, RobotsEntry } from '../../ports/store.ts';
import type { OpenBatch } from '../plan/open-batch.ts';
import { codeOfRobotsFailure } from '../robots/robots-cache.ts';

/** A host, or a group of hosts, whose tasks are all given up. */
export interface FailedHost {
  host: string;
  code: FailureCode;
  detail: string;
}

/** Of a report: hosts whose every probe failed, and those whose robots.txt is not to be had. */
export function failedHosts(
  report: Report,
  hosts: readonly HostChange[],
  robots: readonly RobotsEntry[],
  spec: JobSpec,
): FailedHost[] {
  const condemned: FailedHost[] = [];
  for (const { host, rests } of hosts) {
    if (rests > spec.breaker.hostProbes) {
      condemned.push({ host, code: 'host-down', detail: `${spec.breaker.hostProbes} probes failed` });
    }
  }
  for (const outcome of report.robots) {
    const entry = robots.find((candidate) => candidate.origin === outcome.origin);
    if (outcome.kind !== 'failed' || !entry) continue;
    const hopeless = failureKind(outcome.code).retry === 'permanent';
    if (!hopeless && entry.failures < spec.retry.attempts) continue;
    condemned.push({
      host: entry.host,
      code: codeOfRobotsFailure(outcome.code),
      detail: `robots.txt: ${outcome.detail}`,
    });
  }
  return condemned;
}

/**
 * Where hosts are counted together, the others must not go down with one of them: only the host that failed the last
 * probe is given up, or the origin without a robots.txt.
 */
export function giveUpMember(
  condemned: readonly FailedHost[],
  about: { open: OpenBatch; outcomes: readonly Outcome[]; robots: readonly RobotsEntry[] },
  givenUp: GivenUp,
): void {
  const { open, outcomes, robots } = about;
  for (const { host, code, detail } of condemned) {
    if (code !== 'host-down') {
      for (const entry of robots)
        if (entry.host === host && entry.text === null && entry.redirectTo === null)
          givenUp.add(entry.origin, { code: 'robots-unreachable', detail });
      continue;
    }
    for (const outcome of outcomes) {
      const task = open.tasks.get(outcome.taskId);
      const isFault = outcome.kind === 'failed' && failureKind(outcome.code).hostFault;
      if (isFault && task && open.batch.permits[task.permit]?.host === host)
        givenUp.add(new URL(task.url).host, { code, detail });
    }
  }
}

interface Reason {
  code: FailureCode;
  detail: string;
}

const REMEMBERED_MAX = 20_000;

/**
 * Hosts and origins that were given up among others that are counted together with them. Their tasks cannot be told
 * from the others in the store, so they are refused one by one when their turn comes, without a request. A new run
 * tries them again.
 */
export class GivenUp {
  readonly #places = new LruMap<Reason>(REMEMBERED_MAX);
  #count = 0;

  /** `place` is a host, or an origin whose robots.txt is not to be had. */
  add(place: string, reason: Reason): void {
    this.#places.set(place, reason);
    this.#count++;
  }

  reasonFor(url: string): Reason | null {
    if (this.#count === 0) return null;
    const { origin, host } = new URL(url);
    return this.#places.get(host) ?? this.#places.get(origin) ?? null;
  }
}
