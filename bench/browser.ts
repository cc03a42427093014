/** The browser scenario: pages with a full-page picture each, and without, Seine against Crawlee, with the same Chromium. */
import { statSync } from 'node:fs';
import { findChromium } from '../src/fetch/browser/process/find-chromium.ts';
import {
  type BrowserContender,
  crawleeBrowserContender,
  PARALLEL,
  seineBrowserContender,
} from './contenders/browser.ts';
import { measureOnce, type Sample } from './measure.ts';
import { openOrigin } from './open-origin.ts';
import type { Origin } from './origin-nginx.ts';
import {
  type BrowserData,
  type BrowserRow,
  browserSection,
  judgeBrowser,
  printBrowser,
} from './report/browser-section.ts';
import { summarise } from './report/crawl-verdict.ts';
import { describeMachine, describeVersions } from './report/machine.ts';
import type { BenchOptions, Scenario, ScenarioResult } from './scenario.ts';
import type { Scratch } from './scratch.ts';
import { pagePath, writeSite } from './site.ts';

/** A browser takes as long for one page as HTTP for hundreds: 20,000 pages become 300. */
const PAGES_SHARE = 0.015;
const PICTURE_BYTES_MIN = 10_000;
const megabytes = (bytes: number): number => Math.round(bytes / 1e6);
const say = (text: string): void => void process.stderr.write(`${text}\n`);

interface Tally {
  contender: BrowserContender;
  samples: Sample[];
  /** On average, of the last run. */
  pictureBytes: number;
  missing?: string;
}

async function runTurn(
  tally: Tally,
  place: { scratch: Scratch; origin: Origin; pages: number },
  isTimed: boolean,
): Promise<void> {
  if (tally.missing !== undefined) return;
  const { contender } = tally;
  try {
    const sample = await measureOnce(place.scratch, place.origin, contender, place.pages);
    const { count, bytesMin, bytesMean } = contender.pictures();
    const wanted = contender.takesPictures ? place.pages : 0;
    if (sample.pages !== place.pages || count !== wanted)
      throw new Error(`${sample.pages} pages and ${count} pictures of ${place.pages}`);
    if (contender.takesPictures && bytesMin < PICTURE_BYTES_MIN)
      throw new Error(`a picture of only ${bytesMin} bytes`);
    const rate = (sample.pages / sample.seconds).toFixed(1);
    const others = Math.round(sample.othersShare * 100);
    say(
      `  ${contender.id.padEnd(16)} ${rate} pages/s, ${megabytes(sample.peakBytes)} MB (${megabytes(sample.peakShareBytes)} shared once), others took ${others} %`,
    );
    tally.pictureBytes = bytesMean;
    if (isTimed) tally.samples.push(sample);
  } catch (error) {
    tally.missing = error instanceof Error ? error.message : String(error);
    say(`  ${contender.id.padEnd(16)} left out: ${tally.missing}`);
  }
}

async function run(options: BenchOptions, scratch: Scratch): Promise<ScenarioResult> {
  const folder = scratch.memoryFolder('browser');
  const pages = Math.max(20, Math.round(options.pages * PAGES_SHARE));
  say(`Writing ${pages} pages to ${folder} …`);
  writeSite(folder, pages, 'rich');
  const origin = await openOrigin(scratch, folder, options.originWorkers);
  const chromium = await findChromium(null);
  const paths = Array.from({ length: pages }, (_, index) => pagePath(index));
  const plan = { paths, chromium, newFolder: (name: string) => scratch.diskFolder(`browser-${name}`) };
  const sizeOf = (file: string) => statSync(file).size;
  const contenders = [
    crawleeBrowserContender(plan, sizeOf, true),
    seineBrowserContender(plan, sizeOf, 'fast'),
    seineBrowserContender(plan, sizeOf, 'small'),
    crawleeBrowserContender(plan, sizeOf, false),
    seineBrowserContender(plan, sizeOf, 'html'),
  ].filter(({ id }) => options.only.length === 0 || options.only.some((start) => id.startsWith(start)));
  const tallies: Tally[] = contenders.map((contender) => {
    const missing = contender.missing();
    return {
      contender,
      samples: [],
      pictureBytes: Number.NaN,
      ...(missing === undefined ? {} : { missing }),
    };
  });
  for (let round = 0; round <= options.rounds; round++) {
    say(round === 0 ? 'Warm-up' : `Round ${round} of ${options.rounds}`);
    for (const tally of tallies) await runTurn(tally, { scratch, origin, pages }, round > 0);
  }
  await origin.close();
  scratch.remove(folder);
  const rows: BrowserRow[] = tallies.map(({ contender, samples, missing, pictureBytes }) => ({
    ...summarise({ ...contender, mode: 'links' }, samples, undefined, missing),
    pictureBytes,
  }));
  const data: BrowserData = {
    date: new Date().toISOString(),
    machine: describeMachine(),
    versions: { ...describeVersions(), origin: origin.kind },
    chromium: chromium.from,
    pages,
    parallel: PARALLEL,
    rounds: options.rounds,
    rows,
  };
  const verdicts = judgeBrowser(data);
  printBrowser(data);
  return { verdicts, data, section: browserSection(data, verdicts) };
}

export const scenario: Scenario = {
  name: 'browser',
  summary: 'pages per second with full-page pictures, against Crawlee with the same Chromium',
  run,
};
