/** Costs of the store with 10 thousand, 1 million and 5 million tasks in the frontier: they must not grow. */
import type { spawn } from 'node:child_process';
import { join } from 'node:path';
import { nodeFlags } from './node-flags.ts';
import { verdictTable } from './report/tables.ts';
import type { BenchOptions, Scenario, ScenarioResult, Verdict } from './scenario.ts';
import type { Scratch } from './scratch.ts';

interface FlatRow {
  tasks: number;
  fillPerSecond: number;
  enqueueUs: number;
  leaseUs: number;
  settleUs: number;
  statusUs: number;
  resumeMs: number;
  rssMb: number;
}

const SIZES = [10_000, 1_000_000, 5_000_000];
const COSTS = ['enqueueUs', 'leaseUs', 'settleUs', 'statusUs'] as const;
const GROWTH_MAX = 1.5;
const RESUME_MS_MAX = 2_000;
const RSS_MB_MAX = 400;

interface Filled {
  tasks: number;
  fillPerSecond: number;
  nextUrl: number;
  resumeMs: number;
  rssMb: number;
}

type Costs = Pick<FlatRow, (typeof COSTS)[number]>;

export async function runChild<T>(scratch: Scratch, file: string, args: string[]): Promise<T> {
  const child = scratch.spawn(
    process.execPath,
    [...nodeFlags(), '--disable-warning=ExperimentalWarning', join(import.meta.dirname, file), ...args],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  ) as ReturnType<typeof spawn>;
  let text = '';
  child.stdout!.on('data', (chunk: Buffer) => {
    text += chunk.toString();
  });
  const code = await new Promise<number | null>((resolve) => child.once('close', resolve));
  if (code !== 0) throw new Error(`${file} ended with code ${code}`);
  return JSON.parse(text);
}

/** Fills a store of each size, then measures them in turns. */
async function measure(scratch: Scratch): Promise<FlatRow[]> {
  const stores: (Filled & { folder: string })[] = [];
  for (const tasks of SIZES) {
    process.stderr.write(`  filling ${tasks.toLocaleString('en')} tasks\n`);
    const folder = scratch.diskFolder(`flat-${tasks}`);
    const filled = await runChild<Filled>(scratch, 'flat-child.ts', [join(folder, 'store'), String(tasks)]);
    stores.push({ ...filled, folder });
  }
  process.stderr.write('  working on all of them in turns\n');
  const places = stores.map(({ folder, tasks, nextUrl }) => ({
    folder: join(folder, 'store'),
    tasks,
    nextUrl,
  }));
  const costs = await runChild<Costs[]>(scratch, 'flat-costs-child.ts', [JSON.stringify(places)]);
  for (const { folder } of stores) scratch.remove(folder);
  return stores.map(({ tasks, fillPerSecond, resumeMs, rssMb }, index) => ({
    tasks,
    fillPerSecond,
    resumeMs,
    rssMb,
    ...costs[index]!,
  }));
}

const median = (values: number[]) =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;

async function run(options: BenchOptions, scratch: Scratch): Promise<ScenarioResult> {
  const rounds: FlatRow[][] = SIZES.map(() => []);
  for (let round = 0; round < Math.max(1, options.rounds); round++) {
    process.stderr.write(`flat: round ${round + 1}\n`);
    for (const [index, row] of (await measure(scratch)).entries()) rounds[index]!.push(row);
  }
  const rows = rounds.map((samples) => {
    const names = Object.keys(samples[0]!) as (keyof FlatRow)[];
    return Object.fromEntries(
      names.map((name) => [name, median(samples.map((sample) => sample[name]))]),
    ) as Record<keyof FlatRow, number>;
  });
  const verdicts = judge(rows, rounds);
  return { verdicts, data: { rows, rounds }, section: section(rows, verdicts) };
}

/** Sizes are compared within a round, where they were measured in turns. */
function judge(rows: FlatRow[], rounds: FlatRow[][]): Verdict[] {
  const [small, ...larger] = rounds as [FlatRow[], ...FlatRow[][]];
  const growth = COSTS.map((cost) => {
    const growths = larger.map((samples) => median(samples.map((row, at) => row[cost] / small[at]![cost])));
    const most = Math.max(...growths);
    return {
      bar: `${cost.replace('Us', '')} within ${GROWTH_MAX} ×`,
      measured: `${most.toFixed(2)} ×`,
      passed: most <= GROWTH_MAX,
    };
  });
  const resume = Math.max(...rows.map((row) => row.resumeMs));
  const rss = rows.at(-1)!.rssMb;
  return [
    ...growth,
    {
      bar: 'resume to first lease ≤ 2 s',
      measured: `${resume.toFixed(0)} ms`,
      passed: resume <= RESUME_MS_MAX,
    },
    {
      bar: `memory ≤ ${RSS_MB_MAX} MB at 5M tasks`,
      measured: `${rss.toFixed(0)} MB`,
      passed: rss <= RSS_MB_MAX,
    },
  ];
}

function section(rows: FlatRow[], judged: Verdict[]): string {
  const lines = rows.map(
    (row) =>
      `| ${row.tasks.toLocaleString('en')} | ${row.enqueueUs.toFixed(1)} | ${row.leaseUs.toFixed(1)} | ${row.settleUs.toFixed(1)} | ${row.statusUs.toFixed(0)} | ${row.resumeMs.toFixed(0)} | ${row.rssMb.toFixed(0)} | ${row.fillPerSecond.toLocaleString('en')} |`,
  );
  return [
    '| tasks in the frontier | enqueue µs/task | lease µs/task | settle µs/task | status µs | resume ms | memory MB | filled tasks/s |',
    '|--:|--:|--:|--:|--:|--:|--:|--:|',
    ...lines,
    '',
    verdictTable(judged),
    '',
    'SQLite stores on disk, 100 hosts each, worked on in turns in one process so that a slow moment hits all; resume and memory in a process for each. Enqueue in chunks of 1,000 as sources do; batches of 60; settle writes an attempt and a page for each task and looks up three links of it, one of them new and two taken from anywhere in the frontier. Again: `npm run bench -- flat`.',
  ].join('\n');
}

export const scenario: Scenario = {
  name: 'flat',
  summary: 'costs of the store with 10k, 1M and 5M tasks',
  run,
};
