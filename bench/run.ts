import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { readOptions } from '../scripts/read-options.ts';
import { scenario as browser } from './browser.ts';
import { BENCH_FOLDER } from './contenders/contender.ts';
import { scenario as crawl, longScenario as crawlLong } from './crawl.ts';
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
import { scenario as starts } from './starts.ts';

const SCENARIOS: readonly Scenario[] = [crawl, crawlLong, flat, media, fleet, browser, service, many, starts];
/** Takes hours: only when it is named. */
const LONG: readonly Scenario[] = [scale];
/** Those that compare Seine only with itself. */
const WITHOUT_PEERS = ['flat', 'service', 'many', 'starts', 'scale'];

const { values, words } = readOptions({
  start: 'npm run bench --',
  about: `Runs the named scenarios (all without a name) and writes docs/benchmarks.md.

${[...SCENARIOS, ...LONG].map(({ name, summary }) => `  ${name.padEnd(10)} ${summary}`).join('\n')}

  history [figure …]   runs nothing: how each figure moved over the runs that were written down

parts: raw spider seine crawlee; of many: share urgent finished; of starts: commands functions chromium; of scale: sqlite skewed postgres`,
  words: { shown: 'scenario' },
  options: {
    pages: {
      ...{ count: null, shown: '20000' },
      does: 'pages of the site; five times as many in crawl-long, 0.4 times as many pictures, 0.015 in browsers',
    },
    rounds: { count: null, shown: '3', does: 'timed rounds, after one check round' },
    mode: { oneOf: ['both', 'links', 'select'], does: 'what contenders do with a page' },
    only: {
      text: '',
      does: 'beginnings of parts, separated by commas',
      shown: 'all',
    },
    tasks: {
      ...{ count: null, shown: '100000000' },
      does: 'tasks of the largest store of scale; its other stores have a fifth',
    },
    keep: {
      ...{ text: null, shown: 'removed at the end' },
      does: 'folder where the SQLite stores of scale stay, to be filled further or measured again',
    },
    'crawlee-pages': { count: null, shown: '1500', does: 'pages for Crawlee, which is slow' },
    markup: { oneOf: ['plain', 'rich'], does: 'of the pages; the bars are judged on plain ones' },
    'origin-workers': { count: 1, does: 'nginx workers' },
    quiet: { count: 100, does: 'percent: repeat a run (3 times at most) when other programs took more' },
    dir: { text: null, shown: 'a temporary folder', does: 'where the contenders keep their data' },
    quick: { flag: true, does: '2000 pages, one round, 300 pages for Crawlee, nothing written' },
    'no-write': { flag: true, does: 'leave docs/ and bench/results/ as they are' },
    check: { flag: true, does: 'exit with 1 when a bar is not met or could not be judged' },
  },
});

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

if (words[0] === 'history') {
  printHistory(words.slice(1));
  process.exit(0);
}
const { quick } = values;
const options: BenchOptions = {
  pages: values.pages ?? (quick ? 2_000 : 20_000),
  rounds: values.rounds ?? (quick ? 1 : 3),
  crawleePages: values['crawlee-pages'] ?? (quick ? 300 : 1_500),
  originWorkers: values['origin-workers'],
  quietShare: values.quiet / 100,
  markup: values.markup,
  mode: values.mode,
  only: values.only.split(',').filter((id) => id !== ''),
  write: !quick && !values['no-write'],
  tasks: values.tasks ?? (quick ? 2_000_000 : 100_000_000),
  keep: values.keep,
};
const names = [...SCENARIOS, ...LONG].map(({ name }) => name);
const unknown = words.find((word) => !names.includes(word));
if (unknown !== undefined) {
  process.stderr.write(`unknown scenario '${unknown}'; there are ${names.join(', ')}\n`);
  process.exit(2);
}
if (words.length === 0 || words.some((name) => !WITHOUT_PEERS.includes(name))) installPeers();
const scratch = openScratch(values.dir ?? undefined);
let allMet = true;
const figures: Record<string, number> = {};
try {
  const wanted = [...SCENARIOS, ...LONG].filter(({ name }) => words.includes(name));
  for (const scenario of words.length > 0 ? wanted : SCENARIOS) {
    const result = await scenario.run(options, scratch);
    printVerdicts(result.verdicts);
    allMet &&= result.verdicts.every(({ passed }) => passed === true);
    if (!options.write) continue;
    writeScenario(scenario.name, result);
    Object.assign(figures, figuresOf(scenario.name, result.figures ?? result.data));
  }
} finally {
  appendHistory(figures);
  await scratch.end();
}
if (values.check && !allMet) process.exitCode = 1;
