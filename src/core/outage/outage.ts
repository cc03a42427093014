import type { Outcome, RobotsOutcome } from '../batch/outcome.ts';
import type { FailureCode } from '../failures.ts';

/**
 * Outages: when no host can be reached any more, the network is gone, and not the hosts. Nothing is sent but probes, and no
 * task fails because of it.
 *
 * Reached     a response came, or a connection was made: the network is there.
 * Unreached   the name was not resolved, or no connection was made. `own`: for a reason that only our side has.
 * Lost        an unreached host that was reached earlier in this run.
 * Probe       one task each of a few hosts, those that were reached before first; and robots.txt of one more host that was,
 *             whether or not it has tasks left. When that answers, the others are dead.
 *
 *   from      | event                                                    | to
 *   ----------|----------------------------------------------------------|--------------------------------------------
 *   any       | a host is reached                                        | online
 *   outage    | a host is reached                                        | online, but the next outage needs twice as many
 *             |                                                          | hosts, unless one is reached before
 *   online    | unreached, too few hosts since one was last reached      | online: the failure counts as it is
 *   online    | 3 lost hosts in a row, or 2 if no more were ever reached  | outage
 *   online    | 20 different unreached hosts in a row                    | outage
 *   online    | unreached for a reason of our own: 3 hosts, or a lost one | outage
 *   outage    | unreached                                                | outage: the task waits, robots.txt too
 *   outage    | the gap is over                                          | outage: a probe; the next gap is twice as long
 *   outage    | certain, and a day old                                   | the job stops (`coordinator/stop.ts`)
 *   outage    | not certain, and longer than its patience                | resigned
 *   resigned  | unreached                                                | resigned: hosts are given up as ever
 *
 * An outage is certain when the reason is our own, or when 20 hosts or more are unreached and some host was reached before
 * in this run. Otherwise a few hosts may have gone at once, or all of a list may be dead: patience is an hour where some
 * host was reached before, and else five minutes. A list of dead hosts ends, too.
 */
export interface Network {
  /** Since a host was last reached, each host once, and no more than are needed. */
  unreached: readonly string[];
  /** How many of these are lost, unreached for a reason of our own, and both. */
  lost: number;
  own: number;
  ownLost: number;
  /** Different hosts that were reached in this run, as far as it matters. */
  reached: readonly string[];
  outage: Outage | null;
  isResigned: boolean;
  /** How many times more hosts an outage needs than at first. */
  tolerance: number;
}

interface Outage {
  since: number;
  probes: number;
  /** No probe before. */
  probeAt: number;
}

export const ONLINE: Network = {
  ...{ unreached: [], lost: 0, own: 0, ownLost: 0 },
  ...{ reached: [], outage: null, isResigned: false, tolerance: 1 },
};

const UNREACHED_MIN = 20;
const TOLERANCE_MAX = 64;
const LOST_MIN = 3;
const LOST_OF_FEW_MIN = 2;
const OWN_MIN = 3;
const FIRST_GAP_MS = 1_000;
const GAP_MS_MAX = 5 * 60_000;
/** Hosts that one probe asks. */
export const PROBED_HOSTS = 3;
const PATIENCE_MS = 5 * 60_000;
const PATIENCE_WITH_LOST_MS = 3_600_000;
/** After that somebody has to look. */
export const OUTAGE_MS_MAX = 24 * 3_600_000;

/** What a result says of the network. */
export interface Reach {
  host: string;
  isReached: boolean;
  /** Unreached for a reason that only our side has. */
  isOwn: boolean;
  /** Reached earlier in this run. */
  wasReached: boolean;
}

/** The network after the results of a report. */
export function nextNetwork(before: Network, results: readonly Reach[], now: number): Network {
  const reached = results.filter(({ isReached }) => isReached);
  if (reached.length > 0) {
    const hosts = new Set([...before.reached, ...reached.map(({ host }) => host)]);
    const tolerance = before.outage === null ? 1 : Math.min(before.tolerance * 2, TOLERANCE_MAX);
    return { ...ONLINE, reached: [...hosts].slice(0, LOST_MIN), tolerance };
  }
  const next = results.reduce(withUnreached, before);
  const { outage } = next;
  if (outage === null) {
    if (next.isResigned || !isGone(next)) return next;
    return { ...next, outage: { since: now, probes: 0, probeAt: now + FIRST_GAP_MS } };
  }
  const patienceMs = next.reached.length > 0 ? PATIENCE_WITH_LOST_MS : PATIENCE_MS;
  if (isCertain(next) || results.length === 0 || now - outage.since < patienceMs) return next;
  return { ...ONLINE, reached: next.reached, isResigned: true };
}

function withUnreached(network: Network, { host, isOwn, wasReached }: Reach): Network {
  const { unreached, tolerance } = network;
  if (unreached.length >= UNREACHED_MIN * tolerance || unreached.includes(host)) return network;
  return {
    ...network,
    unreached: [...unreached, host],
    lost: network.lost + Number(wasReached),
    own: network.own + Number(isOwn),
    ownLost: network.ownLost + Number(isOwn && wasReached),
  };
}

function isGone({ unreached, lost, own, ownLost, reached, tolerance }: Network): boolean {
  const lostMin = Math.max(LOST_OF_FEW_MIN, Math.min(LOST_MIN, reached.length));
  return (
    unreached.length >= UNREACHED_MIN * tolerance ||
    lost >= lostMin * tolerance ||
    own >= OWN_MIN * tolerance ||
    ownLost >= tolerance
  );
}

function isCertain({ unreached, own, ownLost, reached }: Network): boolean {
  return own >= OWN_MIN || ownLost > 0 || (unreached.length >= UNREACHED_MIN && reached.length > 0);
}

/** A probe was sent. */
export function probed(network: Network, now: number): Network {
  const { outage } = network;
  if (outage === null) return network;
  const probes = outage.probes + 1;
  const gapMs = Math.min(FIRST_GAP_MS * 2 ** Math.min(probes, 20), GAP_MS_MAX);
  return { ...network, outage: { ...outage, probes, probeAt: now + gapMs } };
}

const UNREACHED: ReadonlySet<FailureCode> = new Set(['dns', 'connect', 'connect-timeout']);
/** Failures with which a connection was made. A broken one says nothing: it breaks when the network goes, too. */
const CONNECTED: ReadonlySet<FailureCode> = new Set(['tls', 'protocol', 'truncated', 'too-large']);
/** Errors of the system that a host cannot cause, as they stand in the detail of a failure. */
const OWN_ERRORS = /\b(?:EAI_AGAIN|ENETUNREACH|ENETDOWN|EADDRNOTAVAIL)\b/;

/** Null when a result says nothing of the network: nothing was sent, or not to the host itself. */
export function reachOf(result: Outcome | RobotsOutcome): Pick<Reach, 'isReached' | 'isOwn'> | null {
  if (result.kind === 'deferred' || result.trace === null) return null;
  if (result.trace.httpStatus !== null) return { isReached: true, isOwn: false };
  if (result.kind !== 'failed') return null;
  if (CONNECTED.has(result.code)) return { isReached: true, isOwn: false };
  const via = result.trace.via;
  if (!UNREACHED.has(result.code) || (via && (via.proxy !== null || via.fetcher === 'api'))) return null;
  return { isReached: false, isOwn: OWN_ERRORS.test(result.detail) };
}
