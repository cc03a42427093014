import type { Outcome, RobotsOutcome } from '../batch/outcome.ts';
import type { FailureCode } from '../failures.ts';

/**
 * Outages: when no host can be reached any more, the network is gone, and not the hosts. Nothing is sent but probes, and no
 * task fails because of it.
 *
 * Reached     a response came, or a connection was made: the network is there.
 * Unreached   the name was not resolved, or no connection was made. `own`: for a reason that only our side has.
 * Lost        an unreached host that was reached within the last day, by this run or an earlier one.
 * Probe       one task each of a few hosts, most of them reached before; and robots.txt of one more host that was, whether or
 *             not it has tasks left. When that answers, the others are dead.
 *
 *   from      | event                                                    | to
 *   ----------|----------------------------------------------------------|--------------------------------------------
 *   any       | a host is reached                                        | online
 *   outage    | a host is reached by a request from before it             | outage: that was before the network went
 *   outage    | a host is reached                                        | online, but the next outage needs twice as many
 *             |                                                          | hosts, unless one is reached before
 *   online    | unreached, too few hosts since one was last reached      | online: the failure counts as it is
 *   online    | 3 lost hosts in a row, or 2 if no more were ever reached  | outage
 *   online    | 20 different unreached hosts in a row                    | outage
 *   online    | unreached for a reason of our own: 3 hosts, or a lost one | outage
 *   online    | unreached because we have no network, and none ever was  | outage
 *   outage    | unreached                                                | outage: the task waits, robots.txt too; what
 *             |                                                          | counts of a host is its latest failure
 *   outage    | the gap is over                                          | outage: a probe; the next gap is twice as long
 *   outage    | a probe comes back of which nothing was sent             | outage: the next one follows at once, as if it had not been
 *   outage    | certain, and a day old                                   | the job stops (`coordinator/stop.ts`)
 *   outage    | not certain, and longer than its patience                | resigned
 *   resigned  | unreached                                                | resigned: hosts are given up as ever
 *
 * An outage is certain when 3 hosts or a lost one are unreached for a reason of our own, and the last such failure is less
 * than an hour old; or when 20 hosts or more are unreached and some host was reached before. A host may not be asked any more
 * after such a failure, as one whose robots.txt is at a host that is gone. Where it is not certain, a few hosts may have gone
 * at once, or all of a list may be dead: patience is an hour where some host was reached before, and else five minutes. A list
 * of dead hosts ends, too.
 */
export interface Network {
  /** Since a host was last reached, each host once with its latest failure, and no more than are needed. */
  unreached: readonly UnreachedHost[];
  /** Different hosts that were reached, as far as it matters. */
  reached: readonly string[];
  outage: Outage | null;
  isResigned: boolean;
  /** When a host was last unreached for a reason of our own; null when none was, since one was reached. */
  ownAt: number | null;
  /** How many times more hosts an outage needs than at first. */
  tolerance: number;
}

interface UnreachedHost {
  host: string;
  isLost: boolean;
  /** Unreached for a reason of our own, and because we have no network at all. */
  isOwn: boolean;
  isOffline: boolean;
}

interface Outage {
  since: number;
  probes: number;
  /** No probe before. */
  probeAt: number;
}

