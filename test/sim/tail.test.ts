import { expect, test } from 'vitest';
import { crawlTail, type TailResult, type TailWeb } from './tail/crawl-tail.ts';
import { competeAtTail, TAIL_KINDS } from './tail/webs.ts';

const PAGES = 500;
const GAP_MS = 250;
const STALL_MS = 20_000;
const LAST = (page: number) => page >= PAGES - 3;

function webOf(isLost: (page: number, count: number) => boolean): TailWeb {
  return {
    ...{ seed: 7, hosts: 5, pages: PAGES, gapMs: GAP_MS },
    answer: ({ page, count }) =>
      isLost(page, count) ? { ms: STALL_MS, comes: false } : { ms: 200, comes: true },
  };
}

/** No two requests of a host came sooner after each other than the job allows. */
function expectPolite({ sent }: TailResult): void {
  for (const times of sent.values())
    for (let index = 1; index < times.length; index++)
      expect(times[index]! - times[index - 1]!).toBeGreaterThanOrEqual(GAP_MS);
}

test('bodies that stall: late pages are requested elsewhere, each is done once, and no gap is shorter', async () => {
  const web = webOf((page, count) => LAST(page) && count === 1);
  const waited = await crawlTail('wait', web);
  const repeated = await crawlTail('repeat', web);
  for (const result of [waited, repeated]) {
    expect(result.counters).toMatchObject({ accepted: PAGES, done: PAGES, pending: 0, dead: 0 });
    expectPolite(result);
  }
  expect(waited.tailShare).toBeGreaterThan(0.3);
  expect(repeated.tailShare).toBeLessThan(0.1);
  expect(Math.max(...repeated.requests.values())).toBe(2);
});

test('pages that never come are left for the next run, when they have taken a tenth of the time', async () => {
  const web = webOf(LAST);
  const waited = await crawlTail('wait', web);
  expect(waited.counters).toMatchObject({ done: PAGES - 3, dead: 3 });
  const deferred = await crawlTail('defer', web);
  expect(deferred.counters).toMatchObject({ accepted: PAGES, done: PAGES - 3, pending: 3, dead: 0 });
  expect(deferred.reason).toBe('limit of 10 % of the time for the last 1 % of the tasks reached');
});

/** `npm run tail` takes more crawls, and new seeds each time. */
test.each(Object.keys(TAIL_KINDS))(
  '%s: each page is done once, or left, and what helps is shorter',
  async (kind) => {
    const { wait, repeat, defer } = await competeAtTail(kind, 11, 40);
    for (const { accepted, done, pending, dead } of [wait, repeat, defer])
      expect(done + pending + dead).toBe(accepted);
    expect(repeat.tailShare).toBeLessThanOrEqual(wait.tailShare * 1.1);
    expect(Math.min(repeat.tailShare, defer.tailShare)).toBeLessThan(0.3);
  },
);
