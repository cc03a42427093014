import { createProgress } from '../../src/coordinator/reports/progress.ts';
import { detectBlock } from '../../src/core/blocking/block-detection.ts';
import { renderDashboard } from '../../src/tui/render-dashboard.ts';
import { batchOf, reportOf, START } from '../../test/support/coordinator/progress-reports.ts';
import { viewOf } from '../../test/support/coordinator/run-view.ts';
import { cpuNow } from '../../test/support/cpu-time.ts';
import { startHostileProcess } from '../../test/support/hostile/hostile-process.ts';
import { medianKept, type Throughput } from '../../test/support/hostile/hostile-visits.ts';
import { runAdaptively } from '../../test/support/runs/adaptive-run.ts';
import { openMixedProxies, throughputOf } from '../../test/support/runs/mixed-proxies.ts';
import { crawlGoodHost, stallingUrls } from '../../test/support/runs/neighbours-run.ts';
import { closeAll, openSite, run } from '../../test/support/runs/proxied-run.ts';
import { readOptions } from '../read-options.ts';

interface Figure {
  what: string;
  bar: string;
  seen: string;
  isMet: boolean;
}

const percent = (share: number) => `${(share * 100).toFixed(1)} %`;
const atLeast = (what: string, share: number, bar: number): Figure => ({
  what,
  bar: `≥ ${percent(bar)}`,
  seen: percent(share),
  isMet: share >= bar,
});

/** A host that refuses more than 5 requests a second, under a rate of 20. */
async function adaptive(): Promise<Figure[]> {
  const limit = 5;
  /** By then the limit has been met from above a few times, and the pace keeps just below it. */
  const settledMs = 40_000;
  const watchedMs = 20_000;
  const { log } = await runAdaptively({
    limit,
    cap: 20,
    pages: 600,
    isEnough: (seen) => seen.at(-1)!.at > seen[0]!.at + settledMs + watchedMs,
  });
  const settled = log.filter(({ at }) => at > log[0]!.at + settledMs);
  const refused = settled.filter((entry) => entry.refused).length;
  const rate = ((settled.length - refused) / watchedMs) * 1_000;
  const share = refused / settled.length;
  return [
    atLeast('of its limit, a host that refuses more than 5 a second is asked for', rate / limit, 0.8),
    { what: 'of those requests are refused', bar: '< 1.0 %', seen: percent(share), isMet: share < 0.01 },
  ];
}

/** A good host in runs without and with 40 hosts that stall, in turns: what else the machine does changes. */
async function neighbours(): Promise<Figure[]> {
  const hostile = await startHostileProcess({ host: '0.0.0.0' });
  const others = stallingUrls(hostile.url, 40);
  const facts: Throughput = { alone: [], beside: [] };
  for (let round = 1; round <= 5; round++) {
    facts.alone.push((await crawlGoodHost({ pages: 60, rate: 20, others: [] })).rate);
    facts.beside.push((await crawlGoodHost({ pages: 60, rate: 20, others })).rate);
  }
  await hostile.close();
  return [atLeast('of its throughput, a good host keeps beside 40 that stall', medianKept(facts), 0.9)];
}

async function proxies(): Promise<Figure[]> {
  const { good, all, banned } = await openMixedProxies();
  const plan = { pages: 800, job: { politeness: { rate: 100, parallel: 16, adaptive: false } } };
  const alone = await openSite();
  await run({ ...plan, site: alone, list: good });
  const mixed = await openSite();
  for (const address of banned) mixed.banned.add(address);
  await run({ ...plan, site: mixed, list: all });
  const share = throughputOf(mixed) / throughputOf(alone);
  await closeAll();
  return [
    atLeast('of the throughput of five good proxies, with three dead and two banned beside them', share, 0.9),
  ];
}

/** In microseconds of this thread, after as many rounds to warm up. Of all at once: its clock may tick in centiseconds. */
function microsOf(rounds: number, work: (round: number) => void): number {
  for (let round = 0; round < rounds; round++) work(round);
  const from = cpuNow();
  for (let round = rounds; round < 2 * rounds; round++) work(round);
  return ((cpuNow() - from) * 1_000) / rounds;
}

async function costs(): Promise<Figure[]> {
  const cost = (what: string, micros: number, bar: number): Figure => ({
    what,
    bar: `< ${bar} µs`,
    seen: `${micros.toFixed(2)} µs`,
    isMet: micros < bar,
  });
  const body = Buffer.from(
    `<html><head><title>Product 7 | Shop</title></head><body>${'<p>A robot, a human, a captcha. '.repeat(800)}`,
  );
  const look = microsOf(500_000, () => void detectBlock({ status: 200, rawHeaders: [], body, isHtml: true }));
  const progress = createProgress({ startedAt: START });
  const batches = Array.from({ length: 20_000 }, (_, i) => batchOf(i, ['a.test', 'b.test', 'c.test'], 60));
  const reports = batches.map((batch, i) =>
    reportOf(batch, { startedAt: START + i, endedAt: START + i + 500 }),
  );
  for (const [i, batch] of batches.entries()) progress.onDispatch(batch, START + i);
  const report = microsOf(10_000, (i) =>
    progress.onDelivery({ kind: 'report', report: reports[i]! }, START + i + 500),
  );
  const view = viewOf({
    hosts: Array.from({ length: 20 }, () => viewOf().hosts[0]!),
    history: Array(240).fill(3),
  });
  const frame = microsOf(3_000, () => void renderDashboard(view, { columns: 120, rows: 50, color: true }));
  return [
    cost('to see that an ordinary page of 24 KB is no block page', look, 5),
    cost('for the progress of a report of 60 tasks', report, 50),
    cost('for a frame of the dashboard', frame, 1_000),
  ];
}

const PARTS: Record<string, () => Promise<Figure[]>> = { adaptive, neighbours, proxies, costs };
const { words } = readOptions({
  start: 'npm run speeds --',
  about: `Rates, shares and costs that a busy machine spoils, which is why no test asks for them. Exits with 1 when a bar is not
met; give it a machine for itself.`,
  words: { shown: 'part', known: Object.keys(PARTS) },
});
const names = words.length > 0 ? words : Object.keys(PARTS);
process.stdout.write('| seen | bar | what |\n|--:|--:|---|\n');
for (const name of names)
  for (const { what, bar, seen, isMet } of await PARTS[name]!()) {
    process.stdout.write(`| ${seen} | ${bar} | ${what}${isMet ? '' : ' (**not met**)'} |\n`);
    if (!isMet) process.exitCode = 1;
  }
