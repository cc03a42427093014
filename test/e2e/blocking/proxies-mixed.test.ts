import { afterEach, expect, test } from 'vitest';
import { openMixedProxies } from '../../support/runs/mixed-proxies.ts';
import { attemptsOf, closeAll, openSite, run } from '../../support/runs/proxied-run.ts';
import { lastJson } from '../../support/seine-process.ts';

afterEach(closeAll);

const PAGES = 400;

/** `npm run speeds` has what the bad ones cost. */
test('with three dead and two banned proxies of ten all pages come, few requests are refused, and none leaves without a proxy', async () => {
  const { all, banned, addresses } = await openMixedProxies();
  const site = await openSite();
  for (const address of banned) site.banned.add(address);
  const politeness = { rate: 100, parallel: 16, adaptive: false };
  const finished = await run({ pages: PAGES, job: { politeness }, site, list: all });
  expect(lastJson(finished)).toMatchObject({ state: 'done', done: PAGES, dead: 0 });
  expect(site.requests.length).toBeGreaterThan(PAGES);
  for (const { address } of site.requests) expect(addresses).toContain(address);
  // Two of the seven that work: without a memory for refusals it were two requests in seven.
  const refused = site.requests.filter(({ address }) => site.banned.has(address)).length;
  console.log(JSON.stringify({ requests: site.requests.length, refused }));
  expect(refused).toBeLessThan(PAGES / 7);
  const ids = (await attemptsOf(finished.dir)).map(({ proxy }) => proxy);
  expect(ids.every((id) => /^127\.0\.0\.1:\d+#[a-z0-9]{6}$/.test(id))).toBe(true);
  expect(new Set(ids).size).toBeGreaterThan(6);
});
