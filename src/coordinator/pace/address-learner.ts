import {
  grantedGapMs,
  paceOfAddress,
  startOfAddress,
  withAddress,
  withAllAddresses,
} from '../../core/pace/address-pace.ts';
import { type HostPace, paceUnder, slowedByBan } from '../../core/pace/pace.ts';
import { unguardedGapMs } from '../../core/politeness/permits.ts';
import { PaceLearner } from './pace-learner.ts';

type LearnedReport = Parameters<PaceLearner['learn']>[0];

/** Rates this close are one. */
const SAME = 0.02;

/** Learns the pace of a host for each address that reports come from; what that means is decided in `core/pace/`. */
export class AddressLearner {
  #pace: HostPace | null;
  readonly #learners = new Map<string, PaceLearner>();
  #last: { learner: PaceLearner; blocked: number } | null = null;

  constructor(pace: HostPace | null) {
    this.#pace = pace;
  }

  /** `permit`: as the worker of that address kept it. The new pace of the host, or null when nothing was learned yet. */
  learn(report: LearnedReport, address: string, cap: number, now: number): HostPace | null {
    const known = paceOfAddress(this.#pace, address);
    const learner =
      this.#learners.get(address) ?? new PaceLearner(known ?? startOfAddress(this.#pace, cap, now));
    this.#learners.set(address, learner);
    const learned = learner.learn(report, cap, now, keptRateOf(report.permit, address, known));
    if (!learned) return null;
    this.#last = { learner, blocked: learned.blocked ?? 0 };
    this.#pace = withAddress(this.#pace, address, learned, now);
    return this.#pace;
  }

  /** The host bans one of the addresses: all of them get less. */
  slowDown(cap: number, now: number): HostPace | null {
    this.#learners.clear();
    const slowed = (own: HostPace) => slowedByBan(paceUnder(own, cap), cap, now);
    this.#pace = withAllAddresses(paceUnder(this.#pace, cap), slowed, now);
    return this.#pace;
  }

  /** Of the address that something was learned of last. */
  get blocked(): number {
    return this.#last?.blocked ?? 0;
  }

  get wasUnavailable(): boolean {
    return this.#last?.learner.wasUnavailable ?? false;
  }
}

/**
 * An address that is new was asked to keep a rate that others had learned. One that shares the cap of the host with others
 * may have been slower than it could be: what came of that is about the rate that it kept. Null when the rate was its own.
 */
function keptRateOf(permit: LearnedReport['permit'], address: string, known: HostPace | null): number | null {
  const keptRate = 1_000 / unguardedGapMs(permit.gapMs);
  if (known === null) return keptRate;
  const grantedMs = grantedGapMs(permit, address);
  if (grantedMs === null || grantedMs >= permit.gapMs) return null;
  const granted = 1_000 / unguardedGapMs(grantedMs);
  return Math.abs(granted - known.rate) <= known.rate * SAME ? keptRate : null;
}
