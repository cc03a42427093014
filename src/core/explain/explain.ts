import { unguardedGapMs } from '../politeness/permits.ts';
import {
  type Change,
  type HostBacklog,
  hostSeconds,
  pagesPerSecond,
  predictRate,
  type RunFacts,
  secondsLeft,
  weightOf,
} from './predict.ts';
import type { ScalingDecision } from './scaling-decision.ts';
import { addSums, noSums, type SlotSums, statesOf } from './slot-ledger.ts';
import { SLOT_STATES, type SlotState, sumOf } from './slot-states.ts';

/** What one coordinator has written down of a job; see slot-states.ts for the words. */
export interface SlotAccount {
  /** The pass of the job that it is of. */
  pass: number;
  /** Epoch milliseconds. */
  at: number;
  slots: number;
  workers: number;
  total: SlotSums;
  /** Of the last minutes. */
  recent: SlotSums;
  /** Pages per second in the steps of the last minutes. */
  rates: number[];
  hosts: HostBacklog[];
  /** Of all hosts with a backlog; null where one has no limit, or they have too few tasks to limit anything. */
  hostsPerSecond: number | null;
  /** What writing a report takes when it need not wait for others. */
  writeMs: number | null;
  /** Of the last requests, those that hosts refused because there were too many; absent in accounts of old. */
  refusedShare?: number;
  /** What was decided about workers and batches, and why; the newest last. Absent: nothing. */
  decisions?: ScalingDecision[];
}

/** What limits a job: a state, or `workers` where slots are taken and wait for sites: more of them would do more. */
type Limit = SlotState | 'workers';

export interface Gain {
  /** As for `--what-if`. */
  change: string;
  gainPercent: number;
  /** Until the job is done, with the change. */
  etaSeconds: number | null;
}

/** When the tasks that are known will be done. */
export interface TimeLeft {
  seconds: number;
  /** As far as the rate of the last minutes has varied. */
  low: number;
  high: number;
  /** Tasks that are left. */
  tasks: number;
}

export interface Explanation {
  /** Percent of all slot-seconds by state; they add up to 100. Empty when nothing has been measured. */
  shares: Partial<Record<SlotState, number>>;
  limiting: Limit | null;
  /** The host that would be the last, if it has a backlog. */
  criticalHost: string | null;
  gains: Gain[];
  /** Null when the job does not end at the rate that it has, or nothing is left. */
  eta: TimeLeft | null;
  sentence: string;
}

interface ExplainInput {
  accounts: readonly SlotAccount[];
  /** Tasks that are not finished; as many as the limits of the job let it request. */
  remaining: number;
  isRunning: boolean;
  isSourceDone: boolean;
  /** The job ended because of its limits. */
  isOverBudget: boolean;
  changes: readonly { text: string; change: Change }[];
}

/** An account that is older is of a coordinator that has ended. */
const RECENT_MS = 60_000;
/** With less, the last minutes say nothing. */
const RECENT_MIN_MS = 5_000;
const TENTHS = 1_000;

/** What several coordinators have measured, as one. Of those that work now when the job runs. */
export function factsOf(
  accounts: readonly SlotAccount[],
  isRunning: boolean,
): RunFacts & { rates: number[]; refusedShare: number } {
  const last = Math.max(0, ...accounts.map(({ at }) => at));
  const atWork = accounts.filter(({ at }) => last - at < RECENT_MS);
  const useRecent = isRunning && atWork.some(({ recent }) => recent.wallMs >= RECENT_MIN_MS);
  const used = useRecent ? atWork : accounts;
  const sums = noSums();
  for (const account of used) addSums(sums, useRecent ? account.recent : account.total);
  // Where several worked at the same time, that time passed once.
  const spans = used.map((account) => ({
    from: account.at - (useRecent ? account.recent : account.total).wallMs,
    to: account.at,
  }));
  const once = sums.wallMs > 0 ? unionOf(spans) / sums.wallMs : 1;
  for (const name of ['wallMs', 'fullMs', 'writingMs'] as const) sums[name] *= once;
  for (const state of SLOT_STATES) if (sums.waits[state] !== undefined) sums.waits[state] *= once;
  const hosts = atWork.flatMap((account) => account.hosts);
  return {
    sums,
    slots: atWork.reduce((sum, { slots }) => sum + slots, 0),
    workers: atWork.reduce((sum, { workers }) => sum + workers, 0),
    hosts: hosts.sort((a, b) => hostSeconds(b) - hostSeconds(a) || b.ready - a.ready),
    hostsPerSecond: atWork.reduce(
      (sum, { hostsPerSecond }) => sum + (hostsPerSecond ?? Number.POSITIVE_INFINITY),
      0,
    ),
    writeMs: atWork[0]?.writeMs ?? null,
    rates: atWork.flatMap(({ rates }) => rates),
    refusedShare: Math.max(0, ...atWork.map(({ refusedShare = 0 }) => refusedShare)),
  };
}