export const ONLINE: Network = {
  ...{ unreached: [], reached: [], outage: null, isResigned: false, ownAt: null, tolerance: 1 },
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
/** From then on a reason of our own says nothing any more: every probe since then failed for another one. */
const OWN_MS = 3_600_000;
/** After that somebody has to look. */
export const OUTAGE_MS_MAX = 24 * 3_600_000;

/** What a result says of the network. */
export interface Reach {
  host: string;
  isReached: boolean;
  /** Unreached for a reason that only our side has. */
  isOwn: boolean;
  /** Unreached because this machine has no network at all. */
  isOffline: boolean;
  /** Reached within the last day. */
  wasReached: boolean;
  /** When it was requested; epoch milliseconds. */
  at: number;
}

/** A host that was reached so long ago may be gone by now. */
const REACHED_MS_MAX = 24 * 3_600_000;
/** How exactly it is kept when a host was last reached. */
const REACHED_MS = 60_000;

/** Whether a host that was last reached then counts as one that can be reached. */
export function isReachedSince(reachedAt: number | null, now: number): boolean {
  return reachedAt !== null && now - reachedAt < REACHED_MS_MAX;
}

/** When a host was last reached, after the results of a report; null when what is known is good enough. */
export function nextReachedAt(
  before: number | null,
  results: readonly (Outcome | RobotsOutcome)[],
  now: number,
): number | null {
  if (before !== null && Math.abs(now - before) < REACHED_MS) return null;
  return results.some((result) => reachOf(result)?.isReached) ? Math.floor(now) : null;
}

/** The network after the results of a report. */
export function nextNetwork(before: Network, results: readonly Reach[], now: number): Network {
  const since = before.outage?.since ?? Number.NEGATIVE_INFINITY;
  const reached = results.filter(({ isReached, at }) => isReached && at >= since);
  if (reached.length > 0) {
    const hosts = new Set([...before.reached, ...reached.map(({ host }) => host)]);
    const tolerance = before.outage === null ? 1 : Math.min(before.tolerance * 2, TOLERANCE_MAX);
    return { ...ONLINE, reached: [...hosts].slice(0, LOST_MIN), tolerance };
  }
  const unreached = results.filter(({ isReached }) => !isReached);
  const ownAt = unreached.some(({ isOwn }) => isOwn) ? now : before.ownAt;
  const next = unreached.reduce(withUnreached, { ...before, ownAt });
  const { outage } = next;
  if (outage === null) {
    if (next.isResigned || !isGone(next)) return next;
    return { ...next, outage: { since: now, probes: 0, probeAt: now + FIRST_GAP_MS } };
  }
  const patienceMs = next.reached.length > 0 ? PATIENCE_WITH_LOST_MS : PATIENCE_MS;
  if (isCertain(next, now) || results.length === 0 || now - outage.since < patienceMs) return next;
  return { ...ONLINE, reached: next.reached, isResigned: true };
}

/** A host whose failure is another now is no longer what it was: the network may be back, and the host gone. */
function withUnreached(network: Network, { host, isOwn, isOffline, wasReached }: Reach): Network {
  const { unreached, tolerance, reached } = network;
  const known = unreached.findIndex((each) => each.host === host);
  if (known < 0 && unreached.length >= UNREACHED_MIN * tolerance) return network;
  const isLost = wasReached || unreached[known]?.isLost === true;
  const latest = { host, isLost, isOwn, isOffline };
  return {
    ...network,
    unreached: known < 0 ? [...unreached, latest] : unreached.with(known, latest),
    reached: wasReached ? [...new Set([...reached, host])].slice(0, LOST_MIN) : reached,
  };
}

function isGone({ unreached, reached, tolerance }: Network): boolean {
  const lostMin = Math.max(LOST_OF_FEW_MIN, Math.min(LOST_MIN, reached.length));
  const { lost, own, ownLost, offline } = countsOf(unreached);
  return (
    unreached.length >= UNREACHED_MIN * tolerance ||
    lost >= lostMin * tolerance ||
    own >= OWN_MIN * tolerance ||
    ownLost >= tolerance ||
    (offline > 0 && reached.length === 0)
  );
}

function isCertain({ unreached, reached, ownAt }: Network, now: number): boolean {
  const { own, ownLost } = countsOf(unreached);
  // The clock may have been set back since.
  const isOwn = ownAt !== null && Math.abs(now - ownAt) < OWN_MS && (own >= OWN_MIN || ownLost > 0);
  return isOwn || (unreached.length >= UNREACHED_MIN && reached.length > 0);
}

function countsOf(
  unreached: readonly UnreachedHost[],
): Record<'lost' | 'own' | 'ownLost' | 'offline', number> {
  const counts = { lost: 0, own: 0, ownLost: 0, offline: 0 };
  for (const { isLost, isOwn, isOffline } of unreached) {
    counts.lost += Number(isLost);
    counts.own += Number(isOwn);
    counts.ownLost += Number(isOwn && isLost);
    counts.offline += Number(isOffline);
  }
  return counts;
}

/** A probe was sent. */
export function probed(network: Network, now: number): Network {
  const { outage } = network;
  if (outage === null) return network;
  const probes = outage.probes + 1;
  const gapMs = Math.min(FIRST_GAP_MS * 2 ** Math.min(probes, 20), GAP_MS_MAX);
  return { ...network, outage: { ...outage, probes, probeAt: now + gapMs } };
}

/** Nothing of the last probe was sent: its time had run out first. `before`: how many there were until then. */
export function unprobed(network: Network, before: number, now: number): Network {
  const { outage } = network;
  if (outage === null) return network;
  const probeAt = Math.min(outage.probeAt, now + FIRST_GAP_MS);
  return { ...network, outage: { ...outage, probes: before, probeAt } };
}

const UNREACHED: ReadonlySet<FailureCode> = new Set(['dns', 'connect', 'connect-timeout']);
/** Failures with which a connection was made. A broken one says nothing: it breaks when the network goes, too. */
const CONNECTED: ReadonlySet<FailureCode> = new Set(['tls', 'protocol', 'truncated', 'too-large']);
/** Errors of the system that a host cannot cause, as they stand in the detail of a failure. */
const OWN_ERRORS = /\b(?:EAI_AGAIN|ENETUNREACH|ENETDOWN|EADDRNOTAVAIL)\b/;
/** Those that a single name or address does not cause either, as one whose name servers are broken causes EAI_AGAIN. */
const OFFLINE_ERRORS = /\b(?:ENETUNREACH|ENETDOWN)\b/;

/** Null when a result says nothing of the network: nothing was sent, or not to the host itself. */
export function reachOf(result: Outcome | RobotsOutcome): Omit<Reach, 'host' | 'wasReached'> | null {
  if (result.kind === 'deferred' || result.trace === null) return null;
  const at = result.trace.startedAt;
  const reached = { isReached: true, isOwn: false, isOffline: false, at };
  if (result.trace.httpStatus !== null) return reached;
  if (result.kind !== 'failed') return null;
  if (CONNECTED.has(result.code)) return reached;
  const via = result.trace.via;
  if (!UNREACHED.has(result.code) || (via && (via.proxy !== null || via.fetcher === 'api'))) return null;
  const { detail } = result;
  return { isReached: false, isOwn: OWN_ERRORS.test(detail), isOffline: OFFLINE_ERRORS.test(detail), at };
}
