import { isBanned, probeUrlOf, refusalsLeft } from '../../core/bans/bans.ts';
import type { Permit } from '../../core/batch/batch.ts';
import { isProbing, knownPageFor } from '../../core/circuit-breaker/circuit-breaker.ts';
import { type AddressLimits, isLane, type LaneTimes, laneTimes } from '../../core/pace/address-pace.ts';
import { guardedGapMs, meanGapMs, permitFor, tasksPerPermit } from '../../core/politeness/permits.ts';
import type { DueHost } from '../../ports/store.ts';

/** What is out already for a host. */
export interface HostLoad {
  /** Those under which requests may begin. */
  permits: number;
  /** Those under which nothing begins any more, while some pages are under way. */
  eased: number;
  parallel: number;
}

/** A host that waits, with what the coordinator knows of it beyond the store. */
export interface PlanHost extends DueHost {
  load: HostLoad;
  /** Its robots.txt will probably be asked first: that takes a turn of the permit too. */
  needsRobots: boolean;
  /** What this host gets now, where it is not what all get. */
  gapMs?: number;
  parallel?: number;
  permitMs?: number;
  /** Its tasks go to a browser, which is slow to begin. */
  renders?: boolean;
  /** Permits that may be out at once; two when absent. */
  permitsMax?: number;
  /** Answers so far, while the host is in its slow start. */
  answered?: number;
  /** No request may leave after this: the host's hours end. */
  closesAt?: number;
  /** Of a piggybacked host: what is requested there to see whether it can be reached. */
  probeUrl?: string;
  /** There when the host has paces by address; `lanesMax`: addresses that can work on it at once. */
  addresses?: AddressLimits & { lanesMax: number };
  /** Another host that is to be asked one thing in the same batch: where robots.txt of this one is. */
  piggybackedHost?: PlanHost;
}

export interface PlanInput {
  now: number;
  /** The longest waiting first. */
  hosts: readonly PlanHost[];
  slots: number;
  workers: number;
  batchSize: number;
  /** The same for hosts without a gap, whose pages may come fast: `core/batch-size/batch-size.ts`. */
  openBatchSize: number;
  gapMs: number;
  jitter?: number;
  parallel: number;
  /** Failures in a row after which a host is only probed. */
  probeAfter: number;
  /** How long a permit without a gap stays good. */
  openMs: number;
  /** Tasks that may still be started under the job's page limit. */
  tasksLeft: number;
}

export interface Grant {
  hostId: number;
  count: number;
  /** The host is taken until then. */
  nextAt: number;
  permit: Permit;
  /** There when the grant is for a piggybacked host: it has no tasks. */
  piggybackedHost?: DueHost;
}

export interface PlannedBatch {
  grants: Grant[];
  size: number;
}

/** At most two permits of a host are out: one in use, one to follow it without a pause. */
const PERMITS_PER_HOST = 2;
/** Failures in a row that may have been of single pages. */
const ANSWERING_BELOW = 3;
/** Hosts without a gap are together spread over this many batches for each worker: none idles between two. */
const BATCHES_PER_WORKER = 2;
/**
 * So many times as many batches of a host may be out beside these, of which only late pages are left. They hold the slots of
 * other hosts; without a limit, one with pages that never answer would soon have all.
 */
const LATE_PERMITS = 3;
/** So few tasks do not wait for more places: an urgent job has no time. */
const FEW_FOR_A_PLACE = 8;

/** A batch has its price: fewer tasks are not divided. */
const SPREAD_TASKS_MIN = 20;

/**
 * Decides which hosts get how many requests in which batch. Pure: the sum of what it grants to
 * a host, with what is out already, never exceeds the host's rate and parallelism.
 */
