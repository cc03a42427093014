import { join } from 'node:path';
import pg from 'pg';
import { openFolderBlobs } from '../../../src/blobs/folder-blobs.ts';
import { openPostgresStore } from '../../../src/store/postgres/postgres-store.ts';
import { lastJson, startSeine, temporaryFolder } from '../seine-process.ts';
import { delay } from '../servers/server-process.ts';
import { startPostgres } from '../servers/services.ts';
import { countByPath, pathOf, startLinkedSite } from '../sites/linked-site.ts';
import { checkJob } from './check-folder.ts';
import { seededRandom } from './crash-harness.ts';

interface PostgresCrashFacts {
  seed: number;
  kills: number;
  pages: number;
  /** Pages without a done task at the end. */
  lost: number;
  /** Tasks that were done before a kill and were not afterwards. */
  forgotten: number;
  unreadable: number;
  /** Requests beyond one a page. */
  refetched: number;
  /** From the start of the server until the next page was asked for. */
  slowestReturnMs: number;
  seconds: number;
}

/** Crawls a site in one go, while the database under it is killed with kill -9 again and again. */
export async function runPostgresCrashes(options: {
  kills: number;
  pages: number;
  seed: number;
  onKill?: (kill: number) => void;
}): Promise<PostgresCrashFacts> {
  const { kills, pages, seed } = options;
  const random = seededRandom(seed);
  const startedAt = performance.now();
  const server = await startPostgres({ own: true, fsync: true });
  const site = await startLinkedSite({ pages, delayMs: 1 });
  const folder = temporaryFolder();
  const dir = join(folder.path, 'seine');
  const facts: PostgresCrashFacts = {
    ...{ seed, kills: 0, pages, lost: 0, forgotten: 0, unreadable: 0 },
    ...{ refetched: 0, slowestReturnMs: 0, seconds: 0 },
  };
  const url = await server.createDatabase();
  const args = ['run', site.url, '--follow', '--rate', 'max', '--parallel', '16', '--workers', '2'];
  args.push(
    '--batch-size',
    '20',
    '--allow-private',
    '--dir',
    dir,
    '--store',
    url,
    '--name',
    'crash',
    '--json',
  );
  try {
    const run = startSeine(args);
    const ended = run.finished.then(({ code, stderr }) => `the run ended with code ${code}: ${stderr}`);
    const perKill = Math.max(1, Math.floor((pages * 0.6) / kills));
    while (facts.kills < kills) {
      const asked = site.log.length;
      const over = await Promise.race([site.requests(asked + 1 + Math.floor(random() * perKill)), ended]);
      if (over !== undefined) break;
      const done = await readDone(url);
      await server.kill9();
      facts.kills++;
      options.onKill?.(facts.kills);
      await delay(random() * 500);
      await server.restart();
      const back = performance.now();
      const known = site.log.length;
      await Promise.race([site.requests(known + 1), ended]);
      facts.slowestReturnMs = Math.max(facts.slowestReturnMs, performance.now() - back);
      const after = await readDone(url);
      for (const each of done) if (!after.has(each)) facts.forgotten++;
    }
    const result = await run.finished;
    if (result.code !== 0) throw new Error(await ended);
    const { doneUrls, unreadable } = await checkEnd(url, dir);
    facts.unreadable = unreadable.length;
    judge(facts, site.url, doneUrls, countByPath(site.log));
    const summary = lastJson(result);
    if (summary.done !== pages || summary.state !== 'done')
      throw new Error(`the summary is wrong: ${JSON.stringify(summary)}`);
  } finally {
    await site.close();
    await server.stop();
    folder.remove();
  }
  facts.seconds = Math.round((performance.now() - startedAt) / 1_000);
  return facts;
}

/** Of one instant, while the crawl goes on: what is done, and whether the counters say the same. */
async function readDone(url: string): Promise<Set<string>> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const { rows } = await client.query(READ_DONE);
    const [{ urls, counted }] = rows as [{ urls: string[]; counted: string }];
    if (urls.length !== Number(counted)) throw new Error(`${counted} are counted, ${urls.length} are done`);
    return new Set(urls);
  } finally {
    await client.end();
  }
}

const READ_DONE = `
  SELECT coalesce((SELECT array_agg(url) FROM seine.tasks WHERE state = 4), '{}') AS urls,
    (SELECT coalesce(sum(done), 0) FROM seine.counters) AS counted`;

async function checkEnd(url: string, dir: string) {
  const store = await openPostgresStore(url, { connections: 1 });
  const blobs = await openFolderBlobs(dir);
  try {
    return await checkJob(store, blobs, 'crash', 1);
  } finally {
    await blobs.close();
    await store.close();
  }
}

function judge(
  facts: PostgresCrashFacts,
  base: string,
  doneUrls: Set<string>,
  counts: Map<string, number>,
): void {
  for (let index = 0; index < facts.pages; index++) {
    const count = counts.get(pathOf(index)) ?? 0;
    if (count === 0 || !doneUrls.has(new URL(pathOf(index), base).href)) facts.lost++;
    else facts.refetched += count - 1;
  }
}
