import { existsSync, mkdirSync, readFileSync, renameSync, rmdirSync, writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

/**
 * What long simulations have come to so far, in a small file: several processes add to it, and whoever starts again goes
 * on behind what is there. Seeds are done in chunks; a chunk counts once it is done.
 */

export const CHUNK = 25;

export interface SimSums {
  runs: number;
  tasks: number;
  faults: number;
  steps: number;
  virtualMs: number;
}

interface SimResults {
  /** Of each run. */
  tasks: number;
  /** First and last chunk of each stretch that is done. */
  done: [number, number][];
  sums: SimSums;
  /** Runs by the commit of the sources. */
  runsOf: Record<string, number>;
  failed: FailedSeed[];
}

export interface FailedSeed {
  seed: number;
  failure: string;
}

const NAMES = ['runs', 'tasks', 'faults', 'steps', 'virtualMs'] as const;

export const NO_SUMS: Readonly<SimSums> = { runs: 0, tasks: 0, faults: 0, steps: 0, virtualMs: 0 };

export function readResults(path: string, tasks: number): SimResults {
  if (!existsSync(path)) return { tasks, done: [], sums: { ...NO_SUMS }, runsOf: {}, failed: [] };
  const results = JSON.parse(readFileSync(path, 'utf8')) as SimResults;
  if (results.tasks !== tasks)
    throw new Error(`${path} has runs of ${results.tasks} tasks: delete it, or use --tasks ${results.tasks}`);
  return results;
}

export function isDone({ done }: SimResults, chunk: number): boolean {
  return done.some(([first, last]) => chunk >= first && chunk <= last);
}

/** Reads, adds and writes with no other process between. */
export async function addChunk(
  path: string,
  tasks: number,
  chunk: number,
  { sums, sources, failed }: { sums: SimSums; sources: string; failed: FailedSeed[] },
): Promise<SimResults> {
  return change(path, tasks, (before) =>
    isDone(before, chunk)
      ? before
      : {
          tasks,
          done: joined([...before.done, [chunk, chunk]]),
          sums: added(before.sums, sums),
          runsOf: { ...before.runsOf, [sources]: (before.runsOf[sources] ?? 0) + sums.runs },
          failed: [...before.failed, ...failed].sort((a, b) => a.seed - b.seed),
        },
  );
}

/** Of seeds that failed and were simulated again: those that held have failed no longer. */
export function noteAgain(
  path: string,
  tasks: number,
  again: readonly { seed: number; failure: string | null }[],
): Promise<SimResults> {
  const now = new Map(again.map(({ seed, failure }) => [seed, failure]));
  return change(path, tasks, (before) => ({
    ...before,
    failed: before.failed.flatMap(({ seed, failure }) => {
      const left = now.has(seed) ? now.get(seed)! : failure;
      return left === null ? [] : [{ seed, failure: left }];
    }),
  }));
}

async function change(
  path: string,
  tasks: number,
  next: (before: SimResults) => SimResults,
): Promise<SimResults> {
  const lock = `${path}.lock`;
  while (!tryLock(lock)) await sleep(20);
  try {
    const after = next(readResults(path, tasks));
    writeFileSync(`${path}.new`, `${JSON.stringify(after)}\n`);
    renameSync(`${path}.new`, path);
    return after;
  } finally {
    rmdirSync(lock);
  }
}

export function added(one: SimSums, other: SimSums): SimSums {
  const sums = { ...one };
  for (const name of NAMES) sums[name] += other[name];
  return sums;
}

function tryLock(path: string): boolean {
  try {
    mkdirSync(path);
    return true;
  } catch {
    return false;
  }
}

/** Stretches that touch become one. */
function joined(stretches: [number, number][]): [number, number][] {
  const result: [number, number][] = [];
  for (const [first, last] of stretches.toSorted(([a], [b]) => a - b)) {
    const before = result.at(-1);
    if (before && first <= before[1] + 1) before[1] = Math.max(before[1], last);
    else result.push([first, last]);
  }
  return result;
}

export function tableOf({ sums, failed }: SimResults): string {
  const days = (sums.virtualMs / 86_400_000).toFixed(0);
  return [
    '| runs | tasks | faults | steps | virtual time | failed |',
    '|--:|--:|--:|--:|--:|--:|',
    `| ${sums.runs} | ${sums.tasks} | ${sums.faults} | ${sums.steps} | ${days} days | ${failed.length} |`,
  ].join('\n');
}
