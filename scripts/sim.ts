import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import {
  FAULTS,
  type FaultName,
  type SimulationOptions,
  type SimulationResult,
  simulate,
} from '../test/sim/simulate.ts';
import { readOptions } from './read-options.ts';
import { replaceBetween } from './replace-between.ts';
import {
  addChunk,
  added,
  CHUNK,
  type FailedSeed,
  isDone,
  NO_SUMS,
  noteAgain,
  readResults,
  type SimSums,
  tableOf,
} from './sim-results.ts';

/** A seed decides everything: the same seed does the same again. */

interface Work {
  first: number;
  step: number;
  count: number;
  endAt: number;
  options: Omit<SimulationOptions, 'seed'>;
  /** The commit of the sources, where results are kept: then it is chunks of seeds that are counted. */
  keepsAs: string | null;
}

const RESULTS = join(import.meta.dirname, 'sim-results.jsonl');

if (isMainThread) await main();
else await work(workerData as Work);

/** Every `step`th seed, in a thread of its own. */
async function work(given: Work): Promise<void> {
  const { first, step, count, endAt, options, keepsAs } = given;
  if (keepsAs !== null) return keepChunks(given, keepsAs);
  for (let index = 0; index < count && Date.now() < endAt; index++)
    parentPort!.postMessage(await simulate({ ...options, seed: first + index * step }));
}

async function main(): Promise<void> {
  const { values } = readOptions({
    start: 'npm run sim --',
    about: `Whole jobs with faults, on virtual time. A seed decides everything; one that is given is simulated again, and its last
steps are shown when it fails. --keep adds to scripts/sim-results.jsonl and goes on behind what is there.

faults: ${FAULTS.join(', ')}`,
    options: {
      seed: { number: null, shown: '1', does: 'the first seed; without --runs and --minutes the only one' },
      runs: { count: null, shown: '1000', does: 'seeds, one after the other' },
      minutes: { number: null, does: 'how long, instead of a number of runs' },
      tasks: { count: 200, does: 'tasks of each run' },
      jobs: { count: 2, does: 'runs at once' },
      several: { count: null, does: 'as many jobs in each run, at the same hosts' },
      without: { text: '', does: 'faults that are left out, separated by commas' },
      first: { flag: true, does: 'end with the first seed that fails' },
      keep: { flag: true, does: 'keep the results' },
      again: {
        flag: true,
        does: 'simulate the seeds that failed and were kept again, and forget those that hold now',
      },
      part: { text: '1/1', does: 'with --keep: 1/2 and 2/2 share the seeds between two processes' },
      write: { flag: true, does: 'put what was kept into docs/reliability.md' },
    },
  });
  const { tasks, several, minutes } = values;
  const options = { tasks, without: namesIn(values.without), ...(several === null ? {} : { jobs: several }) };
  const endAt = Date.now() + (minutes ?? 1e6) * 60_000;
  if (values.again) await simulateAgain(options);
  if (values.keep) await keepOn({ jobs: values.jobs, part: values.part }, options, endAt);
  if (values.write) replaceBetween('docs/reliability.md', 'sim', tableOf(readResults(RESULTS, tasks)));
  if (values.keep || values.write || values.again) return;
  const runs = values.runs ?? (minutes !== null ? 1e9 : values.seed === null ? 1_000 : 1);
  await simulateAll({ seed: values.seed ?? 1, runs, jobs: Math.min(values.jobs, runs) }, options, {
    endAt,
    endsWithFirst: values.first,
  });
}

/** So many seeds from one on, in threads; says what failed, and how the worst of it came about. */
async function simulateAll(
  { seed, runs, jobs }: { seed: number; runs: number; jobs: number },
  options: Work['options'],
  { endAt, endsWithFirst }: { endAt: number; endsWithFirst: boolean },
): Promise<void> {
  const startedAt = Date.now();
  const sum = { runs: 0, tasks: 0, faults: 0, steps: 0, virtualMs: 0 };
  const failed: SimulationResult[] = [];
  const take = (result: SimulationResult) => {
    sum.runs++;
    for (const name of ['tasks', 'faults', 'steps', 'virtualMs'] as const) sum[name] += result[name];
    if (result.failure !== null) {
      failed.push(result);
      process.stdout.write(`seed ${result.seed}: ${result.failure}\n`);
      if (endsWithFirst) process.exit(1);
    }
    if (sum.runs % 1_000 === 0)
      process.stdout.write(
        `${sum.runs} runs, ${failed.length} failed, ${seconds(Date.now() - startedAt)} s\n`,
      );
  };
  const works = Array.from({ length: jobs }, (_, index): Work => {
    const count = Math.ceil((runs - index) / jobs);
    return { first: seed + index, step: jobs, count, endAt, options, keepsAs: null };
  });
  await Promise.all(works.map((work) => runWorker(work, take)));
  const worst = failed.sort((a, b) => a.seed - b.seed)[0];
  if (worst) {
    process.stdout.write(`\n${worst.trace.join('\n')}\nseed ${worst.seed}: ${worst.failure}\n`);
    process.stdout.write(`the same again: npm run sim -- --seed ${worst.seed} --tasks ${options.tasks}\n`);
  }
  process.stdout.write(`\n${tableOfRuns(sum, failed.length, Date.now() - startedAt)}\n`);
  process.exitCode = failed.length === 0 ? 0 : 1;
}

