import { type Lower, lowered, type Wanted } from './scaling.ts';

/**
 * How many threads of a process work on batches.
 *
 * batches    that threads had at once, in the mean.
 * wanted     batches at once that the jobs can use, by the formula of scaling.ts.
 * computing  threads' worth of computing: the shares of the time in which each of them was not waiting, added up.
 *
 * needed = the larger one of min(batches ÷ 0.7, wanted) ÷ slots of a thread, and of computing ÷ 0.7.
 *
 * Up at once, to as many as were of use before; beyond that by twice at the most, and then it is measured what they bring.
 * Where even the upper bound of that is under 5 %, they end again, and the next try comes later and later. No more begin
 * while hosts refuse more, while the cores are in use, or without memory. Down when fewer were enough for some minutes.
 */
export interface ThreadCounts {
  min: number;
  max: number;
  /** Those that a process begins with. */
  first: number;
}

export interface ThreadRange extends ThreadCounts {
  /** How long fewer must be enough before some end. */
  keepMs: number;
  /** How often it is looked at what they do. */
  lookMs: number;
}

export interface ThreadFacts {
  now: number;
  batches: number;
  computing: number;
  tasksPerSecond: number;
  /** Null while the jobs do not know yet. */
  wanted: Wanted | null;
  /** Cores that this process uses, and those that it may use. */
  cpu: number;
  cores: number;
  /** More threads that there is memory for. */
  room: number;
  slotsPerThread: number;
}

export interface ThreadState {
  threads: number;
  lower: Lower | null;
  /** Threads of which it is known, or taken for granted, that all are of use. */
  proven: number;
  /** Tasks per second in the last looks at so many threads. */
  rates: readonly number[];
  /** More of them are tried out: how many there were, and what those did. */
  trial: { from: number; rates: readonly number[] } | null;
  /** More than these were of no use lately. */
  ceiling: { threads: number; until: number; pauseMs: number } | null;
}

interface ThreadDecision {
  state: ThreadState;
  /** In words: why there are more or fewer from now on, or why there are not more. Null where nothing is to be said. */
  reason: string | null;
}

export const KEEP_MS = 300_000;
export const LOOK_MS = 1_000;
const FULL = 0.7;
const GAIN_MIN = 0.05;
/** Of the slots, when all count as taken. */
const TAKEN = 0.9;
/** Of the cores, when more threads could only wait for them. */
const CORES_USED = 0.9;
/** Looks that tell a rate; the first ones after a change belong to neither. */
const LOOKS = 5;
const LOOKS_SETTLING = 2;
const LOOKS_KEPT = 30;
const PAUSE_MS = 300_000;
const PAUSE_MS_MAX = 3_600_000;

export function fixedThreads(threads: number): ThreadRange {
  return { min: threads, max: threads, first: threads, keepMs: KEEP_MS, lookMs: LOOK_MS };
}

export function firstThreads({ first }: Pick<ThreadRange, 'first'>): ThreadState {
  return { threads: first, lower: null, proven: first, rates: [], trial: null, ceiling: null };
}

export function nextThreads(before: ThreadState, facts: ThreadFacts, range: ThreadRange): ThreadDecision {
  const rates = [...before.rates, facts.tasksPerSecond].slice(-LOOKS_KEPT);
  const { need, reason } = needOf(before, facts);
  const target = Math.max(range.min, Math.min(need, range.max));
  const judged = judge({ ...before, rates }, need, facts.now);
  if (judged.reason !== null) return judged;
  const { state } = judged;
  if (target > state.threads) return raise(state, target, facts, reason);
  if (target === state.threads) return { state: { ...state, lower: null }, reason: null };
  const { lower, down } = lowered(state.lower, target, facts.now, range.keepMs);
  if (down === null) return { state: { ...state, lower }, reason: null };
  const { keepMs } = range;
  const time = keepMs < 120_000 ? `${short(keepMs / 1_000)} s` : `${short(keepMs / 60_000)} min`;
  return { state: withThreads(state, down), reason: `fewer were enough for ${time}` };
}