export function planBatches(input: PlanInput): PlannedBatch[] {
  const batches: PlannedBatch[] = [];
  if (input.slots === 0 || input.hosts.length === 0) return batches;
  let tasksLeft = input.tasksLeft;
  // With many hosts waiting each gets a small share: more hosts at once, and none waits for another's last task.
  const shareOf = (size: number) => Math.max(1, Math.floor((input.slots * size) / input.hosts.length));
  const openFullAt = openBatchesFullAt(input);
  for (const host of input.hosts) {
    const gapMs = gapOf(input, host);
    const sizeMax = sizeMaxOf(input, host, gapMs);
    const fullAt = gapMs > 0 ? sizeMax : Math.min(sizeMax, openFullAt);
    const limits = { ...input, batchSize: sizeMax, parallel: host.parallel ?? input.parallel };
    const granted: Grant[] = [];
    for (const part of partsOf(limits, host, gapMs, shareOf(sizeMax))) {
      const count = Math.min(part.count, tasksLeft);
      const isApart = (part.lane?.lanes ?? 1) > 1;
      const batch = count > 0 ? batchWithRoom(batches, input, { fullAt, isApart }, host) : null;
      if (!batch) break;
      const room = Math.min(sizeMax, sizeLimit(batch, input)) - batch.size;
      addGrant(batch, input, host, { ...part, count: Math.min(count, room) }, gapMs);
      granted.push(batch.grants.at(-1)!);
      tasksLeft -= granted.at(-1)!.count;
      if (!host.piggybackedHost) continue;
      addPiggybackedHost(batch, input, host.piggybackedHost);
      break;
    }
    // The host is taken until the last of its lanes is over.
    const nextAt = Math.max(...granted.map((grant) => grant.nextAt));
    for (const grant of granted) grant.nextAt = nextAt;
  }
  return batches;
}

function partsOf(input: PlanInput, host: PlanHost, gapMs: number, share: number): Part[] {
  if (host.addresses) return laneParts(input, host, host.addresses, share);
  return gapMs > 0 ? pacedParts(input, host, gapMs, share) : openParts(input, host, share);
}

function gapOf({ gapMs }: Pick<PlanInput, 'gapMs'>, host: PlanHost): number {
  return guardedGapMs(host.gapMs ?? gapMs, host.crawlDelayMs);
}

/** A browser is slow, whatever the host's other pages take. */
function sizeMaxOf({ batchSize, openBatchSize }: PlanInput, { renders }: PlanHost, gapMs: number): number {
  return gapMs > 0 || renders ? batchSize : openBatchSize;
}

/** With a host that has a gap, the pages of all others wait for it as well. */
function sizeLimit({ grants }: Pick<PlannedBatch, 'grants'>, input: PlanInput): number {
  return grants.some(({ permit }) => permit.gapMs > 0) ? input.batchSize : input.openBatchSize;
}

/** What little there is for hosts without a gap is divided among the workers; not where each batch takes up a worker. */
function openBatchesFullAt(input: PlanInput): number {
  const { hosts, slots, workers, openBatchSize } = input;
  if (slots <= workers) return openBatchSize;
  const ready = hosts.reduce((sum, host) => (gapOf(input, host) > 0 ? sum : sum + host.ready), 0);
  return Math.min(openBatchSize, Math.max(SPREAD_TASKS_MIN, Math.ceil(ready / workers)));
}

interface Part {
  count: number;
  parallel: number;
  /** Of a host with paces by address: its gap, and how much later than the first lane it begins. */
  lane?: Omit<LaneTimes, 'delaysMs'> & { lanes: number; delayMs: number };
}

/** A host with a gap gets one permit at a time, and the following one shortly before it ends. */
function pacedParts(input: PlanInput, host: PlanHost, gapMs: number, share: number): Part[] {
  const free = input.parallel - host.load.parallel;
  const probing = isProbed(host, input);
  if (free < 1 || host.load.permits >= (probing ? 1 : (host.permitsMax ?? PERMITS_PER_HOST))) return [];
  if (probing) return [{ count: 1, parallel: 1 }];
  const parallel = host.load.permits === 0 ? firstParallel(input.parallel) : free;
  const count = Math.min(
    host.ready,
    share,
    tasksPerPermit(meanGapMs(gapMs, input.jitter ?? 0), host.permitMs),
  );
  return [{ count, parallel: Math.min(parallel, free) }];
}

/**
 * Of the parallel requests of a host, those of the first of two permits. The second must not have so few that one page
 * which does not answer holds up all others; where there are only two or three, the first has them all.
 */
function firstParallel(parallel: number): number {
  return parallel < 4 ? parallel : Math.ceil(parallel / 2);
}

/**
 * A host with paces by address gets a permit for each of several addresses, and the following ones shortly before these
 * end. Lanes of one round share the cap and the parallel requests of the host.
 */
