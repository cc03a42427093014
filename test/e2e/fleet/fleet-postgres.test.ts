import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { runPostgresCrashes } from '../../support/crash/postgres-crashes.ts';
import { runTwoCoordinators } from '../../support/runs/two-coordinators.ts';
import { testSeed } from '../../support/seed.ts';
import { lastJson, startSeine, temporaryFolder } from '../../support/seine-process.ts';
import { startPostgres } from '../../support/servers/services.ts';
import { startTcpProxy } from '../../support/servers/tcp-proxy.ts';
import { countByPath, pathOf, startLinkedSite } from '../../support/sites/linked-site.ts';

/** Small enough for two cores that do something else, too; `npm run crash-fleet` has the long versions. */
const PAGES = 360;

test('two coordinators, four workers, 30 hosts, kills: the gap is kept, nothing is lost, nothing is settled twice', async () => {
  const rate = 4;
  const facts = await runTwoCoordinators({ hosts: 30, pagesPerHost: PAGES / 30, rate, batchSize: 5 });
  console.log(JSON.stringify(facts));
  expect(facts).toMatchObject({ kills: 2, pages: PAGES, attempts: PAGES, lost: 0, unreadable: 0 });
  // By their own clocks: what a busy machine delays on the way is nothing that they could keep.
  expect(facts.smallestGapMs).toBeGreaterThanOrEqual(1_000 / rate);
  // What was out when a coordinator was killed is fetched again, and nothing else.
  expect(facts.refetched).toBeLessThanOrEqual(facts.kills * facts.inFlightMax);
});

test('kill -9 of the database under a crawl loses nothing, and the crawl goes on by itself', async () => {
  // More, as the crawl goes on while the test looks at what is done.
  const facts = await runPostgresCrashes({ kills: 3, pages: 2 * PAGES, seed: testSeed() });
  console.log(JSON.stringify(facts));
  expect(facts).toMatchObject({ kills: 3, lost: 0, forgotten: 0, unreadable: 0 });
  // Reports that wait for the database are settled when it is back: nothing is fetched twice.
  expect(facts.refetched).toBe(0);
});

test('a network that is cut or falls silent under a crawl costs time and nothing else', async () => {
  const server = await startPostgres({ own: true, fsync: true });
  onTestFinished(() => server.stop());
  const folder = temporaryFolder();
  onTestFinished(() => folder.remove());
  const proxy = await startTcpProxy(server);
  onTestFinished(() => proxy.close());
  const linked = await startLinkedSite({ pages: PAGES, delayMs: 5 });
  onTestFinished(() => linked.close());
  const store = new URL(await server.createDatabase());
  store.port = String(proxy.port);
  const args = ['run', linked.url, '--follow', '--rate', 'max', '--parallel', '8', '--workers', '2'];
  args.push('--allow-private', '--dir', join(folder.path, 'cut'), '--store', store.href, '--json');
  const run = startSeine(args);
  onTestFinished(async () => void (await run.killTree()));
  for (const [at, fault] of [
    // So long that, whenever a statement is tried again, once is after the second that passes without a word.
    [100, () => proxy.cut(3_500)],
    [200, () => proxy.freeze(3_000)],
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
  expect(lastJson(result)).toMatchObject({ state: 'done', accepted: PAGES, done: PAGES });
  const counts = countByPath(linked.log);
  expect(Array.from({ length: PAGES }, (_, index) => counts.get(pathOf(index)))).toEqual(
    Array.from({ length: PAGES }, () => 1),
  );
});
