/** The crawl scenario: everybody crawls the same site, in turns, in one run. */
import type { Contender } from './contenders/contender.ts';
import { crawleeContender } from './contenders/crawlee.ts';
import { rawContender } from './contenders/raw.ts';
import { seineContender } from './contenders/seine.ts';
import { spiderContender } from './contenders/spider.ts';
import { type Check, checkOnce, measureOnce, type Sample } from './measure.ts';
import { openOrigin } from './open-origin.ts';
import type { Origin } from './origin-nginx.ts';
import { judgeCost } from './report/cost-section.ts';
import { crawlChart } from './report/crawl-chart.ts';
import { crawlSection, longCrawlSection } from './report/crawl-section.ts';
import { printRows } from './report/crawl-table.ts';
import { type CrawlData, judge, type Row, summarise } from './report/crawl-verdict.ts';
import { describeMachine, describeVersions } from './report/machine.ts';
import { readmeSection } from './report/readme-section.ts';
import type { BenchOptions, Scenario, ScenarioResult } from './scenario.ts';
import type { Scratch } from './scratch.ts';
import { writeSite } from './site.ts';

const ATTEMPTS_MAX = 4;
const say = (text: string): void => void process.stderr.write(`${text}\n`);

function chooseContenders(options: BenchOptions): Contender[] {
  const all = [
    rawContender(1),
    rawContender(2),
    spiderContender('links'),
    seineContender('links'),
    crawleeContender('links', options.crawleePages),
    spiderContender('select'),
    seineContender('select'),
    crawleeContender('select', options.crawleePages),
  ];
  return all.filter(({ id, mode }) => {
    if (options.only.length > 0 && !options.only.some((prefix) => id.startsWith(prefix))) return false;
    // The bars of both modes compare with the bound and with plain spider-rs.
    return options.mode === 'both' || mode === options.mode || id === 'spider-links' || id === 'raw-1';
  });
}

/** Measures again while other programs take more than the share allowed, and keeps the quietest. */
async function measureQuietly(
  scratch: Scratch,
  origin: Origin,
  contender: Contender,
  options: BenchOptions,
): Promise<Sample> {
  let best = await measureOnce(scratch, origin, contender, options.pages);
  for (let attempt = 1; attempt < ATTEMPTS_MAX && best.othersShare > options.quietShare; attempt++) {
    say(`  ${contender.id.padEnd(16)} others took ${Math.round(best.othersShare * 100)} %, once more`);
    const sample = await measureOnce(scratch, origin, contender, options.pages);
    if (sample.othersShare < best.othersShare) best = sample;
  }
  return best;
}

interface Tally {
  contender: Contender;
  samples: Sample[];
  check?: Check;
  missing?: string;
}

async function runTurn(tally: Tally, origin: Origin, options: BenchOptions, round: number, scratch: Scratch) {
  const { contender } = tally;
  if (tally.missing !== undefined) return;
  try {
    if (round === 0) {
      tally.check = await checkOnce(scratch, origin, contender, options.pages);
      const { distinct, repeated, refused } = tally.check;
      say(`  ${contender.id.padEnd(16)} check: ${distinct} pages, ${repeated} twice, ${refused} refused`);
      return;
    }
    const sample = await measureQuietly(scratch, origin, contender, options);
    tally.samples.push(sample);
    const rate = Math.round(sample.pages / sample.seconds);
    const memory = Math.round(sample.peakBytes / 1e6);
    const others = Math.round(sample.othersShare * 100);
    say(
      `  ${contender.id.padEnd(16)} ${rate} pages/s, ${memory} MB${others > 5 ? `, others took ${others} %` : ''}`,
    );
  } catch (error) {
    tally.missing = error instanceof Error ? error.message : String(error);
    say(`  ${contender.id.padEnd(16)} left out: ${tally.missing}`);
  }
}

/** Lets contenders crawl one site in turns. */
async function crawlInTurns(
  contenders: readonly Contender[],
  options: BenchOptions,
  scratch: Scratch,
): Promise<CrawlData> {
  const site = scratch.memoryFolder('site');
  say(`Writing ${options.pages} pages (${options.markup}) to ${site} …`);
  const { bytes } = writeSite(site, options.pages, options.markup);
  const origin = await openOrigin(scratch, site, options.originWorkers);
  const tallies: Tally[] = contenders.map((contender) => {
    const missing = contender.missing();
    return { contender, samples: [], ...(missing === undefined ? {} : { missing }) };
  });
  for (let round = 0; round <= options.rounds; round++) {
    say(
      round === 0 ? 'Check round (logged by the origin, not timed)' : `Round ${round} of ${options.rounds}`,
    );
    for (const tally of tallies) await runTurn(tally, origin, options, round, scratch);
  }
  await origin.close();
  scratch.remove(site);
  const rows: Row[] = tallies.map(({ contender, samples, check, missing }) =>
    summarise(contender, samples, check, missing),
  );
  const data: CrawlData = {
    date: new Date().toISOString(),
    machine: describeMachine(),
    versions: { ...describeVersions(), origin: origin.kind },
    site: { pages: options.pages, bytesMean: Math.round(bytes / options.pages), markup: options.markup },
    rounds: options.rounds,
    rows,
  };
  printRows(data);
  return data;
}

async function run(options: BenchOptions, scratch: Scratch): Promise<ScenarioResult> {
  const data = await crawlInTurns(chooseContenders(options), options, scratch);
  const cpuMicros = data.rows.find(({ id }) => id === 'seine-links')?.measured?.cpuMicros;
  const verdicts = [...judge(data.rows), judgeCost(cpuMicros)];
  return {
    verdicts,
    data,
    section: crawlSection(data, verdicts),
    readme: readmeSection(data),
    files: { 'benchmarks.svg': crawlChart(data) },
  };
}

export const scenario: Scenario = {
  name: 'crawl',
  summary: 'pages per second against the raw bound, spider-rs and Crawlee',
  run,
};

const LONGER = 5;
/** A few seconds for each contender make rounds that differ less. */
const LONG_ROUNDS_MAX = 2;

/** spider-rs that hands its pages to JavaScript does not reach the end of a site of this size, and Crawlee gets no more pages here either. */
function isOfLongCrawl({ id }: Contender): boolean {
  return id !== 'spider-select' && !id.startsWith('crawlee');
}

async function runLong(given: BenchOptions, scratch: Scratch): Promise<ScenarioResult> {
  const rounds = Math.min(given.rounds, LONG_ROUNDS_MAX);
  const options = { ...given, pages: given.pages * LONGER, rounds };
  const data = await crawlInTurns(chooseContenders(options).filter(isOfLongCrawl), options, scratch);
  const verdicts = judge(data.rows).filter(({ bar }) => !bar.includes('Crawlee'));
  return { verdicts, data, section: longCrawlSection(data, verdicts) };
}

export const longScenario: Scenario = {
  name: 'crawl-long',
  summary: 'the same with five times the pages, without Crawlee',
  run: runLong,
};
