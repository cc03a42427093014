import {
  Calibration,
  type CalibrationAnswer,
  type CalibrationLimits,
  type CalibrationResult,
} from '../../../src/core/calibration/calibration.ts';
import type { HostAnswer } from './hosts.ts';
import type { Network } from './network.ts';

const CAP = 1_000;

/** Calibrates a simulated host on virtual time. */
export function calibrateHost(network: Network, limits: Partial<CalibrationLimits> = {}): CalibrationResult {
  const calibration = new Calibration(
    { cap: CAP, startRate: 1, parallelMax: 1_000, requestsMax: null, refusalsMax: 20, ...limits },
    network.now,
  );
  let due = Number.NaN;
  let firesAt = 0;
  const timer = (at: number) => {
    // The same timer, when an answer came first.
    if (at !== due) firesAt = at + network.lateMs();
    due = at;
    return firesAt;
  };
  while (true) {
    const step = calibration.next(network.now);
    if (step.kind === 'done') return calibration.result();
    if (step.kind === 'wait') network.runUntil(Number.POSITIVE_INFINITY, true);
    else if (step.at > network.now) network.runUntil(Math.max(step.at, timer(step.at)), true);
    else {
      calibration.sent(network.now);
      network.send((answer, sentAt) => calibration.answered(network.now, sentAt, read(answer)));
    }
  }
}

function read({ kind, retryAfterMs }: HostAnswer): CalibrationAnswer {
  return kind === 'refused' ? { kind, retryAfterMs } : { kind };
}
