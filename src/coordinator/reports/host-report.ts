import { createHash } from 'node:crypto';
import { isBanned } from '../../core/bans/bans.ts';
import { type HostProfile, isExpired } from '../../core/calibration/host-profile.ts';
import type { JobSpec } from '../../core/job-schema/job.ts';
import { activeAddresses } from '../../core/pace/address-pace.ts';
import type { HostPace } from '../../core/pace/pace.ts';
import { compileHostLimits, type HostLimits } from '../../core/politeness/host-limits.ts';
import { isOrigin, parseRobots } from '../../core/robots/robots.ts';
import type { HostFacts, RobotsEntry, WaitingTasks } from '../../ports/store.ts';

/** One host of a job: what it is asked, and the proof of how gently. */
export interface HostReportRow {
  host: string;
  state: 'idle' | 'ready' | 'waiting' | 'resting' | 'banned' | 'closed';
  /** In words: what keeps the host from being asked faster. */
  limitedBy: string;
  /** Requests per second that it gets now; null when only parallelism limits. */
  rate: number | null;
  parallel: number;
  ready: number;
  /** Tasks that wait for a later time, and until when the first does. */
  waitingTasks: number;
  waitingUntil: string | null;
  requests: number;
  nextAt: string | null;
  latencyMs: number | null;
  failuresInRow: number;
  lastError: string | null;
  lastErrorAt: string | null;
  /** Least time between two requests that the job, robots.txt and what was learned permit now. */
  permittedGapMs: number;
  smallestGapMs: number | null;
  /** What calibration found, without its evidence; null when the host was never calibrated. */
  calibration: CalibrationSummary | null;
  robots: RobotsSummary[];
  /** There where the job has paces by address: those that reported within ten minutes, the fastest first. */
  addresses?: AddressRow[];
}

/** A worker of the fleet, an environment of Lambda, or `local`. */
interface AddressRow {
  address: string;
  /** Requests per second that it may send, as far as the job's rate for the host allows. */
  rate: number;
  /** What was refused it; null when nothing was. */
  refusedRate: number | null;
  latencyMs: number | null;
  reportedAt: string;
}

interface CalibrationSummary
  extends Pick<HostProfile, 'rate' | 'parallel' | 'batchSize' | 'timeoutMs' | 'refusals'> {
  measuredAt: string;
  expiresAt: string;
  expired: boolean;
}

interface RobotsSummary {
  origin: string;
  /** Of the text as served; null when none could be fetched. */
  sha256: string | null;
  fetchedAt: string;
  rules: number;
  crawlDelayMs: number | null;
  /** The site forbids everything. */
  optedOut: boolean;
  detail: string | null;
}

/** Less than this is the time between two requests, or until the next batch. */
const PAUSE_MS_MIN = 5_000;

type HostReporter = (facts: HostFacts, now: number) => HostReportRow;

/** `reason`: what the whole job waits for. */
export function hostReporter(spec: JobSpec, product: string, reason: string | null = null): HostReporter {
  const limitsOf = compileHostLimits(spec);
  return (facts, now) => {
    const limits = limitsOf(facts.host);
    const pace = isExpired(facts.pace, now) ? null : facts.pace;
    const learned = spec.politeness.adaptive ? pace : null;
    const addresses = spec.politeness.perAddress ? addressRows(learned, limits, now) : null;
    const together = addresses?.length ? addresses.reduce((sum, one) => sum + one.rate, 0) : null;
    const rate = Math.min(limits.rate, together ?? learned?.rate ?? limits.rate);
    const delayMs = Math.max(0, ...facts.robots.map(({ crawlDelayMs }) => crawlDelayMs ?? 0));
    const permittedGapMs = Math.max(delayMs, Number.isFinite(rate) ? 1_000 / rate : 0);
    const state = stateOf(facts, limits, now);
    return {
      host: facts.host,
      state,
      limitedBy: explain(facts, { limits, rate, delayMs, state, now, reason }) + sharing(facts, state),
      rate: permittedGapMs > 0 ? round(1_000 / permittedGapMs) : null,
      parallel: limits.parallel,
      ready: facts.ready,
      waitingTasks: facts.waiting?.count ?? 0,
      waitingUntil: facts.waiting && new Date(facts.waiting.until).toISOString(),
      requests: facts.requests,
      nextAt: facts.nextAt > now ? new Date(facts.nextAt).toISOString() : null,
      latencyMs: facts.pace?.latencyMs == null ? null : Math.round(facts.pace.latencyMs),
      failuresInRow: facts.failuresInRow,
      lastError: facts.lastError && `${facts.lastError.code}: ${facts.lastError.detail}`,
      lastErrorAt: facts.lastError && new Date(facts.lastError.at).toISOString(),
      permittedGapMs: round(permittedGapMs),
      smallestGapMs: facts.smallestGapMs === null ? null : round(facts.smallestGapMs),
      calibration: facts.profile && calibrationOf(facts.profile, now),
      robots: facts.robots.filter(({ origin }) => isOrigin(origin)).map((entry) => summaryOf(entry, product)),
      ...(addresses ? { addresses } : {}),
    };
  };
}

