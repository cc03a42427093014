import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { runTrial, type Trial } from '../test/sim/forecast-trials.ts';
import { readOptions } from './read-options.ts';
import { replaceBetween } from './replace-between.ts';

interface Work {
  seeds: number[];
  sample: number;
}

const KINDS: readonly [string, (trial: Trial) => boolean][] = [
  ['list', ({ kind, rate }) => kind === 'list' && rate !== 'max'],
  ['list, without a rate', ({ kind, rate }) => kind === 'list' && rate === 'max'],
  ['crawl', ({ kind, rate }) => kind === 'crawl' && rate !== 'max'],
  ['crawl, without a rate', ({ kind, rate }) => kind === 'crawl' && rate === 'max'],
  ['**all**', () => true],
];

if (isMainThread) await main();
else {
  const { seeds, sample } = workerData as Work;
  for (const seed of seeds) parentPort!.postMessage(await runTrial(seed, sample));
}

async function main(): Promise<void> {
  const { values } = readOptions({
    start: 'npm run forecast-check --',
    about: `How good forecasts are. Each trial is a synthetic web of which a sample is run, and then the whole, both on virtual time.`,
    options: {
      seed: { number: null, shown: 'a new one each time', does: 'the first one; repeats a run' },
      trials: { count: 240, does: 'webs' },
      sample: { count: 200, does: 'requests of a sample' },
      jobs: { count: 2, does: 'trials at once' },
      verbose: { flag: true, does: 'a line for each trial' },
      write: { flag: true, does: 'put the result into docs/cost.md' },
    },
  });
  const first = values.seed ?? Math.floor(Math.random() * 1e9);
  const jobs = values.jobs;
  const seeds = Array.from({ length: values.trials }, (_, index) => first + index);
  const trials: Trial[] = [];
  const threads = Array.from({ length: jobs }, (_, job) => {
    const work: Work = {
      seeds: seeds.filter((_, index) => index % jobs === job),
      sample: values.sample,
    };
    const worker = new Worker(new URL(import.meta.url), { workerData: work });
    worker.on('message', (trial: Trial) => {
      trials.push(trial);
      if (values.verbose) console.log(lineOf(trial));
    });
    return new Promise<void>((resolve, reject) => {
      worker.on('error', reject);
      worker.on('exit', () => resolve());
    });
  });
  await Promise.all(threads);
  const text = [
    `${trials.length} trials, seeds ${first} to ${first + seeds.length - 1}, samples of ${values.sample} requests.`,
    '',
    '| jobs | trials | time: median error of p50 | p90 covers | money: median error of p50 | p90 covers |',
    '|---|--:|--:|--:|--:|--:|',
    ...KINDS.map(([name, isOf]) => rowOf(name, trials.filter(isOf))),
    '',
    'Bars, for all of them: median error 25 % at the most, p90 covers 85 to 95 %.',
  ].join('\n');
  console.log(text);
  if (values.write) replaceBetween('docs/cost.md', 'forecast', text);
  process.exitCode = isGood(trials) ? 0 : 1;
}

function lineOf({ kind, forecast: { seconds, pages }, ...truth }: Trial): string {
  const error = (seconds.p50 / truth.seconds - 1) * 100;
  return `${truth.seed} ${kind.padEnd(5)} at ${truth.rate}/s: ${truth.pages} pages (${pages}), ${truth.seconds.toFixed(0)} s (${seconds.p50}, ${seconds.p90}), ${error.toFixed(0)} %`;
}

function errorsOf(trials: readonly Trial[]) {
  return {
    seconds: medianOf(trials.map(({ forecast, seconds }) => Math.abs(forecast.seconds.p50 / seconds - 1))),
    dollars: medianOf(trials.map(({ forecast, dollars }) => Math.abs(forecast.dollars.p50 / dollars - 1))),
    coversSeconds: shareOf(trials, ({ forecast, seconds }) => seconds <= forecast.seconds.p90),
    coversDollars: shareOf(trials, ({ forecast, dollars }) => dollars <= forecast.dollars.p90),
  };
}

function rowOf(name: string, trials: readonly Trial[]): string {
  const { seconds, dollars, coversSeconds, coversDollars } = errorsOf(trials);
  const shown = [seconds, coversSeconds, dollars, coversDollars].map(
    (share) => `${(share * 100).toFixed(0)} %`,
  );
  return `| ${[name, trials.length, ...shown].join(' | ')} |`;
}

function isGood(trials: readonly Trial[]): boolean {
  const { seconds, dollars, coversSeconds, coversDollars } = errorsOf(trials);
  const isCovered = (share: number) => share >= 0.85 && share <= 0.95;
  return seconds <= 0.25 && dollars <= 0.25 && isCovered(coversSeconds) && isCovered(coversDollars);
}

function medianOf(list: number[]): number {
  return list.sort((a, b) => a - b)[Math.floor(list.length / 2)] ?? 0;
}

function shareOf<T>(list: readonly T[], is: (entry: T) => boolean): number {
  return list.filter(is).length / list.length;
}
