import { readFileSync, writeFileSync } from 'node:fs';
import { setTimeout as pause } from 'node:timers/promises';
import type { Outcome } from '../../../src/core/batch/outcome.ts';
import { failureKind } from '../../../src/core/failures.ts';
import type { LastVisit } from '../../../src/core/model.ts';
import type { Ending } from '../../../src/sites/hostile/behaviour.ts';
import { CASES, type ListedCase, pathsOf } from '../../../src/sites/hostile/behaviours.ts';
import { BUDGET_MS, type HostileSetup } from './hostile-setup.ts';

/** What became of one case, measured in the process of the worker. */
export interface CaseFacts {
  base: string;
  /** Of each path of the case; and of a second visit, where that is the point. */
  endings: string[];
  details: string[];
  again: string | null;
  titles: string[];
  links: number;
  /** The longest time that one batch took. */
  tookMs: number;
  /** Of the process, above what it had before the first visit. */
  peakMb: number;
}

const VISITS_MAX = 16;

export async function visitCase(
  setup: HostileSetup,
  { url, base, media, warmMb }: { url: string; base: string; media: boolean; warmMb: number },
): Promise<CaseFacts> {
  const each = CASES.find((candidate) => candidate.base === base)!;
  const urls = pathsOf(each).map((path) => url + path);
  resetPeak();
  const visited = await Promise.all(
    urls.map((page) => visitUrl(setup, page, { each, media, lastVisit: null })),
  );
  const first = visited[0]!.outcome;
  let again: string | null = null;
  if (each.again !== undefined && first.kind === 'fetched') {
    const { etag, lastModified, sha256 } = first.page;
    const lastVisit = { etag, lastModified, sha256 };
    again = endingOf((await visitUrl(setup, urls[0]!, { each, media, lastVisit })).outcome);
  }
  return {
    base,
    endings: visited.map(({ outcome }) => endingOf(outcome)),
    details: visited.map(({ outcome }) => (outcome.kind === 'failed' ? outcome.detail : '')),
    again,
    titles: visited.map(({ outcome }) => titleOf(outcome)),
    links: Math.max(...visited.map(({ outcome }) => (outcome.kind === 'fetched' ? outcome.links.length : 0))),
    tookMs: Math.max(...visited.map(({ tookMs }) => tookMs)),
    peakMb: Math.max(0, peakMb() - warmMb),
  };
}

/** As the coordinator would: redirects are followed, and trouble is tried again where it ought to pass. */
async function visitUrl(
  setup: HostileSetup,
  start: string,
  options: { each: ListedCase; media: boolean; lastVisit: LastVisit | null },
): Promise<{ outcome: Outcome; tookMs: number }> {
  const { each, media, lastVisit } = options;
  const patient = ![each.ending, ...(each.or ?? [])].some((ending) => /timeout$/.test(ending));
  let url = start;
  let hops = 0;
  let tookMs = 0;
  for (let visits = 1; ; visits++) {
    const startedAt = performance.now();
    const outcome = (
      await setup.run([url], { kind: media ? 'media' : 'page', patient, task: { hops, lastVisit } })
    )[0]!;
    tookMs = Math.max(tookMs, performance.now() - startedAt);
    if (visits === VISITS_MAX) return { outcome, tookMs };
    if (outcome.kind === 'redirected') {
      url = outcome.to;
      hops++;
      continue;
    }
    const passes = outcome.kind === 'failed' && failureKind(outcome.code).retry !== 'permanent';
    if (!passes || each.ending !== 'fetched') return { outcome, tookMs };
    await pause(
      Math.max(outcome.retryAfterMs ?? 0, Math.min(1_000, 50 * 2 ** visits) * (0.5 + Math.random())),
    );
  }
}

export function endingOf(outcome: Outcome): string {
  return outcome.kind === 'failed' || outcome.kind === 'skipped' ? outcome.code : outcome.kind;
}

