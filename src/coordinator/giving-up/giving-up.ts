import type { FailureCode } from '../../core/failures.ts';
import type { FailedHost, FailedPlace } from '../../core/giving-up/giving-up.ts';
import { LruMap } from '../../core/lru.ts';
import { type Clock, type Logger, startTimer } from '../../ports/ambient.ts';
import type { Frontier, Job } from '../../ports/store.ts';

/** What is done about hosts that are given up; when that is so is decided in `core/giving-up/`. */

/** Tasks of a failed host that become dead letters in one transaction. */
export const FAIL_STEP = 2_000;

interface GivingUpParts {
  store: { readonly frontier: Pick<Frontier, 'failTasksOfHost'> };
  job: Pick<Job, 'id'>;
  clock: Clock;
  logger: Pick<Logger, 'warn'>;
}

export async function failTasksOfHost(
  { store, job, clock, logger }: GivingUpParts,
  { host, code, detail }: FailedHost,
): Promise<void> {
  let total = 0;
  for (let count = 1; count > 0; total += count) {
    const now = Math.floor(clock.now());
    count = await store.frontier.failTasksOfHost(job.id, { host, code, detail, now, limit: FAIL_STEP });
    // A store that answers at once would let nothing else of this process go on: 11 seconds for 2.5 million tasks.
    if (count === FAIL_STEP) await new Promise<void>((resolve) => startTimer(clock, 0, resolve));
  }
  if (total > 0) logger.warn(`gave up on ${host}: ${detail}`, { tasks: total, code });
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

  add({ place, code, detail }: FailedPlace): void {
    this.#places.set(place, { code, detail });
    this.#count++;
  }

  reasonFor(url: string): Reason | null {
    if (this.#count === 0) return null;
    const { origin, host } = new URL(url);
    return this.#places.get(host) ?? this.#places.get(origin) ?? null;
  }
}