/** How long at least one of them lasts. */
function unionOf(spans: readonly { from: number; to: number }[]): number {
  let ms = 0;
  let until = Number.NEGATIVE_INFINITY;
  for (const { from, to } of [...spans].sort((a, b) => a.from - b.from)) {
    ms += Math.max(0, to - Math.max(from, until));
    until = Math.max(until, to);
  }
  return ms;
}

/** Percent with one digit; they add up to 100 exactly: what rounding leaves goes to those that lost most by it. */
export function sharesOf(sums: Pick<SlotSums, 'busy' | 'idle'>): Partial<Record<SlotState, number>> {
  const states = statesOf(sums);
  const total = sumOf(states);
  if (!(total > 0)) return {};
  const parts = SLOT_STATES.map((state) => {
    const exact = ((states[state] ?? 0) / total) * TENTHS;
    return { state, tenths: Math.floor(exact), rest: exact - Math.floor(exact) };
  });
  let left = TENTHS - parts.reduce((sum, { tenths }) => sum + tenths, 0);
  for (const part of [...parts].sort((a, b) => b.rest - a.rest)) if (left-- > 0) part.tenths++;
  const sum = parts.reduce((all, { tenths }) => all + tenths, 0);
  if (sum !== TENTHS) throw new Error(`shares add up to ${sum / 10} %`);
  return Object.fromEntries(
    parts.filter(({ tenths }) => tenths > 0).map(({ state, tenths }) => [state, tenths / 10]),
  );
}

/** Within so much of what hosts take together, more workers cannot be the answer. */
const HOSTS_REACHED = 1.1;

/** What the largest part of the wall time goes to: see the weights of predict.ts. */
export function limitOf(facts: RunFacts): Limit | null {
  const { sums } = facts;
  if (sums.wallMs === 0) return null;
  const weights = new Map<Limit, number>();
  for (const state of SLOT_STATES) {
    const limit: Limit = state === 'network' || state === 'browser' || state === 'report' ? 'workers' : state;
    weights.set(limit, (weights.get(limit) ?? 0) + weightOf(sums, state));
  }
  const [largest] = [...weights].sort(([, a], [, b]) => b - a)[0]!;
  const areHostsReached = facts.hostsPerSecond <= pagesPerSecond(sums) * HOSTS_REACHED;
  return largest === 'workers' && facts.hosts.length > 0 && areHostsReached ? 'hostGap' : largest;
}

export function explain(input: ExplainInput): Explanation {
  const facts = factsOf(input.accounts, input.isRunning);
  const shares = sharesOf(facts.sums);
  const [critical] = facts.hosts;
  const criticalHost = critical?.host ?? null;
  if (Object.keys(shares).length === 0)
    return {
      ...{ shares, limiting: null, criticalHost, gains: [], eta: null },
      sentence: 'Nothing has been measured yet.',
    };
  const limiting = input.isOverBudget ? 'budget' : limitOf(facts);
  const changes = input.changes.length > 0 ? input.changes : usualChanges(facts, limiting, critical);
  const gains = changes.map(({ text, change }) => gainOf(facts, input.remaining, text, change));
  const eta = timeLeftOf(facts, input.remaining);
  const sentence = sentenceOf(input, facts, { shares, limiting, critical, gains, changes, eta });
  return { shares, limiting, criticalHost, gains, eta, sentence };
}

function timeLeftOf(facts: RunFacts & { rates: number[] }, tasks: number): TimeLeft | null {
  const seconds = secondsLeft(tasks, pagesPerSecond(facts.sums), facts.hosts);
  if (tasks === 0 || seconds === null) return null;
  const { low, high } = bandOf(seconds, facts.rates);
  return { seconds: Math.round(seconds), low: Math.round(low), high: Math.round(high), tasks };
}

