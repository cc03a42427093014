import { pagesPerSecond, predictRate, type RunFacts } from '../explain/predict.ts';
import { sumOf } from '../explain/slot-states.ts';

/**
 * How many batches should be under way at once, and how many workers that takes.
 *
 * A        pages per second that one taken slot brings, as measured: what its latency, its code and its waits leave.
 * byHosts  sum of the paces of the hosts ÷ A: with more, slots would only wait for hosts.
 * byTime   tasks left ÷ (wanted time × A): with fewer, the job would take longer than wanted.
 *
 * slots = min(byHosts, byTime) ÷ 0.7, so that short peaks find a free one. More of them are refused as soon as hosts refuse
 * more, or where even the upper bound of the gain is under 5 %: something else is the limit then.
 */
export interface ScalingFacts extends RunFacts {
  /** Pages per second in the steps of the last minutes. */
  rates: readonly number[];
  /** Tasks that are not finished. */
  remaining: number;
  /** Wanted time for those; null: as fast as the hosts allow. */
  finishSeconds: number | null;
  /** Of the last requests, those that hosts refused because there were too many. */
  refusedShare: number;
}

export interface Wanted {
  slots: number;
  workers: number;
  /** In words, for the log and for people. */
  reason: string;
  /** Why there are not to be more of them, although more could be used. */
  limit?: 'refusals' | 'gain';
}

const FULL = 0.7;
const GAIN_MIN = 0.05;
/** Above this share a rate is refused, see the sequential test of calibration. */
const REFUSED_MAX = 0.02;
/** Where no host limits anything, and all slots are taken. */
const STEP = 1.6;
/** Of the wall time, when slots count as all taken. */
const TAKEN = 0.5;

/** Null while nothing has been measured. */
export function wantedWorkers(facts: ScalingFacts): Wanted | null {
  const { sums, slots, workers, remaining } = facts;
  const busyMs = sumOf(sums.busy);
  if (sums.pages === 0 || busyMs === 0 || sums.wallMs === 0 || slots === 0 || workers === 0) return null;
  const perSlot = (sums.pages * 1_000) / busyMs;
  const { need, reason } = needOf(facts, perSlot, busyMs / sums.wallMs);
  const wanted = Math.max(1, Math.min(Math.ceil(need / FULL), remaining));
  const of = (count: number, why: string): Wanted => ({
    slots: count,
    workers: Math.max(1, Math.ceil((count * workers) / slots)),
    reason: why,
  });
  if (wanted <= slots) return of(wanted, reason);
  if (facts.refusedShare > REFUSED_MAX)
    return {
      ...of(slots, `hosts refuse ${percent(facts.refusedShare)} of the requests: no more than now`),
      limit: 'refusals',
    };
  const gain = gainBound(facts, (wanted * workers) / slots);
  if (gain < GAIN_MIN)
    return { ...of(slots, `more would bring ${percent(Math.max(0, gain))} at most`), limit: 'gain' };
  return of(wanted, reason);
}

/** What several jobs can use that share their workers; null without any. */
export function wantedTogether(all: readonly Wanted[]): Wanted | null {
  const [first] = all;
  if (!first || all.length === 1) return first ?? null;
  const most = all.reduce((best, wanted) => (wanted.slots > best.slots ? wanted : best));
  return {
    ...most,
    slots: all.reduce((sum, { slots }) => sum + slots, 0),
    workers: all.reduce((sum, { workers }) => sum + workers, 0),
    reason: `${all.length} jobs; the largest: ${most.reason}`,
  };
}

export function wantedText({ workers, slots, reason }: Wanted): string {
  const batches = `${slots} ${slots === 1 ? 'batch' : 'batches'} at once`;
  return `${workers} ${workers === 1 ? 'worker' : 'workers'}, ${batches}: ${reason}`;
}

function needOf(
  { hostsPerSecond, remaining, finishSeconds, sums, slots }: ScalingFacts,
  perSlot: number,
  taken: number,
): { need: number; reason: string } {
  const each = `a batch brings ${short(perSlot)}/s`;
  const byHosts = hostsPerSecond / perSlot;
  const byTime = finishSeconds === null ? Number.POSITIVE_INFINITY : remaining / (finishSeconds * perSlot);
  if (Number.isFinite(byTime) && byTime <= byHosts)
    return { need: byTime, reason: `${remaining} tasks in ${finishSeconds} s, and ${each}` };
  if (Number.isFinite(byHosts))
    return { need: byHosts, reason: `hosts take ${short(hostsPerSecond)} pages/s, and ${each}` };
  return sums.fullMs > sums.wallMs * TAKEN
    ? { need: slots * STEP * FULL, reason: 'all are taken, and no host limits' }
    : { need: taken, reason: `${short(taken)} are taken, and no host limits` };
}

/** Upper bound, at 95 %, of what so many workers would bring: the prediction of `explain`, and how much the rate varies. */
function gainBound(facts: ScalingFacts, workers: number): number {
  const now = pagesPerSecond(facts.sums);
  const gain = predictRate(facts, { kind: 'workers', workers }) / now - 1;
  const { rates } = facts;
  if (rates.length < 3) return gain;
  const mean = rates.reduce((sum, rate) => sum + rate, 0) / rates.length;
  const variance = rates.reduce((sum, rate) => sum + (rate - mean) ** 2, 0) / (rates.length - 1);
  return gain + (mean > 0 ? (1.645 * Math.sqrt(variance / rates.length)) / mean : 0);
}

/** Since when less would do, and the most that was wanted meanwhile. */
export interface Lower {
  since: number;
  most: number;
}

/** What is in force. */
export interface ScalingState {
  slots: number;
  lower: Lower | null;
}

/** Time for which less must be enough before there is less. */
const DOWN_AFTER_MS = 300_000;
const UP_FACTOR = 2;

/** Up at once, by twice at the most; down when less was enough for five minutes, to the most that was wanted meanwhile. */
export function nextScaling(
  { slots, lower }: ScalingState,
  wanted: number,
  { slotsMax, now }: { slotsMax: number; now: number },
): ScalingState {
  const target = Math.max(1, Math.min(wanted, slotsMax));
  if (slots > slotsMax) return { slots: slotsMax, lower: null };
  if (target >= slots) return { slots: Math.min(target, slots * UP_FACTOR), lower: null };
  const { lower: next, down } = lowered(lower, target, now, DOWN_AFTER_MS);
  return { slots: down ?? slots, lower: next };
}

/** Less is wanted: when that was so for long enough, `down` is the most that was wanted meanwhile. */
export function lowered(
  lower: Lower | null,
  target: number,
  now: number,
  afterMs: number,
): { lower: Lower | null; down: number | null } {
  const most = Math.max(target, lower?.most ?? 0);
  if (lower !== null && now - lower.since >= afterMs) return { lower: null, down: most };
  return { lower: { since: lower?.since ?? now, most }, down: null };
}

function percent(share: number): string {
  return `${short(share * 100)} %`;
}

function short(value: number): string {
  return String(Number(value.toPrecision(2)));
}
