import { factsOf } from '../../core/explain/explain.ts';
import { newestDecisions, type ScalingDecision } from '../../core/explain/scaling-decision.ts';
import type { JobSpec } from '../../core/job-schema/job.ts';
import type { Counters } from '../../core/model.ts';
import { nextScaling, type ScalingState, wantedWorkers } from '../../core/scaling/scaling.ts';
import type { Logger } from '../../ports/ambient.ts';
import type { Dispatcher } from '../../ports/dispatcher.ts';
import type { SlotAccountant } from '../explain/slot-accountant.ts';

/** Before anything is measured; enough to measure something. */
const SLOTS_AT_FIRST = 8;
const LOOK_MS = 5_000;

/**
 * How many batches of a job may be under way at once. Workers that come and go are told how many the job can use. Jobs with
 * `scaling.adaptive` send no more than those: each is a slot of a thread, a job at a queue, or a call of a Lambda function,
 * so all of those follow the same formula; see core/scaling.
 */
export class ScalingWatch {
  readonly #finishSeconds: number | null;
  readonly #isAdaptive: boolean;
  readonly #logger: Pick<Logger, 'info'>;
  #state: ScalingState = { slots: SLOTS_AT_FIRST, lower: null };
  #lookedAt = Number.NEGATIVE_INFINITY;
  decisions: readonly ScalingDecision[] = [];

  constructor({ job, logger }: { job: { spec: Pick<JobSpec, 'scaling'> }; logger: Pick<Logger, 'info'> }) {
    // Jobs of an earlier version have no such field.
    this.#finishSeconds = job.spec.scaling?.finishSeconds ?? null;
    this.#isAdaptive = job.spec.scaling?.adaptive ?? false;
    this.#logger = logger;
  }

  get slotsMax(): number {
    return this.#isAdaptive ? this.#state.slots : Number.POSITIVE_INFINITY;
  }

  look(about: {
    accountant: Pick<SlotAccountant, 'account'>;
    counters: Pick<Counters, 'pending' | 'leased'>;
    dispatcher: Pick<Dispatcher, 'slots' | 'want'>;
    workedMs: number;
    now: number;
  }): void {
    const { accountant, counters, dispatcher, workedMs, now } = about;
    if (now - this.#lookedAt < LOOK_MS || (!this.#isAdaptive && !dispatcher.want)) return;
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
    dispatcher.want?.(wanted);
    if (!wanted || !this.#isAdaptive) return;
    const before = this.#state.slots;
    this.#state = nextScaling(this.#state, wanted.slots, { slotsMax: dispatcher.slots, now });
    const { slots } = this.#state;
    if (slots === before) return;
    const text = `${slots} batches at once instead of ${before}: ${wanted.reason}`;
    this.#logger.info(text, { slots, before, wanted: wanted.slots });
    this.decisions = newestDecisions([...this.decisions, { at: now, text }]);
  }
}
