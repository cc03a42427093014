import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CASES } from '../../../src/sites/hostile/behaviours.ts';
import { HOSTILE_JOB } from '../hostile/hostile-setup.ts';
import { startSeine, temporaryFolder } from '../seine-process.ts';
import { startSiteProcess } from '../sites/site-process.ts';

/** Silence, drips and stalls: what holds a worker up for longest. */
const STALLING = CASES.filter(({ ending }) => /timeout$/.test(ending));

/** URLs of that many hosts that all stall; the hostile web listens on all loopback addresses. */
export function stallingUrls(hostileUrl: string, hosts: number): string[] {
  const { port } = new URL(hostileUrl);
  return Array.from({ length: hosts }, (_, host) =>
    STALLING.map(({ base }) => `http://127.0.1.${host + 1}:${port}${base}`),
  ).flat();
}

interface GoodRun {
  /** Requests of the good host. */
  requests: number;
  /** A second, from the first to the last of them. */
  rate: number;
  /** The run still had others to ask when the good host was done. */
  othersLeft: boolean;
}

/** A run over a good host and these others; it is ended once the good one has been asked for all its pages. */
export async function crawlGoodHost(options: {
  pages: number;
  rate: number;
  others: readonly string[];
}): Promise<GoodRun> {
  const { pages, rate, others } = options;
  const folder = temporaryFolder();
  const site = await startSiteProcess();
  try {
    const urls = Array.from({ length: pages }, (_, page) => `http://127.0.0.1:${site.port}/page/${page}`);
    const list = join(folder.path, 'urls.txt');
    writeFileSync(list, [...others, ...urls].join('\n'));
    const job = {
      ...HOSTILE_JOB,
      name: 'neighbours',
      sources: [{ file: list }],
      follow: false,
      routes: [],
      // One host may not be asked faster than this; the time of each answer is its own.
      politeness: { rate, parallel: 8, adaptive: false, robots: false },
      retry: { attempts: 2, baseMs: 100, maxMs: 500 },
      breaker: { jobBatches: 1_000 },
    };
    const file = join(folder.path, 'job.json');
    writeFileSync(file, JSON.stringify(job));
    const run = startSeine(['run', file, '--workers', '2', '--dir', join(folder.path, 'seine'), '--json']);
    const ended = run.finished.then(() => false);
    const othersLeft = await Promise.race([site.requests(pages).then(() => true), ended]);
    // The others are far from done, and nobody waits for them.
    await run.killTree();
    const times = (await site.log()).map(({ at }) => at);
    return {
      requests: times.length,
      rate: ((times.length - 1) / (times.at(-1)! - times[0]!)) * 1_000,
      othersLeft,
    };
  } finally {
    await site.close();
    folder.remove();
  }
}