function laneParts(
  input: PlanInput,
  host: PlanHost,
  limits: NonNullable<PlanHost['addresses']>,
  share: number,
): Part[] {
  const first = firstParallel(input.parallel);
  const isAlone = isProbed(host, input) || host.needsRobots || host.piggybackedHost !== undefined;
  const wanted = isAlone ? 1 : Math.min(limits.lanes, limits.lanesMax, first, input.slots);
  if (wanted <= 1) {
    const times = laneTimes(limits, 1);
    const parts = pacedParts(input, host, times.usualGapMs, share);
    return parts.map((part) => ({ ...part, lane: { ...times, lanes: 1, delayMs: 0 } }));
  }
  const { load, permitsMax: rounds = PERMITS_PER_HOST } = host;
  if (rounds === 1 && load.permits > 0) return [];
  const free = Math.min(load.permits === 0 ? first : input.parallel, input.parallel - load.parallel);
  const total = Math.min(host.ready, share);
  const lanes = Math.min(wanted, rounds * wanted - load.permits, free, total);
  if (lanes < 1) return [];
  const { delaysMs, ...times } = laneTimes(limits, lanes);
  const most = tasksPerPermit(meanGapMs(times.usualGapMs, input.jitter ?? 0), host.permitMs);
  const part = { count: Math.min(Math.ceil(total / lanes), most), parallel: Math.floor(free / lanes) };
  return delaysMs.map((delayMs) => ({ ...part, lane: { ...times, lanes, delayMs } }));
}

/** A host without a gap is limited by parallelism alone, which is divided among batches. */
function openParts(input: PlanInput, host: PlanHost, share: number): Part[] {
  const isOut = host.load.permits + host.load.eased > 0;
  if (isProbed(host, input)) return isOut ? [] : [{ count: 1, parallel: 1 }];
  if (isStarting(host))
    return isOut ? [] : [{ count: Math.min(host.ready, share, input.batchSize), parallel: input.parallel }];
  const spread = Math.ceil((input.workers * BATCHES_PER_WORKER) / input.hosts.length);
  const batchesMax = Math.min(Math.max(spread, PERMITS_PER_HOST), input.parallel);
  const outMax = batchesMax + LATE_PERMITS * spread - host.load.eased;
  const each = Math.floor(input.parallel / batchesMax);
  const parts: Part[] = [];
  let free = input.parallel - host.load.parallel;
  // One host alone may take everything; among many each takes its share.
  let ready = Math.min(host.ready, share);
  let permits = host.load.permits;
  while (ready > 0 && free > 0 && permits < Math.min(batchesMax, outMax) && parts.length < input.slots) {
    const parallel = permits === batchesMax - 1 ? free : Math.min(each, free);
    const fair = Math.ceil(ready / (batchesMax - permits));
    const count = Math.min(ready, Math.max(fair, parallel), input.batchSize);
    // Late pages have the rest: with one or two places, the next that does not answer would hold up all tasks of a batch.
    if (permits > 0 && parallel * 2 < each && count > parallel * FEW_FOR_A_PLACE) break;
    parts.push({ count, parallel });
    free -= parallel;
    ready -= count;
    permits++;
  }
  return parts;
}

/**
 * The first batch with room that does not serve the host yet; a new one while there are slots. Piggybacked hosts
 * go into batches of their own: other hosts wait for their answers, which must not wait for pages. So do lanes: a worker
 * that has one of the host already refuses it with its batch.
 */
function batchWithRoom(
  batches: PlannedBatch[],
  input: PlanInput,
  { fullAt, isApart }: { fullAt: number; isApart: boolean },
  { id, piggybackedHost }: PlanHost,
): PlannedBatch | null {
  const open = batches.find(
    ({ size, grants }) =>
      !isApart &&
      !grants.some(({ permit }) => isLane(permit)) &&
      size < Math.min(fullAt, sizeLimit({ grants }, input)) &&
      grants.every(({ hostId }) => hostId !== id) &&
      grants.some((grant) => grant.piggybackedHost) === (piggybackedHost !== undefined),
  );
  if (open) return open;
  if (batches.length >= input.slots) return null;
  const batch: PlannedBatch = { grants: [], size: 0 };
  batches.push(batch);
  return batch;
}

