/** The starts scenario: how long commands and functions take until they are of use. */
import { loadavg } from 'node:os';
import { describeMachine, describeVersions } from './report/machine.ts';
import {
  judgeStarts,
  printStarts,
  type StartRow,
  type StartsData,
  startsSection,
} from './report/starts-section.ts';
import type { BenchOptions, Scenario, ScenarioResult } from './scenario.ts';
import type { Scratch } from './scratch.ts';
import {
  type FirstRequest,
  openFirstRequest,
  prepareFolder,
  type Start,
  timeNode,
  timeRun,
  timeStatus,
} from './starts/commands.ts';
import { openBareChromium, openBrowserFunction, openHttpFunction } from './starts/functions.ts';

/** Starts are short: there may be more of them than rounds of other scenarios. */
const SHORT_TIMES = 7;

interface Contender {
  id: StartRow['id'];
  start(): Promise<Start>;
  close?(): Promise<void>;
}

interface Tally {
  id: StartRow['id'];
  starts: Start[];
  missing?: string;
}

const say = (text: string): void => void process.stderr.write(`${text}\n`);
const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** Each in turns with what it is compared with, so that a slow moment hits both; one start before is not counted. */
async function measure(
  wanted: readonly { id: StartRow['id']; open(): Promise<Omit<Contender, 'id'>> }[],
  rounds: number,
): Promise<Tally[]> {
  const tallies: Tally[] = wanted.map(({ id }) => ({ id, starts: [] }));
  const opened: (Omit<Contender, 'id'> | null)[] = [];
  try {
    for (const [at, { open }] of wanted.entries())
      opened.push(await open().catch((error: unknown) => giveUp(tallies[at]!, error)));
    for (let round = 0; round <= rounds; round++) {
      for (const [at, tally] of tallies.entries()) {
        if (tally.missing !== undefined) continue;
        const start = await opened[at]!.start().catch((error: unknown) => giveUp(tally, error));
        if (start !== null && round > 0) tally.starts.push(start);
      }
    }
  } finally {
    for (const contender of opened) await contender?.close?.();
  }
  for (const { id, starts } of tallies)
    say(`  ${id.padEnd(18)} ${starts.map(({ ms }) => Math.round(ms)).join(' ')} ms`);
  return tallies;
}

function giveUp(tally: Tally, error: unknown): null {
  tally.missing = messageOf(error);
  say(`  ${tally.id} left out: ${tally.missing}`);
  return null;
}

async function measureAll(
  { rounds, only }: BenchOptions,
  scratch: Scratch,
  site: FirstRequest,
): Promise<Tally[]> {
  const wants = (part: string) => only.length === 0 || only.some((id) => part.startsWith(id));
  const short = rounds * SHORT_TIMES;
  const tallies: Tally[] = [];
  if (wants('commands')) {
    const folder = await prepareFolder(scratch, site);
    tallies.push(
      ...(await measure(
        [
          { id: 'node', open: async () => ({ start: () => timeNode(scratch, folder) }) },
          { id: 'status', open: async () => ({ start: () => timeStatus(scratch, folder) }) },
          { id: 'run', open: async () => ({ start: () => timeRun(scratch, site) }) },
        ],
        short,
      )),
    );
  }
  if (wants('functions'))
    tallies.push(
      ...(await measure(
        [
          { id: 'function-bare', open: () => openHttpFunction(scratch, { bare: true }) },
          { id: 'function-http', open: () => openHttpFunction(scratch, { bare: false }) },
        ],
        short,
      )),
    );
  if (wants('chromium'))
    tallies.push(
      ...(await measure(
        [
          { id: 'chromium-bare', open: () => openBareChromium(scratch, site) },
          { id: 'function-chromium', open: () => openBrowserFunction(scratch, site.url) },
        ],
        rounds,
      )),
    );
  return tallies;
}

function median(values: readonly number[]): number {
  const sorted = values.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

function rowOf({ id, starts, missing }: Tally): StartRow {
  if (missing !== undefined || starts.length === 0) return { id, missing: missing ?? 'no start' };
  const times = starts.map(({ ms }) => ms);
  return {
    id,
    measured: {
      ms: median(times),
      fastestMs: Math.min(...times),
      slowestMs: Math.max(...times),
      // The kernel counts it in steps of 10 ms: of many starts the mean says more than the median.
      cpuMs: starts.reduce((sum, { cpuMs }) => sum + cpuMs, 0) / starts.length,
    },
  };
}

async function run(options: BenchOptions, scratch: Scratch): Promise<ScenarioResult> {
  const load = loadavg()[0]!;
  const site = await openFirstRequest();
  try {
    const rows = (await measureAll(options, scratch, site)).map(rowOf);
    const data: StartsData = {
      date: new Date().toISOString(),
      machine: describeMachine(),
      versions: describeVersions(),
      load,
      rounds: options.rounds,
      shortRounds: options.rounds * SHORT_TIMES,
      rows: rows.map((row) => withRatio(row, rows)),
    };
    const verdicts = judgeStarts(data);
    printStarts(data);
    return { verdicts, data, section: startsSection(data, verdicts) };
  } finally {
    site.close();
  }
}

/** What each is compared with. */
const BARE: Partial<Record<StartRow['id'], StartRow['id']>> = {
  status: 'node',
  run: 'node',
  'function-http': 'function-bare',
  'function-chromium': 'chromium-bare',
};

function withRatio(row: StartRow, rows: readonly StartRow[]): StartRow {
  const bare = rows.find(({ id }) => id === BARE[row.id])?.measured;
  if (!row.measured || !bare) return row;
  const { ms, cpuMs } = row.measured;
  return { ...row, measured: { ...row.measured, ratio: ms / bare.ms, cpuRatio: cpuMs / bare.cpuMs } };
}

export const scenario: Scenario = {
  name: 'starts',
  summary: 'cold starts: status, run until its first request, functions of Lambda with and without Chromium',
  run,
};
