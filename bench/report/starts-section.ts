import type { Verdict } from '../scenario.ts';
import { printTable, verdictTable } from './tables.ts';

export interface StartRow {
  id: 'node' | 'status' | 'run' | 'function-bare' | 'function-http' | 'chromium-bare' | 'function-chromium';
  measured?: {
    /** The median. */
    ms: number;
    fastestMs: number;
    slowestMs: number;
    cpuMs: number;
    /** To the bare start of the same round: says more than milliseconds of a machine that others use too. */
    ratio?: number;
    cpuRatio?: number;
  };
  missing?: string;
}

export interface StartsData {
  date: string;
  machine: string;
  versions: Record<string, string>;
  /** What else the machine had to do. */
  load: number;
  rounds: number;
  shortRounds: number;
  rows: StartRow[];
}

const LABELS: Record<StartRow['id'], string> = {
  node: '`node -e 0`',
  status: '`seine status`',
  run: '`seine run URL` to its first request',
  'function-bare': 'a function that does nothing, init',
  'function-http': 'the HTTP function, init',
  'chromium-bare': 'Chromium alone, unpacked before, with one page',
  'function-chromium': 'the function with Chromium: init, start and first page',
};

const BARS: readonly { id: StartRow['id']; bar: string; msMax: number }[] = [
  { id: 'status', bar: '`seine status` ≤ 100 ms', msMax: 100 },
  { id: 'run', bar: '`seine run` to its first request ≤ 300 ms', msMax: 300 },
  { id: 'function-http', bar: 'init of the HTTP function ≤ 250 ms', msMax: 250 },
  { id: 'function-chromium', bar: 'first page of the function with Chromium ≤ 4 s', msMax: 4_000 },
];

const COLUMNS = ['start', 'ms', 'rounds', '÷ bare', 'CPU ms', 'CPU ÷ bare'];
const whole = (value: number): string => Math.round(value).toLocaleString('en-US');
const times = (value: number | undefined): string => (value === undefined ? '' : `${value.toFixed(2)} ×`);

export function judgeStarts({ rows }: StartsData): Verdict[] {
  return BARS.flatMap(({ id, bar, msMax }): Verdict[] => {
    const row = rows.find((each) => each.id === id);
    if (!row) return [];
    const { measured } = row;
    if (!measured) return [{ bar, measured: 'not measured', passed: undefined }];
    const { ms, ratio, cpuMs } = measured;
    const beside = [...(ratio === undefined ? [] : [`${times(ratio)} bare`]), `${whole(cpuMs)} ms of CPU`];
    return [{ bar, measured: `${whole(ms)} ms (${beside.join(', ')})`, passed: ms <= msMax }];
  });
}

function cellsOf({ id, measured, missing }: StartRow): string[] {
  if (!measured) return [LABELS[id], `not measured: ${missing?.split('\n')[0]}`, '', '', '', ''];
  const { ms, fastestMs, slowestMs, ratio, cpuMs, cpuRatio } = measured;
  return [
    LABELS[id],
    whole(ms),
    `${whole(fastestMs)}–${whole(slowestMs)}`,
    times(ratio),
    whole(cpuMs),
    times(cpuRatio),
  ];
}

export function printStarts(data: StartsData): void {
  process.stdout.write('\n');
  printTable(COLUMNS, data.rows.map(cellsOf));
}

export function startsSection(data: StartsData, verdicts: Verdict[]): string {
  return `| ${COLUMNS.join(' | ')} |
|${COLUMNS.map((_, at) => (at === 0 ? '---' : '--:')).join('|')}|
${data.rows.map((row) => `| ${cellsOf(row).join(' | ')} |`).join('\n')}

${verdictTable(verdicts)}

- Medians, each in turns with the bare start that it is divided by: on a machine that others use too, the ratio says more than the milliseconds. CPU is that of all threads and processes, on average; of \`run\` until the site saw its request.
- \`status\` shows a job that is done. \`run\` starts in an empty folder; its first request is that for robots.txt. Node has compiled both before: the compile cache is warm, as from the second start on.
- Functions run in the emulator of Lambda with the share of a core that their memory has there, by a quota of the kernel for each 20 ms: 1,024 MB have 0.58 of a core, 2,048 MB have 1.16. Lambda itself gives a function more during its init. A function has no compile cache, and the one with Chromium an empty \`/tmp\` each time.
- Machine: ${data.machine}; a load of ${data.load.toFixed(0)} at the start. Node ${data.versions.node}. ${data.date.slice(0, 10)}, ${data.shortRounds} rounds, ${data.rounds} with Chromium, after one that is not counted.
- Again: \`npm run bench -- starts\`; \`--only commands\`, \`functions\` or \`chromium\` is a part of it.`;
}
