/** How figures move from run to run: bench/results/history.jsonl has a line for each run that is written down. */
import { execFileSync } from 'node:child_process';
import { hash } from 'node:crypto';
import { appendFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { BENCH_FOLDER, ROOT_FOLDER } from './contenders/contender.ts';
import { describeMachine } from './report/machine.ts';

const HISTORY = join(BENCH_FOLDER, 'results', 'history.jsonl');

interface HistoryEntry {
  date: string;
  /** Short, with a `+` where files had changed since. */
  commit: string;
  machine: string;
  /** Milliseconds of CPU that the same work took in each run: how fast the machine was that day. */
  workMs?: number;
  /** By name: `crawl.seine-links.cpuMicros`. */
  figures: Record<string, number>;
}

/** What single rounds gave, and what is not a figure. */
const LEFT_OUT = new Set(['samples', 'rounds', 'check', 'site', 'versions']);

/** Every number in the data of a scenario, named by its way there: rows by their id or their number of tasks. */
export function figuresOf(scenario: string, data: unknown): Record<string, number> {
  const figures = new Map<string, number>();
  const walk = (name: string, value: unknown): void => {
    if (typeof value === 'number') {
      if (Number.isFinite(value)) figures.set(name, Number(value.toPrecision(4)));
    } else if (Array.isArray(value)) {
      for (const [index, each] of value.entries()) walk(`${name}.${labelOf(each) ?? index}`, each);
    } else if (typeof value === 'object' && value !== null) {
      for (const [key, each] of Object.entries(value)) {
        // Rows are what most data is made of, and `measured` what most rows are.
        if (!LEFT_OUT.has(key)) walk(key === 'rows' || key === 'measured' ? name : `${name}.${key}`, each);
      }
    }
  };
  walk(scenario, data);
  return Object.fromEntries(figures);
}

function labelOf(row: unknown): string | number | undefined {
  const { id, tasks } = (row ?? {}) as { id?: string; tasks?: number };
  return id ?? tasks;
}

export function appendHistory(figures: Record<string, number>): void {
  if (Object.keys(figures).length === 0) return;
  const entry: HistoryEntry = {
    date: new Date().toISOString(),
    commit: currentCommit(),
    machine: describeMachine(),
    workMs: Number(measureWork().toPrecision(4)),
    figures,
  };
  mkdirSync(dirname(HISTORY), { recursive: true });
  appendFileSync(HISTORY, `${JSON.stringify(entry)}\n`);
}

function currentCommit(): string {
  try {
    const git = (...args: string[]) =>
      execFileSync('git', args, { cwd: ROOT_FOLDER, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
    const changed = git('status', '--porcelain', '--', 'src', 'native', 'package-lock.json') !== '';
    return `${git('rev-parse', '--short', 'HEAD').trim()}${changed ? '+' : ''}`;
  } catch {
    return 'unknown';
  }
}

function readHistory(): HistoryEntry[] {
  if (!existsSync(HISTORY)) return [];
  const lines = readFileSync(HISTORY, 'utf8').split('\n');
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line) as HistoryEntry);
}

const WORK_TIMES = 7;

/** Some of what crawlers do, hashing and packing text: the fastest of several times, by the CPU of this process. */
function measureWork(): number {
  const page = Buffer.from(Array.from({ length: 60_000 }, (_, index) => `word${index % 997} `).join(''));
  const times = Array.from({ length: WORK_TIMES }, () => {
    const before = process.cpuUsage();
    for (let round = 0; round < 8; round++) hash('sha256', gzipSync(page, { level: 1 }), 'hex');
    const { user, system } = process.cpuUsage(before);
    return (user + system) / 1_000;
  });
  return Math.min(...times);
}

/** What a scenario is compared with in the same run: a ratio to it is the same on a slow machine as on a fast one. */
const BASES: Record<string, string> = {
  crawl: 'spider-links',
  'crawl-long': 'spider-links',
  media: 'loop',
  fleet: 'threads',
  browser: 'crawlee-browser',
};
const COMPARED = ['pagesPerSecond', 'cpuMicros'];

/** The figures of a run, with those that compare rows of it. */
function withRatios(figures: Record<string, number>): Record<string, number> {
  const ratios = Object.entries(figures).flatMap(([name, value]) => {
    const [scenario = '', row, figure = ''] = name.split('.');
    const base = figures[`${scenario}.${BASES[scenario]}.${figure}`];
    const isCompared = base && row !== BASES[scenario] && COMPARED.includes(figure);
    return isCompared ? [[`${name} ÷ ${BASES[scenario]}`, Number((value / base).toPrecision(3))]] : [];
  });
  return { ...figures, ...Object.fromEntries(ratios) };
}

/** What Seine is compared with: not ours to make better. */
const OTHERS = /\.(crawlee|spider|raw|loop|node|function-bare|chromium-bare)\b/;

/** Whether more of a figure is better (1) or worse (-1); 0 for what is no measure of Seine: counts, noise, other programs. */
function directionOf(name: string): 1 | -1 | 0 {
  if (OTHERS.test(name)) return 0;
  const figure = name.split('.').at(-1)!.replace(/ ÷ .*/, '');
  if (/^(originCpuMicros|beforeMb|aloneMs|emptyMs|emptyMb|fastestMs|slowestMs|bareP50)$/.test(figure))
    return 0;
  if (/PerSecond$|^rate$|^(batchShare|batchCpuShare)$/.test(figure) || /\.settle\.\w+$/.test(name)) return 1;
  return /(Micros|Us|Ms|Mb|P50|P99|p50|p99|[rR]atio|bytesPerTask)$/.test(figure) ? -1 : 0;
}

/** Bytes and ratios do not change with the speed of the machine. */
function isTimed(name: string): boolean {
  return !/÷|[rR]atio$|Share$|Mb$|bytesPerTask$/.test(name);
}

/** Runs that a line has room for. */
const RUNS_SHOWN = 6;
/** Two runs of the same commit differ by about this much on a quiet machine. */
const NOISE = 0.1;

interface Line {
  name: string;
  text: string;
  /** By how much the last run was worse than the one before, as a share; 0 where it was not, or not by more than noise. */
  worse: number;
}

/**
 * A line for each figure, the newest value last, with what it is of the one before. What was timed on a machine of another
 * speed is compared as if that had been the same. `beginnings`: only these figures, and then also those without a better.
 */
export function historyLines(entries: readonly HistoryEntry[], beginnings: readonly string[]): Line[] {
  const runs = entries.map((entry) => ({ ...entry, figures: withRatios(entry.figures) }));
  const names = [...new Set(runs.flatMap(({ figures }) => Object.keys(figures)))]
    .filter((name) =>
      beginnings.length === 0
        ? directionOf(name) !== 0
        : beginnings.some((beginning) => name.startsWith(beginning)),
    )
    .toSorted();
  const width = Math.max(0, ...names.map(({ length }) => length));
  return names.map((name) => {
    const own = runs.filter(({ figures }) => figures[name] !== undefined);
    const shown = own.slice(-RUNS_SHOWN).map(({ figures, commit }) => `${figures[name]} (${commit})`);
    const [before, last] = own.slice(-2);
    const { text, worse } = last && before && before !== last ? compare(name, before, last) : SINGLE;
    return { name, text: `${name.padEnd(width)}  ${shown.join(' → ')}${text}`, worse };
  });
}

const SINGLE = { text: '', worse: 0 };

function compare(name: string, before: HistoryEntry, last: HistoryEntry): { text: string; worse: number } {
  const [then, now] = [before.figures[name]!, last.figures[name]!];
  if (then === 0) return SINGLE;
  const direction = directionOf(name);
  const hasSpeeds = before.workMs !== undefined && last.workMs !== undefined;
  // More milliseconds for the same work is a slower machine.
  const slower = isTimed(name) && hasSpeeds ? last.workMs! / before.workMs! : 1;
  const ratio = (now / then) * (direction === 1 ? slower : 1 / slower);
  const loss = direction === 1 ? 1 - ratio : direction === -1 ? ratio - 1 : 0;
  const worse = loss > NOISE ? loss : 0;
  const unsure = worse > 0 && isTimed(name) && !hasSpeeds ? ', or the machine was slower' : '';
  return { text: `  ${ratio.toFixed(2)} ×${worse > 0 ? `  WORSE${unsure}` : ''}`, worse };
}

/** Without the version of its kernel, which changes more often. */
const hardwareOf = ({ machine }: HistoryEntry): string => machine.replace(/ \S+$/, '');

/** Figures of different machines say nothing of each other: those of the machine that ran last are shown. */
export function printHistory(beginnings: readonly string[]): void {
  const all = readHistory();
  const last = all.at(-1);
  if (last === undefined) {
    process.stdout.write('no run is written down yet: npm run bench\n');
    return;
  }
  const entries = all.filter((entry) => hardwareOf(entry) === hardwareOf(last));
  process.stdout.write(`${entries.length} of ${all.length} runs, on ${hardwareOf(last)}\n`);
  for (const entry of entries) process.stdout.write(`  ${runText(entry)}\n`);
  const lines = historyLines(entries, beginnings);
  process.stdout.write(
    lines.length === 0 ? 'no such figure\n' : `\n${lines.map(({ text }) => text).join('\n')}\n`,
  );
  const worse = lines.filter((line) => line.worse > 0).toSorted((one, other) => other.worse - one.worse);
  if (worse.length > 0)
    process.stdout.write(
      `\n${worse.length} got worse by more than ${NOISE * 100} %: ${worse.map(({ name }) => name).join(', ')}\n`,
    );
}

function runText({ date, commit, workMs, figures }: HistoryEntry): string {
  const scenarios = [...new Set(Object.keys(figures).map((name) => name.split('.')[0]))].join(', ');
  const speed = workMs === undefined ? 'speed not known' : `the same work took ${workMs} ms of CPU`;
  return `${date.slice(0, 16).replace('T', ' ')}  ${commit.padEnd(10)} ${scenarios}; ${speed}`;
}