function gainOf(facts: RunFacts, remaining: number, text: string, change: Change): Gain {
  const now = pagesPerSecond(facts.sums);
  const then = predictRate(facts, change);
  const eta = secondsLeft(remaining, then, facts.hosts, change);
  return {
    change: text,
    gainPercent: now > 0 ? Math.round((then / now - 1) * 1_000) / 10 : 0,
    etaSeconds: eta === null ? null : Math.round(eta),
  };
}

/** Twice as many workers, twice the rate of the critical host, and twice as much of what limits. */
function usualChanges(
  { workers }: RunFacts,
  limiting: Limit | null,
  critical: HostBacklog | undefined,
): { text: string; change: Change }[] {
  const more = Math.max(1, workers);
  const changes: { text: string; change: Change }[] = [
    { text: `workers=+${more}`, change: { kind: 'workers', workers: workers + more } },
  ];
  if (critical && critical.gapMs > 0) {
    const rate = round(2 * askedRate(critical));
    changes.push({
      text: `rate:${critical.host}=${rate}`,
      change: { kind: 'rate', host: critical.host, rate },
    });
  }
  if (critical && limiting === 'hostParallelism') {
    const { host } = critical;
    const parallel = critical.parallel * 2;
    changes.push({ text: `parallel:${host}=${parallel}`, change: { kind: 'parallel', host, parallel } });
  }
  const isState = limiting !== null && limiting !== 'workers' && !NO_OWN_CHANGE.has(limiting);
  if (isState)
    changes.push({ text: `${limiting}=2x`, change: { kind: 'speed', state: limiting, factor: 2 } });
  return changes;
}

const NO_OWN_CHANGE: ReadonlySet<Limit> = new Set(['hostGap', 'hostParallelism', 'noWork', 'budget']);

/** As people set it: what is granted keeps a little away from it. */
function askedRate({ gapMs }: HostBacklog): number {
  return 1_000 / unguardedGapMs(gapMs);
}

function round(value: number): number {
  return Number(value.toPrecision(3));
}

interface Findings {
  shares: Explanation['shares'];
  limiting: Limit | null;
  critical: HostBacklog | undefined;
  gains: Gain[];
  changes: readonly { change: Change }[];
  eta: TimeLeft | null;
}

/** The states in words, for lists. */
export const NAMES: Record<SlotState, string> = {
  network: 'network: waiting for answers of sites',
  cpu: 'cpu: workers compute',
  browser: 'browser: rendering',
  archive: 'archive: storing pages and media',
  report: 'report: on the way to the coordinator',
  coldStart: 'cold start: waiting for workers to begin',
  hostGap: 'idle: host gap',
  hostParallelism: 'idle: host parallelism',
  retryBackoff: 'idle: retry backoff',
  robots: 'idle: robots.txt',
  proxy: 'idle: proxy',
  browserRoom: 'idle: browser room',
  source: 'idle: source',
  store: 'idle: store',
  budget: 'idle: budget',
  noWork: 'idle: no work',
};

/** What the slots do most of the time, in words that go after a share. */
const DOES: Record<Limit, string> = {
  workers: 'waits for answers of sites',
  network: 'waits for answers of sites',
  cpu: 'is computing by workers',
  browser: 'is rendering in browsers',
  archive: 'waits until pages are stored',
  report: 'waits for reports',
  coldStart: 'waits for workers to start',
  hostGap: 'waits for the rates of hosts',
  hostParallelism: 'waits for hosts that have enough requests under way',
  retryBackoff: 'waits to try again after failures',
  robots: 'waits for robots.txt',
  proxy: 'waits for a usable proxy',
  browserRoom: 'waits for a free browser',
  source: 'waits for the source',
  store: 'waits for the store',
  budget: 'is kept back by the limits of the job',
  noWork: 'has nothing left to start',
};

function sentenceOf(input: ExplainInput, facts: RunFacts, found: Findings): string {
  const { eta } = found;
  const parts = [causeOf(found)];
  found.gains.forEach((gain, index) => {
    parts.push(
      `${changeText(found.changes[index]!.change, facts, found)}: ${gainText(gain, eta?.seconds ?? null)}.`,
    );
  });
  if (eta) {
    const left = input.isSourceDone ? 'Done' : 'What is known is done';
    parts.push(`${left} in about ${duration(eta.seconds)} (${duration(eta.low)} to ${duration(eta.high)}).`);
  }
  return parts.join(' ');
}

