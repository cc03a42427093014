import { openEscalationPolicy, SCOUTS } from '../../../src/coordinator/escalation/escalation-policy.ts';
import type { BatchTask } from '../../../src/core/batch/batch.ts';
import type { Outcome } from '../../../src/core/batch/outcome.ts';
import { attemptDollars } from '../../../src/core/cost/attempt-cost.ts';
import { PRICES_DEFAULT, type Prices } from '../../../src/core/cost/cost.ts';
import type { LEVEL_CHOOSING } from '../../../src/core/escalation/escalation.ts';
import { pageOf, specOf, T0, traceOf } from '../../support/fixtures.ts';
import { randomOf } from '../arena/hosts.ts';
import { LEVELS, openSite, ROUTE, SITE_KINDS, type Site, type Template } from './sites.ts';

/** The policy of a run against an oracle that knows every chance and every price, at simulated sites. */

export interface SiteResult {
  kind: string;
  seed: number;
  /** Dollars for the first half of the pages, and for the second. */
  cheapest: Halves;
  lowest: Halves;
  oracle: Halves;
  /** Dollars that exploring cost, and pages that were given up. */
  explored: number;
  lost: number;
  lostByOracle: number;
}

interface Halves {
  first: number;
  second: number;
}

const HOST = 'site.example';
const BATCH_TASKS = 20;
const BATCH_MS = 5_000;
const ATTEMPTS = 4;

export function competeAtSite(kind: string, seed: number, pages: number): SiteResult {
  const site = openSite(kind, seed);
  const { dollars, explored, lost } = runPolicy(site, 'cheapest', seed, pages);
  const oracle = runOracle(site, pages);
  return {
    ...{ kind, seed, explored, lost, cheapest: dollars },
    lowest: runPolicy(site, 'lowest', seed, pages).dollars,
    oracle: oracle.dollars,
    lostByOracle: oracle.lost,
  };
}

export function* sitesOf(count: number, seed: number): Iterable<{ kind: string; seed: number }> {
  const kinds = Object.keys(SITE_KINDS);
  for (let index = 0; index < count; index++)
    yield { kind: kinds[index % kinds.length]!, seed: seed + index * 7_919 };
}

function pricesOf({ prices }: Site): Prices {
  return { ...PRICES_DEFAULT, ...prices };
}

function runPolicy(
  site: Site,
  choose: (typeof LEVEL_CHOOSING)[number],
  seed: number,
  pages: number,
): { dollars: Halves; explored: number; lost: number } {
  const spec = specOf({
    routes: [{ ...ROUTE, escalate: [...ROUTE.escalate] }],
    proxies: { pools: { pool: { from: { list: ['http://proxy.example:8080'] } } } },
    escalation: { choose, exploreDollars: 1_000 },
    retry: { attempts: ATTEMPTS },
  });
  const policy = openEscalationPolicy(spec, 'job', randomOf(seed + 5), pricesOf(site))!;
  const dollars: Halves = { first: 0, second: 0 };
  let lost = 0;
  const waiting: BatchTask[] = [];
  let next = 0;
  for (let now = T0; next < pages || waiting.length > 0; now += BATCH_MS) {
    const size = policy.isUnsure(HOST) ? SCOUTS : BATCH_TASKS;
    while (waiting.length < size && next < pages) waiting.push(taskOf(site, next++));
    const tasks = waiting.splice(0, size);
    policy.assign({ tasks, permits: [{ host: HOST }] }, now);
    const done = tasks.map((task) => {
      const { level } = task.fetchMethod!;
      const answer = site.attempt(task.id, levelOf(choose, level), task.attempt);
      dollars[task.id < pages / 2 ? 'first' : 'second'] += costOf(site, levelOf(choose, level), answer);
      return { task, host: HOST, outcome: outcomeOf(task, answer) };
    });
    const escalating = policy.learn(done, now);
    for (const { task, outcome } of done) {
      if (outcome.kind !== 'failed') continue;
      if (escalating.has(task.id) || task.attempt < ATTEMPTS)
        waiting.push({ ...task, attempt: task.attempt + 1 });
      else lost++;
    }
  }
  const money = policy.takeChanges().find(({ template }) => template === '@explored')?.stats as
    | { explored: number }
    | undefined;
  return { dollars, explored: money?.explored ?? 0, lost };
}