function titleOf(outcome: Outcome): string {
  if (outcome.kind !== 'fetched' || outcome.records.length === 0) return '';
  return String((JSON.parse(outcome.records[0]!.json) as { title: unknown }).title);
}

/** The peak can be asked for anew only on Linux; elsewhere it is that of the whole life. */
function resetPeak(): void {
  try {
    writeFileSync('/proc/self/clear_refs', '5');
  } catch {
    // It then counts what came before, too.
  }
}

function peakMb(): number {
  try {
    const line = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8'));
    if (line) return Number(line[1]) / 1024;
  } catch {
    // Not Linux.
  }
  return process.resourceUsage().maxRSS / 1024;
}

/** What is wrong with the way a case ended; empty when nothing is. */
export function complaintsOf(
  each: ListedCase,
  facts: CaseFacts,
  bounds: { lateMs: number; peakMb: number },
): string[] {
  const wanted: Ending[] = [each.ending, ...(each.or ?? [])];
  const complaints = facts.endings
    .filter((ending) => !wanted.includes(ending as Ending))
    .map((ending, index) => `ended as ${ending} (${facts.details[index]}), not ${wanted.join(' or ')}`);
  if (facts.again !== (each.again ?? null)) complaints.push(`the second visit ended as ${facts.again}`);
  if (facts.tookMs > BUDGET_MS + bounds.lateMs) complaints.push(`took ${Math.round(facts.tookMs)} ms`);
  if (facts.peakMb > bounds.peakMb) complaints.push(`took ${Math.round(facts.peakMb)} MB`);
  return complaints;
}

export interface Throughput {
  /** Pages a second of the good host, without and with the hostile one beside it, round by round. */
  alone: number[];
  beside: number[];
}

/** What hosts get by default: 4 requests a second. The good one gets more, so that it has something to lose. */
const HOSTILE_GAP_MS = 250;
const GOOD_GAP_MS = 10;

/** Rounds with and without the hostile web take turns, as the load of the machine changes; each has its share of it. */
export async function measureThroughput(
  setup: HostileSetup,
  { good, hostile, bases, pages }: { good: string; hostile: string; bases: string[]; pages: number },
): Promise<Throughput> {
  const goodUrls = Array.from({ length: pages }, (_, index) => `${good}/48-slow/${index}?ms=20`);
  const hostileUrls = CASES.filter(({ base }) => bases.includes(base)).map(
    (each) => hostile + pathsOf(each)[0]!,
  );
  const measure = async () => {
    const startedAt = performance.now();
    const outcomes = await setup.run(goodUrls, { kind: 'good', budgetMs: 60_000, gapMs: GOOD_GAP_MS });
    const failed = outcomes.find(({ kind }) => kind !== 'fetched');
    if (failed) throw new Error(`the good host failed: ${JSON.stringify(failed)}`);
    return (pages / (performance.now() - startedAt)) * 1_000;
  };
  const perRound = Math.ceil((pages * GOOD_GAP_MS) / HOSTILE_GAP_MS);
  const facts: Throughput = { alone: [], beside: [] };
  for (let at = 0; at < hostileUrls.length; at += perRound) {
    if (facts.beside.length % 2 === 0) facts.alone.push(await measure());
    const share = hostileUrls.slice(at, at + perRound);
    const sweep = setup.run(share, { gapMs: HOSTILE_GAP_MS, budgetMs: 60_000 });
    facts.beside.push(await measure());
    await sweep;
  }
  return facts;
}

const meanOf = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;

/** What is left of the good host's throughput, over all rounds together: each met another part of the hostile web. */
export function shareKept({ alone, beside }: Throughput): number {
  return meanOf(beside) / meanOf(alone);
}

/** The same where all rounds are alike: the median leaves out those that other work on the machine disturbed. */
export function medianKept({ alone, beside }: Throughput): number {
  const shares = beside.map((rate, index) => rate / alone[index]!).sort((a, b) => a - b);
  return shares[Math.floor(shares.length / 2)]!;
}
