import type { Verdict } from '../scenario.ts';
import type { Row } from './crawl-verdict.ts';
import { verdictTable } from './tables.ts';

const FLEET_BARS = {
  postgres: 0.9,
  bullmq: 0.95,
  settlePerSecond: 5_000,
  coordinatorPerSecond: 10_000,
  coordinatorOnPostgresPerSecond: 20_000,
  /** CPU of a task with two coordinators, of that with one. */
  twoCoordinators: 1.1,
};

export interface FleetData {
  date: string;
  machine: string;
  versions: Record<string, string>;
  pages: number;
  tasks: number;
  rounds: number;
  rows: Row[];
  /** Tasks that stores settle in a second, in batches of 60. */
  settle: { sqlite: number; postgres: number };
}

const count = (value: number | undefined): string =>
  value === undefined || Number.isNaN(value) ? '–' : Math.round(value).toLocaleString('en-US');
const rateOf = (data: FleetData, id: string): number | undefined =>
  data.rows.find((row) => row.id === id)?.measured?.pagesPerSecond;

function ratioVerdict(data: FleetData, id: string, bar: string, least: number): Verdict {
  const own = rateOf(data, id);
  const base = rateOf(data, 'threads');
  const ratio = own === undefined || base === undefined ? undefined : own / base;
  return {
    bar,
    measured: ratio === undefined ? 'not measured' : `${ratio.toFixed(2)} ×`,
    passed: ratio === undefined ? undefined : ratio >= least,
  };
}

function rateVerdict(rate: number | undefined, bar: string, least: number): Verdict {
  return { bar, measured: `${count(rate)} /s`, passed: rate === undefined ? undefined : rate >= least };
}

/** What a task costs coordinators and server together. */
const runCpuOf = (data: FleetData, id: string): number | undefined =>
  data.rows.find((row) => row.id === id)?.measured?.runCpuMicros;

function twoVerdict(data: FleetData, most: number): Verdict {
  const one = runCpuOf(data, 'coordinator-postgres');
  const two = runCpuOf(data, 'two-coordinators');
  const ratio = one === undefined || two === undefined ? undefined : two / one;
  return {
    bar: `CPU of a task with two coordinators over one PostgreSQL ≤ ${most} × with one`,
    measured:
      ratio === undefined ? 'not measured' : `${ratio.toFixed(2)} × (${count(two)} against ${count(one)} µs)`,
    passed: ratio === undefined ? undefined : ratio <= most,
  };
}

export function judgeFleet(data: FleetData): Verdict[] {
  const { postgres, bullmq, settlePerSecond, coordinatorPerSecond } = FLEET_BARS;
  const { coordinatorOnPostgresPerSecond, twoCoordinators } = FLEET_BARS;
  return [
    ratioVerdict(data, 'bullmq', `BullMQ with 2 local workers ≥ ${bullmq} × threads`, bullmq),
    ratioVerdict(data, 'postgres', `PostgreSQL ≥ ${postgres} × SQLite`, postgres),
    rateVerdict(
      data.settle.postgres,
      `PostgreSQL settles ≥ ${count(settlePerSecond)} tasks/s in batches of 60`,
      settlePerSecond,
    ),
    rateVerdict(
      rateOf(data, 'coordinator'),
      `the coordinator alone plans and settles ≥ ${count(coordinatorPerSecond)} tasks/s`,
      coordinatorPerSecond,
    ),
    rateVerdict(
      rateOf(data, 'coordinator-postgres'),
      `the same on PostgreSQL ≥ ${count(coordinatorOnPostgresPerSecond)} tasks/s`,
      coordinatorOnPostgresPerSecond,
    ),
    twoVerdict(data, twoCoordinators),
  ];
}

const COLUMNS = ['run', 'pages or tasks/s', 'rounds', '÷ threads', 'CPU µs each', 'with the server'];

function cellsOf(row: Row, data: FleetData): string[] {
  const { measured } = row;
  if (!measured) return [row.label, `not measured: ${row.missing?.split('\n')[0] ?? ''}`, '', '', '', ''];
  const base = row.id.includes('coordinator') ? undefined : rateOf(data, 'threads');
  return [
    row.label,
    count(measured.pagesPerSecond),
    `${count(measured.slowest)}–${count(measured.fastest)}`,
    base === undefined ? '' : `${(measured.pagesPerSecond / base).toFixed(2)} ×`,
    count(measured.cpuMicros),
    measured.runCpuMicros === undefined ? '' : count(measured.runCpuMicros),
  ];
}

export function printFleet(data: FleetData): void {
  process.stdout.write('\n');
  for (const row of data.rows) process.stdout.write(`  ${cellsOf(row, data).join('  ')}\n`);
  const { sqlite, postgres } = data.settle;
  process.stdout.write(`  settle alone: SQLite ${count(sqlite)}, PostgreSQL ${count(postgres)} tasks/s\n`);
}

export function fleetSection(data: FleetData, verdicts: Verdict[]): string {
  const share = Math.max(0, ...data.rows.map((row) => row.measured?.othersShare ?? 0));
  return `| ${COLUMNS.join(' | ')} |
|${COLUMNS.map((_, at) => (at === 0 ? '---' : '--:')).join('|')}|
${data.rows.map((row) => `| ${cellsOf(row, data).join(' | ')} |`).join('\n')}

${verdictTable(verdicts)}

- ${count(data.pages)} linked pages, served from memory by ${data.versions.origin} on the same machine; robots.txt obeyed, pages kept as WARC, 32 requests at once. PostgreSQL (with fsync), Redis and the worker processes share the two cores with everything else; CPU counts the coordinator's process tree only, from its start; the last column counts the run alone, with PostgreSQL.
- The coordinator alone: a list of ${count(data.tasks)} pictures over 400 hosts, as many batches under way as 400 workers would have; they answer at once, nothing is fetched. Settle alone: four reports of 60 tasks at a time, each page with a record and two links; SQLite ${count(data.settle.sqlite)}, PostgreSQL ${count(data.settle.postgres)} tasks/s.
- Machine: ${data.machine}. Node ${data.versions.node}. ${data.date.slice(0, 10)}, ${data.rounds} round${data.rounds === 1 ? '' : 's'} in turns after a warm-up, medians. Programs outside these trees took up to ${Math.round(share * 100)} % of the machine in a round; servers and worker processes count as such.
- Again: \`npm run bench -- fleet\`.`;
}
