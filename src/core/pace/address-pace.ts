import type { Batch, Permit } from '../batch/batch.ts';
import { LIMITS } from '../limits.ts';
import { guardedGapMs } from '../politeness/permits.ts';
import { type AddressPace, type HostPace, isRising, isTrying, paceUnder } from './pace.ts';

/**
 * Paces by address, for hosts that count requests by the address they come from (`politeness.perAddress`).
 *
 * Address    what a host sees requests come from: an environment of AWS Lambda, a worker of the fleet, or all threads of
 *            one process. It is known by the name of the worker that reports (`addressOf`).
 * Cap        the job's rate. It stays that of the whole host, whatever addresses could do together.
 * Lane       a permit of one of several addresses that are asked to work at the same time. All lanes of a round begin
 *            together, each with a part of the cap, and the host is taken until the round is over.
 *
 * Nobody knows which worker will take a batch. So a permit says what every address may do, and a worker takes what is
 * its own (`permitAt`). What comes back is learned for the address that reports. A new address begins with what the one in
 * the middle has learned: hosts treat addresses alike, mostly.
 */

/** Some 250 bytes each, with the host and in every permit: more environments than Lambda has at once by default. */
const ADDRESSES_MAX = 100;
/** Environments of Lambda end after some hours, and their addresses go to others. */
const REMEMBERED_MS = 24 * 3_600_000;
/** Those that were not heard of for longer are not counted with. */
const ACTIVE_MS = 10 * 60_000;

/** What threads of a process are named: their process has the address. */
const PART_OF_WORKER = /(?:^|\/)(?:thread-\d+|suspects)$/;
/** Threads of the coordinator's own process. */
const OWN_ADDRESS = 'local';

/** The address of a worker, by the name in its reports. */
export function addressOf(worker: string): string {
  return worker.replace(PART_OF_WORKER, '') || OWN_ADDRESS;
}

/** What hosts with paces by address get. */
export interface AddressLimits {
  /** Least time between two requests to the host, from whatever address. */
  hostGapMs: number;
  /** Of the address in the middle. */
  gapMs: number;
  /** How many addresses are needed to come to the cap; 1 while no address was refused anything. */
  lanes: number;
  /** Of addresses that are known, and of others. */
  gapsMs: Record<string, number>;
  otherMs: number;
  isRising: boolean;
  /** An address tries a higher rate: the next round waits for what comes of it. */
  isTrying: boolean;
}

/** What addresses may do under the cap, with `crawlDelayMs` for the host as a whole. */
export function addressLimitsOf(
  pace: HostPace | null,
  { cap, crawlDelayMs, now }: { cap: number; crawlDelayMs: number | null; now: number },
): AddressLimits {
  const gapOf = ({ rate }: Pick<HostPace, 'rate'>) => guardedGapMs(1_000 / Math.min(cap, rate), crawlDelayMs);
  const start = startOfAddress(pace, cap, now);
  const active = activeAddresses(pace, now);
  const hostGapMs = guardedGapMs(1_000 / cap, crawlDelayMs);
  const gapMs = gapOf(start);
  return {
    hostGapMs,
    gapMs,
    lanes: start.refused === null ? 1 : Math.max(1, Math.ceil(gapMs / hostGapMs)),
    gapsMs: Object.fromEntries(active.map(([address, own]) => [address, gapOf(paceUnder(own, cap))])),
    otherMs: gapMs,
    isRising: isRising(start, cap),
    isTrying: active.some(([, own]) => isTrying(own)),
  };
}

/** Times of the lanes of a round. */
export interface LaneTimes {
  /** The gap of the cap, times the number of lanes: so all lanes together keep to the cap. */
  gapMs: number;
  /** What most addresses will need. */
  usualGapMs: number;
  /** What the slowest needs beyond that: it must be able to send a request, too. */
  longerGapMs: number;
  /** Lanes begin one after the other. */
  delaysMs: number[];
}

export function laneTimes(
  {
    hostGapMs,
    gapMs: middleMs,
    gapsMs,
    otherMs,
  }: Pick<AddressLimits, 'hostGapMs' | 'gapMs' | 'gapsMs' | 'otherMs'>,
  lanes: number,
): LaneTimes {
  const gapMs = hostGapMs * lanes;
  const usualGapMs = Math.max(gapMs, middleMs);
  const slowestMs = Math.max(usualGapMs, otherMs, ...Object.values(gapsMs));
  return {
    gapMs,
    usualGapMs,
    longerGapMs: Math.min(LIMITS.permitMsMax, slowestMs - usualGapMs),
    delaysMs: Array.from({ length: lanes }, (_, lane) => hostGapMs * lane),
  };
}

