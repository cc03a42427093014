import { join } from 'node:path';
import { openFolderBlobs } from '../../../src/blobs/folder-blobs.ts';
import type { Blobs } from '../../../src/ports/blobs.ts';
import { lastJson, startSeine, temporaryFolder } from '../seine-process.ts';
import { countByPath, pathOf, startLinkedSite } from '../sites/linked-site.ts';
import { checkFolder } from './check-folder.ts';
import { seededRandom } from './crash-harness.ts';

/** A part of a fleet that is broken and mended again and again while a site is crawled. */
interface FleetFault {
  /** For the table: `kill -9 of a worker`. */
  name: string;
  /** What `seine run` needs beside the ordinary. */
  args: string[];
  env?: Record<string, string>;
  /** Breaks it once, and mends it. */
  strike(random: () => number): Promise<void>;
  /** It strikes the run itself, which is then started again. */
  killsRun?: true;
  /** Where the pages are; a folder of the run otherwise. */
  openBlobs?(): Blobs;
  stop(): Promise<void>;
}

/** What a fault is made of: opened in a folder that all processes of the fleet share. */
export type OpenFault = (folder: string) => Promise<FleetFault>;

export interface FleetCrashFacts {
  fault: string;
  seed: number;
  strikes: number;
  pages: number;
  /** Pages without a done task at the end. */
  lost: number;
  /** Done tasks whose page cannot be read. */
  unreadable: number;
  /** Requests beyond one a page. */
  refetched: number;
  /** From the mending until the next page was asked for. */
  slowestReturnMs: number;
  seconds: number;
}

interface FleetCrashOptions {
  strikes: number;
  pages: number;
  seed: number;
  onStrike?: (strike: number) => void;
}

const BATCH_SIZE = 20;
/** A page takes a while, so that there is something under way when the fault strikes. */
const PAGE_MS = 5;

/** Crawls a site in one go while one part of the fleet is struck; the site's own log is the judge. */
export async function runFleetCrashes(open: OpenFault, options: FleetCrashOptions): Promise<FleetCrashFacts> {
  const { strikes, pages, seed } = options;
  const random = seededRandom(seed);
  const startedAt = performance.now();
  const site = await startLinkedSite({ pages, delayMs: PAGE_MS });
  const folder = temporaryFolder();
  const fault = await open(folder.path);
  const facts: FleetCrashFacts = {
    ...{ fault: fault.name, seed, strikes: 0, pages, lost: 0, unreadable: 0 },
    ...{ refetched: 0, slowestReturnMs: 0, seconds: 0 },
  };
  const dir = join(folder.path, 'seine');
  const args = ['run', site.url, '--follow', '--rate', 'max', '--parallel', '16', '--allow-private'];
  args.push('--batch-size', String(BATCH_SIZE), '--dir', dir, '--name', 'crash', '--json', ...fault.args);
  const start = () => startSeine(args, fault.env ? { env: fault.env } : {});
  let run = start();
  try {
    const perStrike = Math.max(1, Math.floor((pages * 0.6) / strikes));
    while (facts.strikes < strikes) {
      let ended = run.finished.then(() => 'ended' as const);
      const asked = site.log.length + 1 + Math.floor(random() * perStrike);
      if ((await Promise.race([site.requests(asked), ended])) === 'ended') break;
      await fault.strike(random);
      if (fault.killsRun) {
        await run.killTree();
        run = start();
        ended = run.finished.then(() => 'ended' as const);
      }
      facts.strikes++;
      options.onStrike?.(facts.strikes);
      const mendedAt = performance.now();
      await Promise.race([site.requests(site.log.length + 1), ended]);
      facts.slowestReturnMs = Math.max(facts.slowestReturnMs, performance.now() - mendedAt);
    }
    const result = await run.finished;
    if (result.code !== 0) throw new Error(`the run ended with code ${result.code}: ${result.stderr}`);
    const blobs = fault.openBlobs?.() ?? (await openFolderBlobs(join(folder.path, 'blobs')));
    const { doneUrls, unreadable } = await checkFolder(dir, 'crash', 1, blobs);
    facts.unreadable = unreadable.length;
    const counts = countByPath(site.log);
    for (let index = 0; index < pages; index++) {
      const count = counts.get(pathOf(index)) ?? 0;
      if (count === 0 || !doneUrls.has(new URL(pathOf(index), site.url).href)) facts.lost++;
      else facts.refetched += count - 1;
    }
    const summary = lastJson(result);
    if (summary.done !== pages || summary.state !== 'done')
      throw new Error(`the summary is wrong: ${JSON.stringify(summary)}`);
  } finally {
    await run.killTree();
    await fault.stop();
    await site.close();
    folder.remove();
  }
  facts.seconds = Math.round((performance.now() - startedAt) / 1_000);
  return facts;
}
