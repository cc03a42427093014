/** The media scenario: pictures from a list of URLs, Seine against the loop that anybody would write. */
import { loopContender, type MediaContender, seineMediaContender } from './contenders/media.ts';
import { measureOnce, type Sample } from './measure.ts';
import { PICTURE_BYTES, writeMediaSite } from './media-site.ts';
import { openOrigin } from './open-origin.ts';
import type { Origin } from './origin-nginx.ts';
import { type Row, summarise } from './report/crawl-verdict.ts';
import { describeMachine, describeVersions } from './report/machine.ts';
import { judgeMedia, type MediaData, mediaSection, printMedia } from './report/media-section.ts';
import type { BenchOptions, Scenario, ScenarioResult } from './scenario.ts';
import type { Scratch } from './scratch.ts';

/** 20,000 pages of 24 KB, or 8,000 pictures of 80 KB: runs of about the same length. */
const PICTURES_PER_PAGE = 0.4;
const say = (text: string): void => void process.stderr.write(`${text}\n`);

interface Place {
  scratch: Scratch;
  origin: Origin;
  pictures: number;
}

interface Tally {
  contender: MediaContender;
  samples: Sample[];
  stored: number;
  missing?: string;
}

const ATTEMPTS_MAX = 4;

/** Again while other programs take more than the share allowed; the quietest run counts. */
async function runTurn(tally: Tally, place: Place, options: BenchOptions, isTimed: boolean): Promise<void> {
  if (tally.missing !== undefined) return;
  const { contender } = tally;
  const { scratch, origin, pictures } = place;
  try {
    let best: Sample | null = null;
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
      const sample = await measureOnce(scratch, origin, contender, pictures);
      tally.stored = contender.stored();
      if (sample.pages !== pictures) throw new Error(`${sample.pages} of ${pictures} pictures`);
      const others = Math.round(sample.othersShare * 100);
      const rate = Math.round(sample.pages / sample.seconds);
      say(`  ${contender.id.padEnd(16)} ${rate} pictures/s, ${tally.stored} files, others took ${others} %`);
      if (best === null || sample.othersShare < best.othersShare) best = sample;
      if (!isTimed || best.othersShare <= options.quietShare) break;
    }
    if (isTimed) tally.samples.push(best!);
  } catch (error) {
    tally.missing = error instanceof Error ? error.message : String(error);
    say(`  ${contender.id.padEnd(16)} left out: ${tally.missing}`);
  }
}

async function run(options: BenchOptions, scratch: Scratch): Promise<ScenarioResult> {
  const folder = scratch.memoryFolder('pictures');
  const pictures = Math.round(options.pages * PICTURES_PER_PAGE);
  say(`Writing ${pictures} pictures to ${folder} …`);
  const { paths, distinct } = writeMediaSite(folder, pictures);
  const origin = await openOrigin(scratch, folder, options.originWorkers);
  const plan = { paths, newFolder: (name: string) => scratch.diskFolder(`media-${name}`) };
  const contenders = [
    loopContender(plan),
    seineMediaContender(plan, 'none'),
    seineMediaContender(plan, 'webdataset'),
  ];
  const tallies: Tally[] = contenders.map((contender) => {
    const missing = contender.missing();
    return { contender, samples: [], stored: 0, ...(missing === undefined ? {} : { missing }) };
  });
  for (let round = 0; round <= options.rounds; round++) {
    say(round === 0 ? 'Warm-up' : `Round ${round} of ${options.rounds}`);
    for (const tally of tallies) await runTurn(tally, { scratch, origin, pictures }, options, round > 0);
  }
  await origin.close();
  scratch.remove(folder);
  const rows: Row[] = tallies.map(({ contender, samples, missing }) =>
    summarise({ ...contender, mode: 'links' }, samples, undefined, missing),
  );
  const data: MediaData = {
    date: new Date().toISOString(),
    machine: describeMachine(),
    versions: { ...describeVersions(), origin: origin.kind },
    pictures,
    distinct,
    pictureBytes: PICTURE_BYTES,
    rounds: options.rounds,
    rows,
    stored: Object.fromEntries(tallies.map(({ contender, stored }) => [contender.id, stored])),
  };
  const verdicts = judgeMedia(data);
  printMedia(data);
  return { verdicts, data, section: mediaSection(data, verdicts) };
}

export const scenario: Scenario = {
  name: 'media',
  summary: 'pictures per second from a list of URLs, against a bare loop',
  run,
};
