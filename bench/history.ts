/** How figures move from run to run: bench/results/history.jsonl has a line for each run that is written down. */
import { execFileSync } from 'node:child_process';
import { appendFileSync, existsSync, mkdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { BENCH_FOLDER, ROOT_FOLDER } from './contenders/contender.ts';
import { describeMachine } from './report/machine.ts';

const HISTORY = join(BENCH_FOLDER, 'results', 'history.jsonl');

interface HistoryEntry {
  date: string;
  /** Short, with a `+` where files had changed since. */
  commit: string;
  machine: string;
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

/** Runs that a line has room for. */
const RUNS_SHOWN = 6;

/** A line for each figure, the newest value last, with what it is of the one before. `beginnings`: only these figures. */
export function historyLines(entries: readonly HistoryEntry[], beginnings: readonly string[]): string[] {
  const names = [...new Set(entries.flatMap(({ figures }) => Object.keys(figures)))]
    .filter((name) => beginnings.length === 0 || beginnings.some((beginning) => name.startsWith(beginning)))
    .toSorted();
  const width = Math.max(0, ...names.map(({ length }) => length));
  return names.map((name) => {
    const runs = entries.filter(({ figures }) => figures[name] !== undefined);
    const shown = runs.slice(-RUNS_SHOWN).map(({ figures, commit }) => `${figures[name]} (${commit})`);
    const [before, last] = runs.slice(-2).map(({ figures }) => figures[name]!);
    const ratio = last === undefined || !before ? '' : `  ${(last / before).toFixed(2)} ×`;
    return `${name.padEnd(width)}  ${shown.join(' → ')}${ratio}`;
  });
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
  const lines = historyLines(entries, beginnings);
  process.stdout.write(lines.length === 0 ? 'no such figure\n' : `${lines.join('\n')}\n`);
}
