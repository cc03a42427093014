import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { lastJson, startSeine, temporaryFolder } from '../seine-process.ts';
import { type JudgedRequest, startSiteProcess } from '../sites/site-process.ts';

interface PoliteRun {
  hosts: number;
  workers: number;
  /** Requests per second and host. */
  rate: number;
  pagesPerHost: number;
  /** How the runs before the last one end, each in the middle of its work: as many requests of each host are sent first. */
  ends: readonly ('SIGTERM' | 'SIGKILL')[];
  requestsPerRun: number;
}

interface PoliteFacts {
  requests: number;
  hostsSeen: number;
  /** As the origin judged it. */
  smallestGapMs: number;
  /** Gaps under the permitted one. */
  tooShort: number;
  /** Requests per second and host of each run, from the first to the last request of a host, the mean over hosts. */
  rates: number[];
  /** Pages that were never asked for. */
  lost: number;
  /** Tasks that ended well, by the last run's own count. */
  done: number;
  /** Hosts whose first request was for something else than robots.txt. */
  withoutRobots: number;
  /** How often a host was asked for its robots.txt, at most. */
  robotsMax: number;
  /** Exit codes of the runs; null after a kill. */
  codes: (number | null)[];
  stderr: string;
}

const ROBOTS = '/robots.txt';

/** Crawls many hosts with stops and kills in between, and lets the origin say how far apart requests were. */
export async function runPolitely(options: PoliteRun): Promise<PoliteFacts> {
  const { hosts, workers, rate, pagesPerHost, ends } = options;
  const folder = temporaryFolder();
  const site = await startSiteProcess();
  try {
    // 127.0.x.y: as many hosts as one wants, all on this machine.
    const hostOf = (index: number) => `127.0.${1 + Math.floor(index / 25)}.${1 + (index % 25)}:${site.port}`;
    const list = join(folder.path, 'urls.txt');
    const urls: string[] = [];
    for (let page = 0; page < pagesPerHost; page++) {
      for (let host = 0; host < hosts; host++) urls.push(`http://${hostOf(host)}/page/${page}.html`);
    }
    writeFileSync(list, urls.join('\n'));
    // The rate itself is measured here; how it is approached is another test's matter.
    const job = { sources: [list], allowPrivate: true, politeness: { rate, adaptive: false } };
    const file = join(folder.path, 'polite.json');
    writeFileSync(file, JSON.stringify(job));
    const dir = join(folder.path, 'seine');
    const args = ['run', file, '--workers', String(workers), '--dir', dir, '--json'];

    const segments: number[] = [];
    const codes: (number | null)[] = [];
    let stderr = '';
    let done = 0;
    for (const end of [...ends, null]) {
      const run = startSeine(args);
      if (end !== null) {
        const enough = site.requests((await site.count()) + hosts * options.requestsPerRun);
        // One that ends by itself sends no more: without this, the test would wait for it until its time is over.
        const ended = run.finished.then(({ code, stderr }) => {
          throw new Error(`a run ended by itself with code ${code}: ${stderr}`);
        });
        await Promise.race([enough, ended]);
        ended.catch(() => {});
      }
      if (end === 'SIGTERM') run.child.kill('SIGTERM');
      else if (end === 'SIGKILL') await run.killTree();
      const finished = await run.finished;
      codes.push(finished.code);
      if (end === null) {
        stderr = finished.stderr;
        done = Number(lastJson(finished).done);
      }
      segments.push(await site.count());
    }
    const log = await site.log();
    const gaps = gapsOf(log);
    const paths = pathsOf(log);
    const asked = new Set(log.map(({ host, path }) => `http://${host}${path}`));
    const smallestGapMs = gaps.reduce((least, gap) => Math.min(least, gap), Number.POSITIVE_INFINITY);
    return {
      requests: log.length,
      hostsSeen: paths.size,
      smallestGapMs,
      tooShort: gaps.filter((gap) => gap < 1_000 / rate).length,
      rates: achievedRates(log, segments),
      lost: urls.filter((url) => !asked.has(url)).length,
      done,
      withoutRobots: [...paths.values()].filter(([first]) => first !== ROBOTS).length,
      robotsMax: Math.max(
        ...[...paths.values()].map((list) => list.filter((path) => path === ROBOTS).length),
      ),
      codes,
      stderr,
    };
  } finally {
    await site.close();
    folder.remove();
  }
}

/** What each host was asked for, in order. */
function pathsOf(log: readonly JudgedRequest[]): Map<string, string[]> {
  const paths = new Map<string, string[]>();
  for (const { host, path } of log) {
    const list = paths.get(host);
    if (list) list.push(path);
    else paths.set(host, [path]);
  }
  return paths;
}

/** The least times that can have passed between two requests of a host, as far as the judge can tell. */
function gapsOf(log: readonly JudgedRequest[]): number[] {
  const lastAt = new Map<string, number>();
  const gaps: number[] = [];
  for (const { at, noEarlierThan, host } of log) {
    const before = lastAt.get(host);
    if (before !== undefined) gaps.push(at - before);
    lastAt.set(host, noEarlierThan);
  }
  return gaps;
}

function achievedRates(log: readonly JudgedRequest[], segments: readonly number[]): number[] {
  return segments.map((end, index) => {
    const byHost = new Map<string, number[]>();
    for (const { at, host } of log.slice(segments[index - 1] ?? 0, end)) {
      const times = byHost.get(host);
      if (times) times.push(at);
      else byHost.set(host, [at]);
    }
    const rates = [...byHost.values()]
      .filter((times) => times.length > 3)
      .map((times) => ((times.length - 1) / (times.at(-1)! - times[0]!)) * 1_000);
    return rates.reduce((sum, rate) => sum + rate, 0) / rates.length;
  });
}