function addressRows(pace: HostPace | null, { rate: cap }: HostLimits, now: number): AddressRow[] {
  const rows = activeAddresses(pace, now).map(([address, { rate, refused, latencyMs, at }]) => ({
    address,
    rate: round(Math.min(cap, rate)),
    refusedRate: refused === null ? null : round(refused),
    latencyMs: latencyMs === null ? null : Math.round(latencyMs),
    reportedAt: new Date(at).toISOString(),
  }));
  return rows.sort((one, other) => other.rate - one.rate || (one.address < other.address ? -1 : 1));
}

function stateOf(facts: HostFacts, { window }: HostLimits, now: number): HostReportRow['state'] {
  if (facts.ready === 0) return facts.waiting ? 'waiting' : 'idle';
  if (window && !window.isOpen(now)) return 'closed';
  if (isBanned(facts.ban)) return 'banned';
  if (facts.nextAt <= now) return 'ready';
  return facts.rests > 0 ? 'resting' : 'waiting';
}

function explain(
  facts: HostFacts,
  about: {
    limits: HostLimits;
    rate: number;
    delayMs: number;
    state: HostReportRow['state'];
    now: number;
    reason: string | null;
  },
): string {
  const { limits, rate, delayMs, state, now, reason } = about;
  if (facts.ready === 0) return facts.waiting ? waitingText(facts.waiting, reason) : 'no tasks waiting';
  if (state === 'closed')
    return `allowed hours: opens at ${new Date(limits.window!.opensAt(now)).toISOString()}`;
  if (state === 'banned')
    return `ban since ${new Date(facts.ban!.since!).toISOString()}: one probe at ${new Date(Math.max(facts.nextAt, now)).toISOString()}`;
  if (state === 'resting')
    return `circuit breaker after ${facts.failuresInRow} failures: one probe at ${new Date(facts.nextAt).toISOString()}`;
  if (state === 'waiting' && facts.lastError && facts.nextAt - now > PAUSE_MS_MIN)
    return `pauses until ${new Date(facts.nextAt).toISOString()} after ${facts.lastError.code}: ${facts.lastError.detail}`;
  if (delayMs > 0 && (!Number.isFinite(rate) || delayMs >= 1_000 / rate))
    return `robots.txt asks for ${delayMs / 1_000} s between requests`;
  if (rate < limits.rate) {
    return facts.pace?.refused == null
      ? 'adaptive rate: still rising, or reduced because of slow or failed responses'
      : `adaptive rate: below ${round(facts.pace.refused)} requests per second, which the host refused`;
  }
  return Number.isFinite(rate)
    ? `job settings: ${rate} requests per second`
    : `job settings: ${limits.parallel} concurrent requests`;
}

/** What tasks wait for where none could run now. One that has not failed waits for a proxy, a browser or robots.txt. */
function waitingText({ count, until, code }: WaitingTasks, reason: string | null): string {
  const tasks = count === 1 ? '1 task waits' : `${count.toLocaleString('en')} tasks wait`;
  const at = new Date(until).toISOString();
  if (code !== null) return `${tasks} to be tried again after ${code}: the next at ${at}`;
  return reason === null
    ? `${tasks} until ${at} for a browser, a proxy or robots.txt`
    : `${tasks}: ${reason}`;
}

/** A host has one limit over all jobs: those that want it take turns. */
function sharing({ sharedWith, ready }: HostFacts, state: HostReportRow['state']): string {
  if (sharedWith.length === 0 || ready === 0 || (state !== 'ready' && state !== 'waiting')) return '';
  return `; in turns with ${sharedWith.join(', ')}`;
}

export function calibrationOf(profile: HostProfile, now: number): CalibrationSummary {
  const { rate, parallel, batchSize, timeoutMs, refusals, measuredAt, expiresAt } = profile;
  return {
    ...{ rate, parallel, batchSize, timeoutMs, refusals },
    measuredAt: new Date(measuredAt).toISOString(),
    expiresAt: new Date(expiresAt).toISOString(),
    expired: expiresAt <= now,
  };
}

function summaryOf(entry: RobotsEntry, product: string): RobotsSummary {
  const rules = parseRobots(entry.text ?? '', product);
  return {
    origin: entry.origin,
    sha256: entry.text === null ? null : createHash('sha256').update(entry.text).digest('hex'),
    fetchedAt: new Date(entry.fetchedAt).toISOString(),
    rules: rules.ruleCount,
    crawlDelayMs: entry.crawlDelayMs,
    optedOut: entry.text !== null && !rules.allows(`${entry.origin}/`) && rules.ruleCount === 1,
    detail: entry.detail,
  };
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