/** A permit as the worker of an address has to keep it: never faster than the permit itself. */
export function permitAt(permit: Permit, address: string): Permit {
  return permit.addresses
    ? { ...permit, gapMs: Math.max(permit.gapMs, grantedGapMs(permit, address)!) }
    : permit;
}

/** What a permit grants an address, were it not for the other lanes; null when it has no paces by address. */
export function grantedGapMs({ addresses }: Permit, address: string): number | null {
  if (!addresses) return null;
  return Object.hasOwn(addresses.gapsMs, address) ? addresses.gapsMs[address]! : addresses.otherMs;
}

/** Whether one of the lanes would be used by the same address as one that is used at the same time. */
export function isLaneTaken(
  batch: Pick<Batch, 'permits'>,
  others: Iterable<Pick<Batch, 'permits'>>,
): boolean {
  const lanes = batch.permits.filter(isLane);
  if (lanes.length === 0) return false;
  return [...others].some(({ permits }) =>
    permits.some((other) => isLane(other) && lanes.some((lane) => isAtTheSameTime(lane, other))),
  );
}

export function isLane({ addresses }: Permit): boolean {
  return (addresses?.lanes ?? 1) > 1;
}

function isAtTheSameTime(lane: Permit, other: Permit): boolean {
  return lane.host === other.host && lane.startAt < other.endAt && other.startAt < lane.endAt;
}

/** What an address is known for; null when it is new. */
export function paceOfAddress(pace: HostPace | null, address: string): HostPace | null {
  const { addresses = {} } = pace ?? {};
  return Object.hasOwn(addresses, address) ? addresses[address]! : null;
}

/** How a new address begins: as the one in the middle of those that are at work, or as the host did before. */
export function startOfAddress(pace: HostPace | null, cap: number, now: number): HostPace {
  const active = activeAddresses(pace, now);
  if (active.length === 0) {
    const { addresses: _, ...own } = paceUnder(pace, cap);
    return own;
  }
  const byRate = active.map(([, own]) => own).sort((one, other) => one.rate - other.rate);
  const { at: _, stretch: __, since: ___, blocked: ____, ...middle } = byRate[(byRate.length - 1) >> 1]!;
  // What it tries itself, others need not try too.
  return paceUnder({ ...middle, rate: Math.min(middle.rate, middle.clean ?? middle.rate) }, cap);
}

/** The pace of the host with what an address has learned. For jobs without paces by address, the slowest one counts. */
export function withAddress(
  pace: HostPace | null,
  address: string,
  learned: Omit<HostPace, 'addresses'>,
  now: number,
): HostPace {
  const known = Object.entries(pace?.addresses ?? {}).filter(
    ([name, { at }]) => name !== address && now - at < REMEMBERED_MS,
  );
  const others = known.sort(([, one], [, other]) => other.at - one.at).slice(0, ADDRESSES_MAX - 1);
  const addresses: Record<string, AddressPace> = {
    ...Object.fromEntries(others),
    [address]: { ...learned, at: Math.floor(now) },
  };
  return { ...slowestOf(addresses, now), addresses };
}

/** Changes what is known of every address, as a ban does: it is the host that slows all of them down. */
export function withAllAddresses(pace: HostPace, change: (own: HostPace) => HostPace, now: number): HostPace {
  const addresses = Object.fromEntries(
    Object.entries(pace.addresses ?? {}).map(([name, own]) => [name, { ...change(own), at: own.at }]),
  );
  return Object.keys(addresses).length === 0 ? change(pace) : { ...slowestOf(addresses, now), addresses };
}

function slowestOf(addresses: Record<string, AddressPace>, now: number): HostPace {
  const all = Object.values(addresses);
  const active = all.filter(({ at }) => now - at < ACTIVE_MS);
  const slowest = (active.length > 0 ? active : all).reduce((one, other) =>
    other.rate < one.rate ? other : one,
  );
  const { at: _, ...own } = slowest;
  return own;
}

export function activeAddresses(pace: HostPace | null, now: number): [string, AddressPace][] {
  return Object.entries(pace?.addresses ?? {}).filter(([, { at }]) => now - at < ACTIVE_MS);
}
