import { factsOf } from '../../core/explain/explain.ts';
import type { JobSpec } from '../../core/job-schema/job.ts';
import type { Counters } from '../../core/model.ts';
import { nextScaling, type ScalingState, wantedWorkers } from '../../core/scaling/scaling.ts';
import type { Logger } from '../../ports/ambient.ts';
import type { SlotAccountant } from '../explain/slot-accountant.ts';

/** Before anything is measured; enough to measure something. */
const SLOTS_AT_FIRST = 8;
const LOOK_MS = 5_000;

/**
 * How many batches of a job may be under way at once: for jobs with `scaling.adaptive`. Each is a slot of a thread, a job at
 * a queue, or a call of a Lambda function, so all of those follow the same formula; see core/scaling.
 */
export class ScalingWatch {
  readonly #finishSeconds: number | null;
  readonly #logger: Pick<Logger, 'info'>;
  #state: ScalingState = { slots: SLOTS_AT_FIRST, lower: null };
  #lookedAt = Number.NEGATIVE_INFINITY;

  constructor({ job, logger }: { job: { spec: Pick<JobSpec, 'scaling'> }; logger: Pick<Logger, 'info'> }) {
    this.#finishSeconds = job.spec.scaling.finishSeconds;
    this.#logger = logger;
  }

  get slotsMax(): number {
    return this.#state.slots;
  }

  look(about: {
    accountant: Pick<SlotAccountant, 'account'>;
    counters: Pick<Counters, 'pending' | 'leased'>;
    /** What the workers take. */
    slotsMax: number;
    workedMs: number;
    now: number;
  }): void {
    const { accountant, counters, slotsMax, workedMs, now } = about;
    if (now - this.#lookedAt < LOOK_MS) return;
    this.#lookedAt = now;
    const account = accountant.account(now);
    const wanted =
      account &&
      wantedWorkers({
        ...factsOf([account], true),
        remaining: counters.pending + counters.leased,
        finishSeconds:
          this.#finishSeconds === null ? null : Math.max(1, this.#finishSeconds - workedMs / 1_000),
      });
    if (!wanted) return;
    const before = this.#state.slots;
    this.#state = nextScaling(this.#state, wanted.slots, { slotsMax, now });
    const { slots } = this.#state;
    if (slots === before) return;
    this.#logger.info(`${slots} batches at once instead of ${before}: ${wanted.reason}`, {
      ...{ slots, before, wanted: wanted.slots },
    });
  }
}
