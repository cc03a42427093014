import type { Outcome } from '../../core/batch/outcome.ts';
import type { HostProfile } from '../../core/calibration/host-profile.ts';
import { isOwnFailure, isRefusal, isThrottling } from '../../core/failures.ts';
import type { JobSpec } from '../../core/job-schema/job.ts';
import { LruMap } from '../../core/lru.ts';
import { isTimeout, type Runtime, timeoutFor } from '../../core/timeouts/task-timeout.ts';
import type { Logger } from '../../ports/ambient.ts';

/** Enough for a bound of the 99th percentile, and few enough that a host which has changed is soon known again. */
const RUNTIMES_KEPT = 600;
/** The estimate is made anew after so many: it sorts all that are kept. */
const ESTIMATE_EVERY = 50;
/** Of other hosts what is learned is forgotten: 600 runtimes take some 20 KB. */
const HOSTS_MAX = 1_000;
/** Smaller changes are not worth a line in the log. */
const TOLD_RATIO = 1.25;

interface LearnedHost {
  /** The last ones, written over in turn. */
  runtimes: Runtime[];
  next: number;
  timeoutMs: number | null;
  /** As it was last told. */
  told: number | null;
}

/**
 * How long a request to each host may take, from how long its requests took: `timeouts.adaptive`. What calibration found is
 * where it begins; while the job runs it is estimated again and again. Memory only: after a restart it is learned again.
 */
export class TimeoutLearner {
  readonly #taskMs: number;
  readonly #logger: Pick<Logger, 'info'>;
  readonly #hosts = new LruMap<LearnedHost>(HOSTS_MAX);

  constructor({ job, logger }: { job: { spec: Pick<JobSpec, 'timeouts'> }; logger: Pick<Logger, 'info'> }) {
    this.#taskMs = job.spec.timeouts.taskMs;
    this.#logger = logger;
  }

  /** What calibration proposes, as far as it has not expired. */
  begin(profiles: readonly HostProfile[], now: number): void {
    for (const { host, timeoutMs, expiresAt } of profiles)
      if (timeoutMs !== null && expiresAt > now)
        this.#hosts.set(host, { ...fresh(), timeoutMs: Math.min(timeoutMs, this.#taskMs) });
  }

  /** Null while too little is known of the host, or its pages take all the time that the job gives them. */
  timeoutMsOf(host: string): number | null {
    const timeoutMs = this.#hosts.get(host)?.timeoutMs ?? null;
    return timeoutMs !== null && timeoutMs < this.#taskMs ? timeoutMs : null;
  }

  learn(host: string, outcomes: readonly Outcome[]): void {
    const found = outcomes.flatMap(runtimeOf);
    if (found.length === 0) return;
    const learned = this.#hosts.getOr(host, fresh);
    const before = Math.floor(learned.next / ESTIMATE_EVERY);
    for (const runtime of found) learned.runtimes[learned.next++ % RUNTIMES_KEPT] = runtime;
    if (Math.floor(learned.next / ESTIMATE_EVERY) === before) return;
    learned.timeoutMs = timeoutFor(learned.runtimes, this.#taskMs) ?? learned.timeoutMs;
    this.#tell(host, learned);
  }

  #tell(host: string, learned: LearnedHost): void {
    const { timeoutMs, told } = learned;
    if (timeoutMs === null) return;
    const ratio = timeoutMs / (told ?? this.#taskMs);
    if (ratio < TOLD_RATIO && ratio > 1 / TOLD_RATIO) return;
    learned.told = timeoutMs;
    this.#logger.info(`requests to ${host} may take ${timeoutMs} ms`, { host, timeoutMs });
  }
}

function fresh(): LearnedHost {
  return { runtimes: [], next: 0, timeoutMs: null, told: null };
}

/** A refusal is quick, and our own failures say nothing about the host. */
function runtimeOf(outcome: Outcome): Runtime[] {
  if (outcome.kind === 'deferred' || outcome.trace === null) return [];
  const { durationMs: ms, httpStatus } = outcome.trace;
  if (outcome.kind !== 'failed') return [{ ms, isCut: false }];
  const { code } = outcome;
  if (isOwnFailure(code) || isThrottling(code, httpStatus) || isRefusal(code, httpStatus)) return [];
  return isTimeout(code) || httpStatus !== null ? [{ ms, isCut: isTimeout(code) }] : [];
}
