import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { seine, startSeine, temporaryFolder } from '../support/seine-process.ts';
import { type JudgedRequest, type SiteProcess, startSiteProcess } from '../support/site-process.ts';

const HOSTS = 50;
const RATE = 5;
const GAP_MS = 1_000 / RATE;
const PAGES_PER_HOST = 70;

let folder: ReturnType<typeof temporaryFolder>;
let site: SiteProcess;

beforeEach(async () => {
  folder = temporaryFolder();
  site = await startSiteProcess();
});

afterEach(async () => {
  await site.close();
  folder.remove();
});

/** 127.0.x.y: as many hosts as one wants, all on this machine. */
const hostOf = (index: number) => `127.0.${1 + Math.floor(index / 25)}.${1 + (index % 25)}:${site.port}`;

test(`${HOSTS} hosts, 3 threads, restarts: no gap under ${GAP_MS} ms, at least 90 % of the rate`, async () => {
  const list = join(folder.path, 'urls.txt');
  const urls: string[] = [];
  for (let page = 0; page < PAGES_PER_HOST; page++) {
    for (let host = 0; host < HOSTS; host++) urls.push(`http://${hostOf(host)}/page/${page}.html`);
  }
  writeFileSync(list, urls.join('\n'));
  // The rate itself is measured here; how it is approached is another test's matter.
  const job = { sources: [list], allowPrivate: true, politeness: { rate: RATE, adaptive: false } };
  const jobFile = join(folder.path, 'polite.json');
  writeFileSync(jobFile, JSON.stringify(job));
  const args = ['run', jobFile, '--workers', '3', '--dir', join(folder.path, 'seine'), '--json'];

  // One gentle stop and one kill, each in the middle of the work.
  const segments: number[] = [];
  for (const end of ['SIGTERM', 'SIGKILL'] as const) {
    const run = startSeine(args);
    await site.requests((await site.log()).length + HOSTS * 20);
    if (end === 'SIGTERM') run.child.kill('SIGTERM');
    else await run.killTree();
    const { code } = await run.finished;
    expect(code).toBe(end === 'SIGTERM' ? 130 : null);
    segments.push((await site.log()).length);
  }
  const last = await seine(args);
  expect(last.stderr).toBe('');
  expect(last.code).toBe(0);
  segments.push((await site.log()).length);

  const log = await site.log();
  const smallest = smallestGaps(log);
  expect(smallest.size).toBe(HOSTS);
  expect(Math.min(...smallest.values())).toBeGreaterThanOrEqual(GAP_MS);

  // Robots rules were read once per host, over all restarts but the one that a kill may have cut off.
  const rates = achievedRates(log, segments);
  console.log(JSON.stringify({ smallestGapMs: Math.min(...smallest.values()), rates }));
  for (const rate of rates) expect(rate).toBeGreaterThanOrEqual(0.9 * RATE);
}, 120_000);

/** The least time that can have passed between two requests of a host, as far as the judge can tell. */
function smallestGaps(log: JudgedRequest[]): Map<string, number> {
  const lastAt = new Map<string, number>();
  const smallest = new Map<string, number>();
  for (const { at, noEarlierThan, host } of log) {
    const before = lastAt.get(host);
    if (before !== undefined) {
      smallest.set(host, Math.min(smallest.get(host) ?? Number.POSITIVE_INFINITY, at - before));
    }
    lastAt.set(host, noEarlierThan);
  }
  return smallest;
}

/** Requests per second and host, from the first to the last request of a host, the mean over hosts, for each run. */
function achievedRates(log: JudgedRequest[], segments: number[]): number[] {
  return segments.map((end, index) => {
    const byHost = new Map<string, number[]>();
    for (const { at, host } of log.slice(segments[index - 1] ?? 0, end)) {
      byHost.set(host, [...(byHost.get(host) ?? []), at]);
    }
    const rates = [...byHost.values()]
      .filter((times) => times.length > 3)
      .map((times) => ((times.length - 1) / (times.at(-1)! - times[0]!)) * 1_000);
    return rates.reduce((sum, rate) => sum + rate, 0) / rates.length;
  });
}