function addGrant(
  batch: PlannedBatch,
  input: PlanInput,
  host: PlanHost,
  part: Part,
  hostGapMs: number,
): void {
  const { probe, refusalsMax } = probeOf(host, part, input);
  const { lane } = part;
  const gapMs = lane?.gapMs ?? hostGapMs;
  const permit = permitFor(host.host, {
    now: input.now,
    nextAt: lane ? Math.max(input.now, host.nextAt) + lane.delayMs : host.nextAt,
    gapMs,
    ...(lane ? { usualGapMs: lane.usualGapMs, longerGapMs: lane.longerGapMs } : {}),
    jitter: input.jitter ?? 0,
    openMs: input.openMs,
    parallel: part.parallel,
    count: part.count + (host.needsRobots ? 1 : 0) + (probe?.url ? 1 : 0),
    renders: host.renders ?? false,
    closesAt: host.closesAt,
  });
  const nextAt = gapMs > 0 ? permit.endAt : Math.ceil(input.now);
  batch.grants.push({
    ...{ hostId: host.id, count: part.count, nextAt },
    permit: {
      ...permit,
      ...(probe ? { probe } : {}),
      ...(refusalsMax === null ? {} : { refusalsMax }),
      ...usualOf(host),
      ...(gapMs === 0 && part.count > 1 && isStarting(host) ? { answered: host.answered! } : {}),
      ...(lane && host.addresses ? { addresses: permitAddressesOf(host, lane.lanes, probe) } : {}),
    },
  });
  batch.size += part.count;
}

function permitAddressesOf(
  { addresses, ban }: PlanHost,
  lanes: number,
  probe: Permit['probe'],
): NonNullable<Permit['addresses']> {
  const { gapsMs, otherMs } = addresses!;
  return { gapsMs, otherMs, lanes, knownPage: probe ? null : (ban?.known?.url ?? null) };
}

function probeOf(
  { ban, probeUrl, failuresInRow, rests }: PlanHost,
  { count }: Part,
  { probeAfter }: Pick<PlanInput, 'probeAfter'>,
): { probe: Permit['probe']; refusalsMax: number | null } {
  if (probeUrl !== undefined) return { probe: { url: probeUrl }, refusalsMax: null };
  if (ban === null) return { probe: undefined, refusalsMax: null };
  const refusalsMax = refusalsLeft(ban);
  if (!isBanned(ban)) {
    const known = isProbing(failuresInRow, probeAfter)
      ? knownPageFor({ rests }, ban.known?.url ?? null)
      : null;
    return { probe: known === null ? undefined : { url: known }, refusalsMax };
  }
  const url = probeUrlOf(ban);
  // A piggybacked host has no task that could be its probe.
  const probe = url !== null || count > 0 ? { url } : undefined;
  return { probe, refusalsMax };
}

/** A browser is slow to begin, and has few pages at a time anyway. */
function isStarting({ answered, renders = false }: PlanHost): boolean {
  return answered !== undefined && !renders;
}

/** Where the last pages failed, it is not known whether the host still answers. */
function usualOf({ failuresInRow, pace }: PlanHost): Pick<Permit, 'usualMs'> {
  if (failuresInRow >= ANSWERING_BELOW || pace?.latencyMs == null) return {};
  return { usualMs: Math.ceil(pace.latencyMs) };
}

/** Whether the host gets one request at a time, to see whether it answers again. */
function isProbed(
  { failuresInRow, ban }: Pick<PlanHost, 'failuresInRow' | 'ban'>,
  { probeAfter }: Pick<PlanInput, 'probeAfter'>,
): boolean {
  return isProbing(failuresInRow, probeAfter) || isBanned(ban);
}

/** Whether one more request may be planned for a host. */
export function hasRoom(host: PlanHost, input: Pick<PlanInput, 'parallel' | 'probeAfter'>): boolean {
  const { load, permitsMax = PERMITS_PER_HOST } = host;
  const permits = isProbed(host, input) ? 1 : permitsMax;
  return load.permits < permits && load.parallel < (host.parallel ?? input.parallel);
}

function addPiggybackedHost(batch: PlannedBatch, input: PlanInput, host: PlanHost): void {
  const gapMs = gapOf(input, host);
  addGrant(batch, { ...input, jitter: 0 }, { ...host, needsRobots: true }, { count: 0, parallel: 1 }, gapMs);
  batch.grants.at(-1)!.piggybackedHost = host;
}
