/** Many jobs over the same hosts: what each of them gets, and what they get together. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Scratch } from '../scratch.ts';
import type { ManyHosts, Request } from './origin.ts';
import { startServer } from './server.ts';

export interface ShareFacts {
  jobs: number;
  urls: number;
  urlsPerSecond: number;
  /** The smallest and the largest part of a job, in parts of an equal share, while all of them had work at most hosts. */
  least: number;
  most: number;
}

/** Every job has URLs on every host. */
export async function crawlTogether(
  scratch: Scratch,
  { hosts, takeLog }: ManyHosts,
  options: { jobs: number; urls: number },
): Promise<ShareFacts> {
  const { jobs, urls } = options;
  const dir = scratch.diskFolder(`share-${jobs}`);
  const files = join(dir, 'jobs');
  mkdirSync(files);
  const each = Math.floor(urls / jobs);
  for (let job = 0; job < jobs; job++) {
    const list = join(dir, `urls-${job}.txt`);
    const lines = Array.from({ length: each }, (_, at) => `http://${hosts[at % hosts.length]}/${job}/${at}`);
    writeFileSync(list, lines.join('\n'));
    const spec = {
      sources: [list],
      allowPrivate: true,
      politeness: { rate: 'max', robots: false, parallel: 32 },
    };
    writeFileSync(join(files, `job-${job}.json`), JSON.stringify(spec));
  }
  takeLog();
  const server = await startServer(scratch, dir, '--jobs', files);
  try {
    await server.until(jobs);
    const wrong = server.ended.filter(({ state, done }) => state !== 'done' || done !== each);
    if (wrong.length > 0) throw new Error(`not all pages are done: ${JSON.stringify(wrong[0])}`);
  } finally {
    await server.end();
    scratch.remove(dir);
  }
  return { jobs, urls: each * jobs, ...judge(takeLog(), jobs) };
}

function judge(log: Request[], jobs: number): Pick<ShareFacts, 'urlsPerSecond' | 'least' | 'most'> {
  const byJob = new Map<string, number[]>();
  for (const { at, path } of log) {
    const [, job = ''] = path.split('/');
    const times = byJob.get(job);
    if (times) times.push(at);
    else byJob.set(job, [at]);
  }
  return { ...shares([...byJob.values()], jobs), ...rateOf(log) };
}

function rateOf(log: Request[]): { urlsPerSecond: number } {
  const times = log.map(({ at }) => at);
  const from = times.reduce((one, other) => Math.min(one, other), Number.POSITIVE_INFINITY);
  const to = times.reduce((one, other) => Math.max(one, other), 0);
  return { urlsPerSecond: log.length / (to - from) };
}

/**
 * The first job works alone for some seconds, until the lists of the others are read. So it comes to its end before them, and
 * from about here on it has pages left at few of the hosts: too few for its share.
 */
const COUNTED_SHARE = 0.9;

/** Counted from when the last of them began until the first of them had nine tenths of its pages. */
function shares(times: number[][], jobs: number): { least: number; most: number } {
  const from = Math.max(...times.map((each) => each.reduce((one, other) => Math.min(one, other))));
  const to = Math.min(
    ...times.map((each) => each.toSorted((a, b) => a - b)[Math.ceil(each.length * COUNTED_SHARE) - 1]!),
  );
  const counts = times.map((each) => each.filter((at) => at >= from && at <= to).length);
  const mean = counts.reduce((sum, count) => sum + count, 0) / jobs;
  return { least: Math.min(...counts) / mean, most: Math.max(...counts) / mean };
}
