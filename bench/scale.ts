/** Costs of stores with very many tasks: 100 million over 10,000 hosts, unless another number is asked for. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { runChild } from './flat.ts';
import type { TaskShape } from './flat-work.ts';
import { readResult } from './report/document.ts';
import { describeMachine } from './report/machine.ts';
import { verdictTable } from './report/tables.ts';
import type { ScalePlan, ScaleRow } from './scale-child.ts';
import type { BenchOptions, Scenario, ScenarioResult, Verdict } from './scenario.ts';
import type { Scratch } from './scratch.ts';

interface ScaleCase {
  id: string;
  store: 'sqlite' | 'postgres';
  shape: TaskShape;
  /** Of the tasks that are asked for. */
  share: number;
  says: string;
}

const HOSTS = 10_000;
/** So that the small store has tasks of all hosts, too; where one has most of them, batches of 60 for the others. */
const RUN = 100;
const SKEWED_RUN = 600;
const CASES: readonly ScaleCase[] = [
  {
    id: 'sqlite',
    store: 'sqlite',
    shape: { kind: 'even', hosts: HOSTS, run: RUN },
    share: 1,
    says: 'SQLite',
  },
  {
    id: 'skewed',
    store: 'sqlite',
    shape: { kind: 'skewed', hosts: HOSTS, run: SKEWED_RUN },
    share: 0.2,
    says: 'SQLite, one host with 90 %, names instead of numbers, priorities at random',
  },
  {
    id: 'postgres',
    store: 'postgres',
    shape: { kind: 'even', hosts: HOSTS, run: RUN },
    share: 0.2,
    says: 'PostgreSQL',
  },
];

/** What the large store is compared with. */
const SMALL = 1_000_000;
const COSTS = ['enqueueUs', 'leaseUs', 'settleUs', 'statusUs'] as const;
const GROWTH_MAX = 1.5;
const RESUME_MS_MAX = 3_000;
const RSS_MB_MAX = 600;
const LEASE_MS_P99_MAX = 50;

/** One case, as it is kept in bench/results/latest.json: cases may be measured on different days. */
interface Measured {
  id: string;
  date: string;
  machine: string;
  rows: [ScaleRow, ScaleRow];
}

async function measure(each: ScaleCase, { tasks, keep }: BenchOptions, scratch: Scratch): Promise<Measured> {
  const large = Math.max(SMALL, Math.round(tasks * each.share));
  let places: [string, string];
  if (each.store === 'postgres') {
    const { startPostgres } = await import('../test/support/servers/services.ts');
    const server = await startPostgres({ own: true, fsync: true });
    scratch.onEnd(() => server.stop());
    places = [await server.createDatabase(), await server.createDatabase()];
  } else {
    const folder = scratch.diskFolder(`scale-${each.id}`);
    places = [join(folder, 'small'), join(keep ?? folder, each.id)];
  }
  const results = join(import.meta.dirname, 'results', 'tmp');
  mkdirSync(results, { recursive: true });
  const log = join(results, 'scale.jsonl');
  const { id, shape } = each;
  const plan: ScalePlan = { id, places, tasks: [SMALL, large], shape, log, keep: keep !== null };
  const rows = await runChild<Measured['rows']>(scratch, 'scale-child.ts', [JSON.stringify(plan)]);
  return { id, date: new Date().toISOString(), machine: describeMachine(), rows };
}

async function run(options: BenchOptions, scratch: Scratch): Promise<ScenarioResult> {
  const measured: Measured[] = [];
  for (const each of CASES) {
    if (options.only.length > 0 && !options.only.some((id) => each.id.startsWith(id))) continue;
    process.stderr.write(`scale: ${each.says}\n`);
    measured.push(await measure(each, options, scratch));
  }
  const verdicts = measured.flatMap(judge);
  const isNew = ({ id }: Measured) => measured.some((one) => one.id === id);
  const earlier = (readResult<{ cases?: Measured[] }>('scale')?.cases ?? []).filter((one) => !isNew(one));
  const cases = CASES.flatMap(({ id }) => [...measured, ...earlier].find((one) => one.id === id) ?? []);
  return { verdicts, data: { cases }, figures: { cases: measured }, section: section(cases) };
}

function judge({ id, rows: [small, large] }: Measured): Verdict[] {
  const most = (name: string, value: number, max: number, unit: string, also = ''): Verdict => ({
    bar: `${id}: ${name} ≤ ${max.toLocaleString('en')}${unit}`,
    measured: `${value.toFixed(unit === ' ×' ? 2 : 0)}${unit}${also}`,
    passed: value <= max,
  });
  return [
    ...COSTS.map((cost) => {
      const call = cost.replace('Us', '') as keyof ScaleRow['wallUs'];
      const wall = ` (${(large.wallUs[call] / small.wallUs[call]).toFixed(2)} × with waiting for a core)`;
      return most(call, large[cost] / small[cost], GROWTH_MAX, ' ×', wall);
    }),
    most(
      'resume',
      large.resumeMs,
      RESUME_MS_MAX,
      ' ms',
      ` (${large.wallResumeMs.toFixed(0)} with waiting for a core)`,
    ),
    most('memory', large.rssMb, RSS_MB_MAX, ' MB'),
    most(
      'lease p99',
      large.leaseMsP99,
      LEASE_MS_P99_MAX,
      ' ms',
      ` (${large.wallLeaseMsP99.toFixed(0)} with waiting for a core)`,
    ),
  ];
}

function section(cases: readonly Measured[]): string {
  const saysOf = (wanted: string) => CASES.find(({ id }) => id === wanted)!.says;
  const lines = cases.flatMap(({ id, rows }) =>
    rows.map((row) => {
      const costs = COSTS.map((cost) => row[cost].toFixed(cost === 'statusUs' ? 0 : 1));
      const rest = [row.leaseMsP99.toFixed(1), row.resumeMs.toFixed(0), row.bytesPerTask.toFixed(0)];
      const cells = [`${id}: ${saysOf(id)}`, row.tasks.toLocaleString('en'), ...costs, ...rest];
      return `| ${[...cells, row.rssMb.toFixed(0), row.fillPerSecond.toLocaleString('en')].join(' | ')} |`;
    }),
  );
  const circumstances = cases.map(({ id, date, machine, rows }) => {
    const load = rows[1].load.toFixed(1);
    return `- ${id}: ${date.slice(0, 10)}, ${machine}; load average ${load} at the end, this benchmark included.`;
  });
  return [
    '| store | tasks | enqueue µs/task | lease µs/task | settle µs/task | status µs | lease p99 ms | resume ms | bytes/task on disk | memory MB | filled tasks/s |',
    '|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|',
    ...lines,
    '',
    verdictTable(cases.flatMap(judge)),
    '',
    ...circumstances,
    `- ${HOSTS.toLocaleString('en')} hosts. A small and a large store are worked on in turns, 1,000 rounds each in one process, whose memory is that of both; a round is that of the table above, but a lease first asks for 1,000 hosts that are due. Rounds in which the process was stopped from outside are left out. Costs are times on the clock, without those in which the coordinator's thread was ready and other programs had both cores. The servers of PostgreSQL wait for cores, too, and that is not known.`,
    '- Again: `npm run bench -- scale --tasks 100000000`, which takes up to an hour and 20 GB of disk; `--keep FOLDER` keeps the stores, so that an ended run goes on where it was and a full store is only measured.',
  ].join('\n');
}

export const scenario: Scenario = {
  name: 'scale',
  summary: 'costs of the store with --tasks tasks over 10,000 hosts; only when named',
  run,
};
