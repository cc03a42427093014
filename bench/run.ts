/** `npm run bench`: runs the named scenarios (all without a name) and writes docs/benchmarks.md. */
import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { scenario as browser } from './browser.ts';
import { BENCH_FOLDER } from './contenders/contender.ts';
import { scenario as crawl } from './crawl.ts';
import { scenario as flat } from './flat.ts';
import { scenario as fleet } from './fleet.ts';
import { appendHistory, figuresOf, printHistory } from './history.ts';
import { scenario as many } from './many.ts';
import { scenario as media } from './media.ts';
import { writeScenario } from './report/document.ts';
import { scenario as scale } from './scale.ts';
import type { BenchOptions, Scenario, Verdict } from './scenario.ts';
import { openScratch } from './scratch.ts';
import { scenario as service } from './service.ts';

const SCENARIOS: readonly Scenario[] = [crawl, flat, media, fleet, browser, service, many];
/** Takes hours: only when it is named. */
const LONG: readonly Scenario[] = [scale];
/** Those that compare Seine only with itself. */
const WITHOUT_PEERS = ['flat', 'service', 'many', 'scale'];

const HELP = `npm run bench -- [scenario …] [options]

Scenarios
${[...SCENARIOS, ...LONG].map(({ name, summary }) => `  ${name.padEnd(10)} ${summary}`).join('\n')}

  history [figure …]   runs nothing: how each figure moved over the runs that were written down

Options
  --pages <n>          pages of the site (20000); pictures are 0.4 times as many, pages in browsers 0.015
  --rounds <n>         timed rounds, after one check round (3)
  --mode <m>           links, select or both (both)
  --only <ids>         comma-separated beginnings of: raw spider seine crawlee; of many: share urgent finished;
                       of scale: sqlite skewed postgres
  --tasks <n>          tasks of the largest store of scale (100000000); its other stores have a fifth
  --crawlee-pages <n>  pages for Crawlee, which is slow (1500)
  --markup <m>         plain or rich (plain; the bars are judged on it)
  --origin-workers <n> nginx workers (1)
  --quiet <percent>    repeat a run (3 times at most) when other programs took more than this
  --dir <folder>       where the contenders keep their data (the system's temp folder)
  --quick              2000 pages, one round, 300 pages for Crawlee, nothing written
  --no-write           leave docs/ and bench/results/ as they are
  --check              exit with 1 when a bar is not met or could not be judged
`;

function fail(message: string): never {
  process.stderr.write(`${message}\n`);
  process.exit(2);
}

function readArguments() {
  const text = { type: 'string' } as const;
  const flag = { type: 'boolean' } as const;
  try {
    return parseArgs({
      allowPositionals: true,
      options: {
        ...{ pages: text, rounds: text, mode: text, only: text, markup: text, dir: text, tasks: text },
        ...{ 'crawlee-pages': text, 'origin-workers': text, quiet: text },
        ...{ quick: flag, 'no-write': flag, check: flag, help: flag },
      },
    });
  } catch (error) {
    return fail(`${error instanceof Error ? error.message : String(error)}\nTry --help.`);
  }
}

function readCount(name: string, text: string | undefined, fallback: number): number {
  const value = text === undefined ? fallback : Number(text);
  return Number.isInteger(value) && value > 0 ? value : fail(`--${name} needs a whole number above 0`);
}

function readChoice<T extends string>(name: string, text: string | undefined, choices: readonly T[]): T {
  const value = (text ?? choices[0]) as T;
  return choices.includes(value) ? value : fail(`--${name} is one of ${choices.join(', ')}`);
}

/** The peers live in bench/node_modules; a fresh clone has none. */
function installPeers(): void {
  if (existsSync(join(BENCH_FOLDER, 'node_modules', '@crawlee', 'playwright'))) return;
  process.stderr.write('Installing the peers in bench/ …\n');
  try {
    execFileSync('npm', ['install', '--no-audit', '--no-fund'], {
      cwd: BENCH_FOLDER,
      stdio: ['ignore', 2, 2],
    });
  } catch {
    process.stderr.write('The peers could not be installed; they are left out.\n');
  }
}

function printVerdicts(verdicts: Verdict[]): void {
  process.stdout.write('\n');
  for (const { bar, measured, passed } of verdicts) {
    const word = passed === undefined ? 'not judged' : passed ? 'met' : 'NOT MET';
    process.stdout.write(`  ${word.padEnd(10)} ${bar}: ${measured}\n`);
  }
}

const { values, positionals } = readArguments();
if (values.help) {
  process.stdout.write(HELP);
  process.exit(0);
}
if (positionals[0] === 'history') {
  printHistory(positionals.slice(1));
  process.exit(0);
}
const quick = values.quick === true;
const options: BenchOptions = {
  pages: readCount('pages', values.pages, quick ? 2_000 : 20_000),
  rounds: readCount('rounds', values.rounds, quick ? 1 : 3),
  crawleePages: readCount('crawlee-pages', values['crawlee-pages'], quick ? 300 : 1_500),
  originWorkers: readCount('origin-workers', values['origin-workers'], 1),
  quietShare: readCount('quiet', values.quiet, 100) / 100,
  markup: readChoice('markup', values.markup, ['plain', 'rich']),
  mode: readChoice('mode', values.mode, ['both', 'links', 'select']),
  only: values.only?.split(',').filter((id) => id !== '') ?? [],
  write: !quick && values['no-write'] !== true,
  tasks: readCount('tasks', values.tasks, quick ? 2_000_000 : 100_000_000),
};
for (const name of positionals) {
  if (![...SCENARIOS, ...LONG].some((scenario) => scenario.name === name))
    fail(`unknown scenario ${name}\nTry --help.`);
}
if (positionals.length === 0 || positionals.some((name) => !WITHOUT_PEERS.includes(name))) installPeers();
const scratch = openScratch(values.dir);
let allMet = true;
const figures: Record<string, number> = {};
try {
  const wanted = [...SCENARIOS, ...LONG].filter(({ name }) => positionals.includes(name));
  for (const scenario of positionals.length > 0 ? wanted : SCENARIOS) {
    const result = await scenario.run(options, scratch);
    printVerdicts(result.verdicts);
    allMet &&= result.verdicts.every(({ passed }) => passed === true);
    if (!options.write) continue;
    writeScenario(scenario.name, result);
    Object.assign(figures, figuresOf(scenario.name, result.data));
  }
} finally {
  appendHistory(figures);
  await scratch.end();
}
if (values.check && !allMet) process.exitCode = 1;
