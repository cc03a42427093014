import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openFolderBlobs } from '../../src/blobs/folder-blobs.ts';
import { openPostgresStore } from '../../src/store/postgres/postgres-store.ts';
import { checkJob } from '../support/check-folder.ts';
import { collect } from '../support/fixtures.ts';
import { countByPath, pathOf, startLinkedSite } from '../support/linked-site.ts';
import { runPostgresCrashes } from '../support/postgres-crashes.ts';
import { lastJson, startSeine, temporaryFolder } from '../support/seine-process.ts';
import { type PostgresServer, startPostgres } from '../support/services.ts';
import { type SiteProcess, startSiteProcess } from '../support/site-process.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';

const HOSTS = 100;
const RATE = 5;
const GAP_MS = 1_000 / RATE;
const PAGES_PER_HOST = 40;
const WORKERS = 2;
const BATCH_SIZE = 60;

const folder = temporaryFolder();
let site: SiteProcess;
let server: PostgresServer;

beforeAll(async () => {
  site = await startSiteProcess();
  server = await startPostgres({ own: true, fsync: true });
});
afterAll(async () => {
  await site.close();
  await server.stop();
  folder.remove();
});

const hostOf = (index: number) => `127.0.${1 + Math.floor(index / 25)}.${1 + (index % 25)}:${site.port}`;

/**
 * A machine that starts and ends processes all the time delays what was sent by some milliseconds; two coordinators
 * that ask a host at once would be much closer. By the clocks of the senders, the gap holds to the millisecond.
 */
const DELAYED = 0.75;

/** The shortest time between two requests of a host, in a log in any order. */
function smallestGap(log: { host: string; at: number; noEarlierThan: number }[]): number {
  const lastAt = new Map<string, number>();
  let smallest = Number.POSITIVE_INFINITY;
  for (const { at, noEarlierThan, host } of log.toSorted((one, other) => one.at - other.at)) {
    smallest = Math.min(smallest, at - (lastAt.get(host) ?? Number.NEGATIVE_INFINITY));
    lastAt.set(host, noEarlierThan);
  }
  return smallest;
}

test(`two coordinators, four workers, ${HOSTS} hosts, kills: no gap under ${GAP_MS} ms, nothing lost, nothing twice`, async () => {
  const list = join(folder.path, 'urls.txt');
  const urls: string[] = [];
  for (let page = 0; page < PAGES_PER_HOST; page++)
    for (let host = 0; host < HOSTS; host++) urls.push(`http://${hostOf(host)}/page/${page}.html`);
  writeFileSync(list, urls.join('\n'));
  const job = {
    sources: [list],
    allowPrivate: true,
    politeness: { rate: RATE, adaptive: false },
    batchSize: BATCH_SIZE,
  };
  const jobFile = join(folder.path, 'fleet.json');
  writeFileSync(jobFile, JSON.stringify(job));
  const store = await server.createDatabase();
  const blobs = join(folder.path, 'blobs');
  const start = (name: string) =>
    startSeine(
      ['run', jobFile, '--workers', String(WORKERS), '--dir', join(folder.path, name)].concat([
        '--blobs',
        blobs,
        '--store',
        store,
        '--json',
      ]),
    );

  const a = start('a');
  const b = start('b');
  // Both at once, from the first moment on: one of them starts the job, the other joins.
  await site.requests(urls.length * 0.2);
  await a.killTree();
  const again = start('a');
  await site.requests(urls.length * 0.5);
  await b.killTree();
  const [last] = await Promise.all([again.finished]);
  expect(last.stderr).toBe('');
  expect(last.code).toBe(0);
  expect(lastJson(last)).toMatchObject({ state: 'done', accepted: urls.length, done: urls.length, run: 1 });

  const log = await site.log();
  expect(smallestGap(log)).toBeGreaterThanOrEqual(GAP_MS * DELAYED);
  const counts = new Map<string, number>();
  for (const { host, path } of log) {
    const url = `http://${host}${path}`;
    counts.set(url, (counts.get(url) ?? 0) + 1);
  }
  expect(urls.filter((url) => !counts.has(url))).toEqual([]);
  const repeated = urls.reduce((sum, url) => sum + counts.get(url)! - 1, 0);
  console.log(JSON.stringify({ smallestGapMs: smallestGap(log), refetched: repeated }));
  // What was out when a coordinator was killed is fetched again, and nothing else.
  expect(repeated).toBeLessThanOrEqual(2 * HOSTS * RATE * 5);

  const opened = await openPostgresStore(store);
  const facts = await checkJob(opened, await openFolderBlobs(blobs), 'fleet', 1);
  const [found] = await opened.jobs.list(1);
  const attempts = await collect(opened.views.attempts(found!.id));
  await opened.close();
  const sent = attempts.map(({ url, startedAt }) => ({ host: new URL(url).host, at: Date.parse(startedAt) }));
  expect(smallestGap(sent.map((each) => ({ ...each, noEarlierThan: each.at })))).toBeGreaterThanOrEqual(
    GAP_MS,
  );
  expect(attempts).toHaveLength(urls.length);
  expect(facts.doneUrls).toEqual(new Set(urls));
  expect(facts.unreadable).toEqual([]);
}, 180_000);

test('kill -9 of the database under a crawl loses nothing, and the crawl goes on by itself', async () => {
  const facts = await runPostgresCrashes({ kills: 5, pages: 2_000, seed: Date.now() % 1_000_000 });
  console.log(JSON.stringify(facts));
  expect(facts).toMatchObject({ kills: 5, lost: 0, forgotten: 0, unreadable: 0 });
  // Reports that wait for the database are settled when it is back: nothing is fetched twice.
  expect(facts.refetched).toBe(0);
  expect(facts.slowestReturnMs).toBeLessThan(30_000);
}, 180_000);

test('a network that is cut or falls silent under a crawl costs time and nothing else', async () => {
  const proxy = await startTcpProxy(server);
  const linked = await startLinkedSite({ pages: 1_500, delayMs: 5 });
  const store = new URL(await server.createDatabase());
  store.port = String(proxy.port);
  const args = ['run', linked.url, '--follow', '--rate', 'max', '--parallel', '8', '--workers', '2'];
  args.push('--allow-private', '--dir', join(folder.path, 'cut'), '--store', store.href, '--json');
  const run = startSeine(args);
  for (const [at, fault] of [
    [300, () => proxy.cut(2_000)],
    [700, () => proxy.freeze(3_000)],
  ] as const) {
    await linked.requests(at);
    await fault();
    const known = linked.log.length;
    const healedAt = performance.now();
    await Promise.race([linked.requests(known + 1), run.finished]);
    expect(performance.now() - healedAt).toBeLessThan(30_000);
  }
  const result = await run.finished;
  expect(result.code).toBe(0);
  expect(result.stderr).toMatch(/^warning: the database does not answer, retrying: .*\n/);
  expect(lastJson(result)).toMatchObject({ state: 'done', accepted: 1_500, done: 1_500 });
  const counts = countByPath(linked.log);
  expect(Array.from({ length: 1_500 }, (_, index) => counts.get(pathOf(index)))).toEqual(
    Array.from({ length: 1_500 }, () => 1),
  );
  await linked.close();
  await proxy.close();
}, 120_000);
