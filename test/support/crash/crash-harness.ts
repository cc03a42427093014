import { lastJson, startSeine, temporaryFolder } from '../seine-process.ts';
import { countByPath, pathOf, startLinkedSite } from '../sites/linked-site.ts';
import { checkFolder } from './check-folder.ts';

interface CrashFacts {
  seed: number;
  kills: number;
  pages: number;
  /** Pages without a done task at the end. */
  lost: number;
  /** Tasks that were done before a kill and were not afterwards. */
  forgotten: number;
  unreadable: number;
  /** Folders that could not be opened after a kill, or whose counters or pages were wrong. */
  failedOpens: number;
  /** Requests beyond one a page. */
  refetched: number;
  inFlightMax: number;
  slowestResumeMs: number;
  seconds: number;
}

/** The same numbers for the same seed, so that a failing run can be repeated. */
export function seededRandom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const BATCH_SIZE = 20;
const WORKERS = 2;
/** Open batches of one host without a gap: two for each worker. */
const IN_FLIGHT_MAX = BATCH_SIZE * WORKERS * 2;

/**
 * Crawls a site while the whole process tree is killed again and again, at moments chosen by the
 * seed: some before the first request, some in the middle of batches, some while starting up.
 * Between kills the folder is opened and checked, before anything could repair it.
 */
export async function runCrashes(options: {
  kills: number;
  pages: number;
  seed: number;
  onKill?: (kill: number) => void;
}): Promise<CrashFacts> {
  const { kills, pages, seed } = options;
  const random = seededRandom(seed);
  const startedAt = performance.now();
  const site = await startLinkedSite({ pages });
  const folder = temporaryFolder();
  const facts: CrashFacts = {
    seed,
    kills: 0,
    pages,
    lost: 0,
    forgotten: 0,
    unreadable: 0,
    failedOpens: 0,
    refetched: 0,
    inFlightMax: IN_FLIGHT_MAX,
    slowestResumeMs: 0,
    seconds: 0,
  };
  const args = [
    'run',
    site.url,
    '--follow',
    '--rate',
    'max',
    '--parallel',
    '16',
    '--workers',
    String(WORKERS),
    '--batch-size',
    String(BATCH_SIZE),
    '--allow-private',
    '--dir',
    folder.path,
    '--name',
    'crash',
    '--json',
  ];
  let doneBefore = new Set<string>();
  try {
    const perKill = Math.max(1, Math.floor((pages * 0.9) / kills));
    while (facts.kills < kills) {
      const before = site.log.length;
      const run = startSeine(args);
      const wanted = before + Math.floor(random() * 2 * perKill);
      const launchedAt = performance.now();
      if (random() < 0.15) await delay(random() * 400);
      else await Promise.race([site.requests(Math.max(wanted, before + 1)), run.finished]);
      if (facts.kills > 0 && site.log.length > before)
        facts.slowestResumeMs = Math.max(facts.slowestResumeMs, site.log[before]!.at - launchedAt);
      const { code, signal, stderr } = await run.killTree();
      if (signal !== 'SIGKILL') {
        if (code !== 0) throw new Error(`a run ended by itself with code ${code}: ${stderr}`);
        break;
      }
      facts.kills++;
      options.onKill?.(facts.kills);
      doneBefore = await lookAfterKill(folder.path, doneBefore, facts);
    }
    const last = startSeine(args);
    const result = await last.finished;
    if (result.code !== 0) throw new Error(`the last run ended with code ${result.code}: ${result.stderr}`);
    await judge(folder.path, site.log, doneBefore, lastJson(result), facts);
  } finally {
    await site.close();
    folder.remove();
  }
  facts.seconds = Math.round((performance.now() - startedAt) / 1_000);
  return facts;
}

async function lookAfterKill(dir: string, doneBefore: Set<string>, facts: CrashFacts): Promise<Set<string>> {
  try {
    const { doneUrls, unreadable } = await checkFolder(dir, 'crash', 50);
    facts.unreadable += unreadable.length;
    for (const url of doneBefore) if (!doneUrls.has(url)) facts.forgotten++;
    return doneUrls;
  } catch (error) {
    // Killed before the job was written down: there is nothing to check yet.
    if (doneBefore.size === 0 && /no job|unable to open|no such table|there is no/.test(String(error)))
      return doneBefore;
    facts.failedOpens++;
    console.error(`after kill ${facts.kills}: ${String(error)}`);
    return doneBefore;
  }
}

async function judge(
  dir: string,
  log: Parameters<typeof countByPath>[0],
  doneBefore: Set<string>,
  summary: Record<string, unknown>,
  facts: CrashFacts,
): Promise<void> {
  const { doneUrls, unreadable } = await checkFolder(dir, 'crash', 1);
  for (const url of doneBefore) if (!doneUrls.has(url)) facts.forgotten++;
  const counts = countByPath(log);
  const [anyUrl = ''] = doneUrls;
  for (let index = 0; index < facts.pages; index++) {
    const count = counts.get(pathOf(index)) ?? 0;
    if (count === 0 || !doneUrls.has(new URL(pathOf(index), anyUrl).href)) facts.lost++;
    else facts.refetched += count - 1;
  }
  facts.unreadable += unreadable.length;
  if (summary.done !== facts.pages || summary.state !== 'done')
    throw new Error(`the summary is wrong: ${JSON.stringify(summary)}`);
}

function delay(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