type Sum = Record<'runs' | 'tasks' | 'faults' | 'steps' | 'virtualMs', number>;

function tableOfRuns({ runs, tasks, faults, steps, virtualMs }: Sum, failed: number, tookMs: number): string {
  const days = (virtualMs / 86_400_000).toFixed(1);
  return [
    '| runs | tasks | faults | steps | virtual time | failed | time |',
    '|--:|--:|--:|--:|--:|--:|--:|',
    `| ${runs} | ${tasks} | ${faults} | ${steps} | ${days} days | ${failed} | ${seconds(tookMs)} s |`,
  ].join('\n');
}

async function simulateAgain(options: Work['options']): Promise<void> {
  const again: SimulationResult[] = [];
  for (const { seed } of readResults(RESULTS, options.tasks).failed) {
    const result = await simulate({ ...options, seed });
    process.stdout.write(`seed ${seed}: ${result.failure ?? 'holds'}\n`);
    again.push(result);
  }
  const { failed } = await noteAgain(RESULTS, options.tasks, again);
  process.exitCode = failed.length === 0 ? 0 : 1;
}

/** All chunks of seeds that are not done yet, shared between threads and other processes. */
async function keepOn(
  { jobs, part }: { jobs: number; part: string },
  options: Work['options'],
  endAt: number,
): Promise<void> {
  const [own, parts] = part.split('/').map(Number) as [number, number];
  const keepsAs = execFileSync('git', ['rev-parse', '--short', 'HEAD'], {
    cwd: import.meta.dirname,
    encoding: 'utf8',
  }).trim();
  const works = Array.from({ length: jobs }, (_, index): Work => {
    const first = own - 1 + index * parts;
    return { first, step: jobs * parts, count: Number.POSITIVE_INFINITY, endAt, options, keepsAs };
  });
  await Promise.all(works.map((work) => runWorker(work, () => {})));
  process.exitCode = readResults(RESULTS, options.tasks).failed.length === 0 ? 0 : 1;
}

async function keepChunks({ first, step, endAt, options }: Work, sources: string): Promise<void> {
  for (let chunk = first; Date.now() < endAt; chunk += step) {
    if (isDone(readResults(RESULTS, options.tasks), chunk)) continue;
    let sums: SimSums = NO_SUMS;
    const wrong: FailedSeed[] = [];
    for (let seed = 1 + chunk * CHUNK; seed <= (chunk + 1) * CHUNK; seed++) {
      const result = await simulate({ ...options, seed });
      sums = added(sums, { ...result, runs: 1 });
      if (result.failure === null) continue;
      wrong.push({ seed, failure: result.failure });
      process.stdout.write(`seed ${seed}: ${result.failure}\n`);
    }
    const after = await addChunk(RESULTS, options.tasks, chunk, { sums, sources, failed: wrong });
    process.stdout.write(`${after.sums.runs} runs, ${after.failed.length} failed\n`);
  }
}

function seconds(ms: number): string {
  return (ms / 1_000).toFixed(0);
}

function namesIn(list: string): FaultName[] {
  const names = list.split(',').filter((name) => name !== '');
  const known: readonly string[] = FAULTS;
  for (const name of names)
    if (!known.includes(name)) {
      process.stderr.write(`no fault is called '${name}'; there are ${known.join(', ')}\n`);
      process.exit(2);
    }
  return names as FaultName[];
}

function runWorker(data: Work, take: (result: SimulationResult) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(new URL(import.meta.url), { workerData: data });
    worker.on('message', take);
    worker.on('error', reject);
    worker.on('exit', () => resolve());
  });
}
