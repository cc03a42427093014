import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import {
  FAULTS,
  type FaultName,
  type SimulationOptions,
  type SimulationResult,
  simulate,
} from '../test/sim/simulate.ts';
import { replaceBetween } from './replace-between.ts';
import {
  addChunk,
  added,
  CHUNK,
  isDone,
  NO_SUMS,
  readResults,
  type SimSums,
  tableOf,
} from './sim-results.ts';

/**
 * Whole jobs with faults on virtual time: `npm run sim`. A seed decides everything; `npm run sim -- --seed 7` does one of
 * them again and shows its last steps when it fails. `--keep` adds to scripts/sim-results.jsonl and goes on behind what is
 * there, for `--minutes`; with `--part 1/2` and `--part 2/2` two processes share the seeds. `--write` puts what was kept
 * into docs/reliability.md.
 */

interface Work {
  first: number;
  step: number;
  count: number;
  endAt: number;
  options: Omit<SimulationOptions, 'seed'>;
}

const RESULTS = join(import.meta.dirname, 'sim-results.jsonl');

if (isMainThread) await main();
else await work(workerData as Work);

/** Every `step`th seed, in a thread of its own. */
async function work({ first, step, count, endAt, options }: Work): Promise<void> {
  for (let index = 0; index < count && Date.now() < endAt; index++)
    parentPort!.postMessage(await simulate({ ...options, seed: first + index * step }));
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      seed: { type: 'string' },
      runs: { type: 'string' },
      tasks: { type: 'string', default: '200' },
      minutes: { type: 'string' },
      jobs: { type: 'string', default: '2' },
      without: { type: 'string', default: '' },
      /** As many jobs in each run, at the same hosts. */
      several: { type: 'string' },
      /** Ends with the first seed that fails. */
      first: { type: 'boolean', default: false },
      keep: { type: 'boolean', default: false },
      part: { type: 'string', default: '1/1' },
      write: { type: 'boolean', default: false },
    },
  });
  const first = Number(values.seed ?? 1);
  const isEndless = values.minutes !== undefined && values.runs === undefined;
  const runs = isEndless ? 1e9 : Number(values.runs ?? (values.seed === undefined ? 1_000 : 1));
  const jobs = Math.min(Number(values.jobs), runs);
  const endAt = Date.now() + Number(values.minutes ?? 1e6) * 60_000;
  const options = {
    tasks: Number(values.tasks),
    without: namesIn(values.without),
    ...(values.several === undefined ? {} : { jobs: Number(values.several) }),
  };
  if (values.keep) await keepOn(options, values.part, endAt);
  if (values.write)
    replaceBetween('docs/reliability.md', 'sim', tableOf(readResults(RESULTS, options.tasks)));
  if (values.keep || values.write) return;
  const startedAt = Date.now();
  const sum = { runs: 0, tasks: 0, faults: 0, steps: 0, virtualMs: 0 };
  const failed: SimulationResult[] = [];
  const take = (result: SimulationResult) => {
    sum.runs++;
    for (const name of ['tasks', 'faults', 'steps', 'virtualMs'] as const) sum[name] += result[name];
    if (result.failure !== null) {
      failed.push(result);
      process.stdout.write(`seed ${result.seed}: ${result.failure}\n`);
      if (values.first) process.exit(1);
    }
    if (sum.runs % 1_000 === 0)
      process.stdout.write(
        `${sum.runs} runs, ${failed.length} failed, ${seconds(Date.now() - startedAt)} s\n`,
      );
  };
  await Promise.all(
    Array.from({ length: jobs }, (_, index) =>
      runWorker(
        { first: first + index, step: jobs, count: Math.ceil((runs - index) / jobs), endAt, options },
        take,
      ),
    ),
  );
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

/** Chunk after chunk of seeds that are not done yet, in this thread. */
async function keepOn(options: Work['options'], part: string, endAt: number): Promise<void> {
  const [own, parts] = part.split('/').map(Number) as [number, number];
  let { failed } = readResults(RESULTS, options.tasks);
  for (let chunk = own - 1; Date.now() < endAt; chunk += parts) {
    if (isDone(readResults(RESULTS, options.tasks), chunk)) continue;
    let sums: SimSums = NO_SUMS;
    const wrong: number[] = [];
    for (let seed = 1 + chunk * CHUNK; seed <= (chunk + 1) * CHUNK; seed++) {
      const result = await simulate({ ...options, seed });
      sums = added(sums, { ...result, runs: 1 });
      if (result.failure === null) continue;
      wrong.push(seed);
      process.stdout.write(`seed ${seed}: ${result.failure}\n`);
    }
    const after = await addChunk(RESULTS, options.tasks, chunk, { sums, failed: wrong });
    failed = after.failed;
    process.stdout.write(`${after.sums.runs} runs, ${failed.length} failed\n`);
  }
  process.exitCode = failed.length === 0 ? 0 : 1;
}

function seconds(ms: number): string {
  return (ms / 1_000).toFixed(0);
}

function namesIn(list: string): FaultName[] {
  const names = list.split(',').filter((name) => name !== '');
  const known: readonly string[] = FAULTS;
  for (const name of names)
    if (!known.includes(name)) throw new Error(`no fault is called '${name}'; there are ${known.join(', ')}`);
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