/** Without the comparison of costs, the level of a browser without a proxy is left out. */
function levelOf(choose: (typeof LEVEL_CHOOSING)[number], level: number): number {
  const left = LEVELS.findIndex(({ fetcher, pool }) => fetcher === 'browser' && pool === null);
  return choose === 'cheapest' || level < left ? level : level + 1;
}

function taskOf(site: Site, page: number): BatchTask {
  return {
    ...{
      id: page,
      url: `https://${HOST}${site.templateOf(page).path}${page}`,
      permit: 0,
      depth: 0,
      route: null,
    },
    ...{ attempt: 1, hops: 0, meta: null, lastVisit: null },
  };
}

function outcomeOf({ id }: BatchTask, answer: ReturnType<Site['attempt']>): Outcome {
  const { code, bytes, durationMs } = answer;
  const trace = traceOf({
    httpStatus: code === null || code === 'script-only' ? 200 : 403,
    bytes,
    durationMs,
  });
  if (code === null)
    return { kind: 'fetched', taskId: id, page: pageOf(), links: [], records: [], shows: [], trace };
  return { kind: 'failed', taskId: id, code, detail: '', page: null, retryAfterMs: null, trace };
}

function costOf(
  site: Site,
  level: number,
  { bytes, durationMs }: { bytes: number; durationMs: number },
): number {
  const { fetcher, pool } = LEVELS[level]!;
  return attemptDollars({ fetcher, isProxied: pool !== null, bytes, durationMs, credits: 1 }, pricesOf(site));
}

/**
 * Each attempt takes the level with the lowest cost per success, given what failed for the page before. A page has as many
 * attempts as in a run, and the last of them takes the surest level: whoever gives pages up pays less.
 */
function runOracle(site: Site, pages: number): { dollars: Halves; lost: number } {
  const dollars: Halves = { first: 0, second: 0 };
  let lost = 0;
  const attempts = 2 * ATTEMPTS + LEVELS.length;
  for (let page = 0; page < pages; page++) {
    const failures = new Map<number, number>();
    let needsScripts = false;
    let isBrought = false;
    for (let attempt = 1; attempt <= attempts && !isBrought; attempt++) {
      const options = oracleOptions(site, site.templateOf(page), failures, needsScripts);
      const { level } = attempt < attempts ? lowest(options, costPerSuccess) : surest(options);
      const answer = site.attempt(page, level, attempt);
      dollars[page < pages / 2 ? 'first' : 'second'] += costOf(site, level, answer);
      if (answer.code === null) isBrought = true;
      else if (answer.code === 'script-only') needsScripts = true;
      else failures.set(level, (failures.get(level) ?? 0) + 1);
    }
    if (!isBrought) lost++;
  }
  return { dollars, lost };
}

interface OracleOption {
  level: number;
  /** That the next attempt brings the page. */
  chance: number;
  /** Of an attempt, on average. */
  dollars: number;
}

function oracleOptions(
  site: Site,
  template: Template,
  failures: ReadonlyMap<number, number>,
  needsScripts: boolean,
): OracleOption[] {
  return LEVELS.map(({ level, fetcher }) => {
    const { works, luck } = template.levels[level]!;
    const unlucky = (1 - luck) ** (failures.get(level) ?? 0);
    const letIn = ((works * unlucky) / (1 - works + works * unlucky || 1)) * luck;
    const rendersNot = fetcher !== 'browser' && fetcher !== 'api';
    const plain = rendersNot ? (needsScripts ? 0 : 1 - template.scripts) : 1;
    const size = fetcher === 'browser' ? template.browserBytes : template.bytes;
    // A refusal is small: what an attempt costs depends on whether it succeeds.
    const bytes = letIn * size + (1 - letIn) * 5_000;
    const dollars = costOf(site, level, { bytes, durationMs: template.browserMs });
    return { level, chance: letIn * plain, dollars };
  });
}

function costPerSuccess({ dollars, chance }: OracleOption): number {
  return dollars / chance;
}

/** Of those that are nearly as sure as the surest, the cheapest. */
function surest(options: readonly OracleOption[]): OracleOption {
  const chanceMost = Math.max(...options.map(({ chance }) => chance));
  return lowest(
    options.filter(({ chance }) => chance >= chanceMost * 0.9),
    ({ dollars }) => dollars,
  );
}

function lowest(options: readonly OracleOption[], of: (option: OracleOption) => number): OracleOption {
  return options.reduce((best, option) => (of(option) < of(best) ? option : best));
}
