import type { CalibrationResult } from '../../../src/core/calibration/calibration.ts';
import { paceOfProfile, profileOf } from '../../../src/core/calibration/host-profile.ts';
import { calibrateHost } from './calibrate-host.ts';
import { autoThrottle, type Contender, crawleePool, seinePace } from './contenders.ts';
import { HOST_KINDS, openHost, randomOf } from './hosts.ts';
import { Network } from './network.ts';

/** How one way of setting the rate did at one host. */
export interface Score {
  /** Answers, as a share of what the limit allows in the time. */
  throughput: number;
  requests: number;
  /** By the limiter. */
  refused: number;
}

export interface ArenaResult {
  kind: string;
  seed: number;
  limit: number;
  /** The rate that calibration kept, as a share of the limit at that time. */
  kept: number;
  /** Refusals by the limiter while calibrating. */
  refusals: number;
  requests: number;
  calibrationMs: number;
  calibration: CalibrationResult;
  seine: Score | null;
  autoThrottle: Score | null;
  crawlee: Score | null;
}

const REQUESTS_WANTED = 20_000;
const STEADY_MS_MIN = 20 * 60_000;
const STEADY_MS_MAX = 4 * 3_600_000;

/** Calibrates one simulated host; then a run at the pace that was found, and the others beside it, each at a fresh host. */
export function compete(kind: string, seed: number, onlyCalibrates = false): ArenaResult {
  const host = openHost(kind, seed);
  const network = new Network(host, randomOf(seed + 1));
  const calibration = calibrateHost(network);
  const result = {
    ...{ kind, seed, limit: host.limit, calibration },
    kept: (calibration.rate ?? 0) / host.limitAt(network.now),
    refusals: network.refusals,
    requests: network.requests,
    calibrationMs: network.now,
    ...{ seine: null, autoThrottle: null, crawlee: null },
  };
  if (onlyCalibrates) return result;
  const steadyMs = Math.min(STEADY_MS_MAX, Math.max(STEADY_MS_MIN, (REQUESTS_WANTED / host.limit) * 1_000));
  const pace = paceOfProfile(profileOf('host', calibration, [], network.now));
  const fresh = () => new Network(openHost(kind, seed), randomOf(seed + 2));
  return {
    ...result,
    seine: pace && measure(network, seinePace(pace), steadyMs, seed),
    autoThrottle: measure(fresh(), autoThrottle, steadyMs, seed),
    crawlee: measure(fresh(), crawleePool, steadyMs, seed),
  };
}

function measure(network: Network, contender: Contender, ms: number, seed: number): Score {
  const { requests, answered, refusals, now } = network;
  contender(network, now + ms, randomOf(seed + 3));
  const seconds = (network.now - now) / 1_000;
  return {
    throughput: (network.answered - answered) / seconds / network.limitNow,
    requests: network.requests - requests,
    refused: network.refusals - refusals,
  };
}

/** Every kind in turn, each host with its own seed. */
export function* hostsOf(count: number, seed: number): Iterable<{ kind: string; seed: number }> {
  const kinds = Object.keys(HOST_KINDS);
  for (let index = 0; index < count; index++)
    yield { kind: kinds[index % kinds.length]!, seed: seed + index * 7_919 };
}

/** Whether the bar of calibration is met: 80 to 100 % of the limit, with 20 refusals at the most. */
export function isWithinBar({ kept, refusals }: Pick<ArenaResult, 'kept' | 'refusals'>): boolean {
  return kept >= 0.8 && kept <= 1 && refusals <= 20;
}