function needOf({ threads }: ThreadState, facts: ThreadFacts): { need: number; reason: string } {
  const { batches, computing, wanted, slotsPerThread } = facts;
  const isFull = batches >= threads * slotsPerThread * TAKEN;
  const used = batches / FULL;
  const slots = wanted === null ? used : isFull ? wanted.slots : Math.min(used, wanted.slots);
  const bySlots = Math.ceil(slots / slotsPerThread);
  // A batch is computed by one thread.
  const byComputing = Math.ceil(Math.min(computing / FULL, batches));
  return byComputing > bySlots
    ? { need: byComputing, reason: `the code of pages takes ${short(computing)} threads` }
    : {
        need: Math.max(1, bySlots),
        reason: `${short(batches)} batches at once${isFull && wanted !== null ? `, and ${wanted.reason}` : ''}`,
      };
}

/** Whether the threads that were added last are of use. */
function judge(state: ThreadState, need: number, now: number): ThreadDecision {
  const { trial, rates, threads, ceiling } = state;
  if (trial === null) return { state, reason: null };
  // What changed is the work.
  if (need <= trial.from) return { state: { ...state, trial: null }, reason: null };
  if (rates.length < LOOKS + LOOKS_SETTLING) return { state, reason: null };
  const gain = gainBound(trial.rates, rates.slice(LOOKS_SETTLING));
  if (gain >= GAIN_MIN)
    return { state: { ...state, trial: null, proven: Math.max(state.proven, threads) }, reason: null };
  const pauseMs = ceiling === null ? PAUSE_MS : Math.min(PAUSE_MS_MAX, ceiling.pauseMs * 2);
  return {
    state: {
      ...withThreads(state, trial.from),
      ceiling: { threads: trial.from, until: now + pauseMs, pauseMs },
    },
    reason: `${threads - trial.from} more brought ${short(Math.max(0, gain) * 100)} % at most`,
  };
}

function raise(state: ThreadState, target: number, facts: ThreadFacts, reason: string): ThreadDecision {
  const { threads, proven, ceiling, trial, rates } = state;
  const stay = (why: string | null): ThreadDecision => ({ state: { ...state, lower: null }, reason: why });
  if (facts.wanted?.limit === 'refusals') return stay('no more: hosts refuse more requests than they should');
  if (facts.room < 1) return stay('no more: there is no memory for another');
  if (facts.cpu >= facts.cores * CORES_USED)
    return stay(`no more: ${facts.cores === 1 ? 'the core is' : `all ${facts.cores} cores are`} in use`);
  if (ceiling !== null && facts.now < ceiling.until && threads >= ceiling.threads) return stay(null);
  const most = threads + facts.room;
  if (threads < proven) return { state: withThreads(state, Math.min(target, proven, most)), reason };
  if (trial !== null || rates.length < LOOKS) return stay(null);
  const more = withThreads(state, Math.min(target, threads * 2, most));
  return { state: { ...more, trial: { from: threads, rates } }, reason };
}

function withThreads(state: ThreadState, threads: number): ThreadState {
  return { ...state, threads, lower: null, rates: [], trial: null };
}

/** Upper bound, at 95 %, of what the later rates are above the earlier ones. */
function gainBound(earlier: readonly number[], later: readonly number[]): number {
  const before = meanOf(earlier);
  const after = meanOf(later);
  if (before.mean <= 0) return Number.POSITIVE_INFINITY;
  return (after.mean - before.mean + 1.645 * Math.sqrt(before.error ** 2 + after.error ** 2)) / before.mean;
}

function meanOf(values: readonly number[]): { mean: number; error: number } {
  const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
  const variance = values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (values.length - 1);
  return { mean, error: Math.sqrt(variance / values.length) };
}

function short(value: number): string {
  return String(Number(value.toPrecision(2)));
}