function causeOf({ shares, limiting, critical }: Findings): string {
  if (limiting === null) return 'Nothing has been measured yet.';
  if (limiting === 'budget') return 'The limits of the job allow no more.';
  const own = limiting === 'workers' ? (['network', 'browser', 'report'] as const) : [limiting];
  const share = own.reduce((sum, state) => sum + (shares[state] ?? 0), 0);
  const percent = `${Math.round(share)} %`;
  if (!critical || (limiting !== 'hostGap' && limiting !== 'hostParallelism'))
    return `${percent} ${DOES[limiting]}.`;
  const pace =
    limiting === 'hostGap' && critical.gapMs > 0
      ? `${round(askedRate(critical))}/s`
      : `${critical.parallel} at once`;
  return `${percent} waits for ${critical.host} (${pace}).`;
}

function changeText(change: Change, { workers }: RunFacts, { critical }: Findings): string {
  const at = (host: string) => (host === critical?.host ? 'there' : `for ${host}`);
  if (change.kind === 'workers') {
    const more = change.workers - workers;
    const count = `${Math.abs(more)} ${more < 0 ? 'fewer' : 'more'} worker`;
    return `${count}${Math.abs(more) === 1 ? '' : 's'}`;
  }
  if (change.kind === 'rate') return `A rate of ${round(change.rate)}/s ${at(change.host)}`;
  if (change.kind === 'parallel') return `${change.parallel} requests at once ${at(change.host)}`;
  const factor = change.factor === 2 ? 'twice' : `${round(change.factor)} times`;
  return `${FASTER[change.state]} ${factor} as ${MANY.has(change.state) ? 'many' : 'fast'}`;
}

const MANY: ReadonlySet<SlotState> = new Set(['proxy', 'browserRoom', 'budget', 'hostParallelism']);

/** What can be as fast, or as many. */
const FASTER: Record<SlotState, string> = {
  network: 'Sites',
  cpu: 'Computing',
  browser: 'Rendering',
  archive: 'Storage of pages',
  report: 'Reports',
  coldStart: 'Starts of workers',
  hostGap: 'Hosts',
  hostParallelism: 'Requests at once',
  retryBackoff: 'Retries',
  robots: 'Answers for robots.txt',
  proxy: 'Proxies',
  browserRoom: 'Browsers',
  source: 'The source',
  store: 'The store',
  budget: 'Pages allowed,',
  noWork: 'Work',
};

/** The time that it saves, where that is known and worth saying; the rate otherwise. */
function gainText({ gainPercent, etaSeconds }: Gain, eta: number | null): string {
  const sign = gainPercent < 0 ? '' : '+';
  const percent = `${sign}${Math.round(gainPercent)} %`;
  if (eta === null || etaSeconds === null) return percent;
  const saved = eta - etaSeconds;
  return Math.abs(saved) < 60 || Math.abs(saved) < eta / 100
    ? percent
    : `${duration(Math.abs(saved))} ${saved > 0 ? 'earlier' : 'later'}`;
}

/** How far the rate of the last minutes has varied says how far the rest may. */
export function bandOf(seconds: number, rates: readonly number[]): { low: number; high: number } {
  const spread = spreadOf(rates);
  return { low: seconds / (1 + spread), high: seconds / (1 - spread) };
}

const SPREAD_MIN = 0.1;
const SPREAD_MAX = 0.75;
const SPREAD_UNKNOWN = 0.5;

/** 90 % of the means of as many steps are within this share of the true one. */
function spreadOf(rates: readonly number[]): number {
  if (rates.length < 3) return SPREAD_UNKNOWN;
  const mean = rates.reduce((sum, rate) => sum + rate, 0) / rates.length;
  if (mean <= 0) return SPREAD_UNKNOWN;
  const variance = rates.reduce((sum, rate) => sum + (rate - mean) ** 2, 0) / (rates.length - 1);
  const spread = (1.64 * Math.sqrt(variance)) / mean / Math.sqrt(rates.length);
  return Math.min(SPREAD_MAX, Math.max(SPREAD_MIN, spread));
}

/** `40 s`, `12 min`, `2.1 h`, `3.4 days` */
function duration(seconds: number): string {
  if (seconds < 90) return `${Math.round(seconds)} s`;
  if (seconds < 5_400) return `${Math.round(seconds / 60)} min`;
  if (seconds < 48 * 3_600) return `${(seconds / 3_600).toFixed(1)} h`;
  return `${(seconds / 86_400).toFixed(1)} days`;
}
