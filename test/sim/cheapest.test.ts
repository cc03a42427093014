import { expect, test } from 'vitest';
import { competeAtSite, sitesOf } from './cheapest/compete.ts';

/** `npm run cheapest` takes more sites, and new seeds each time. */
test('the cheapest fetch method is found at about the price of knowing it', () => {
  const results = [...sitesOf(14, 11)].map(({ kind, seed }) => competeAtSite(kind, seed, 1_000));
  const sum = (of: (result: (typeof results)[number]) => number) =>
    results.reduce((total, result) => total + of(result), 0);
  const paid = sum(({ cheapest }) => cheapest.first + cheapest.second);
  expect(paid).toBeLessThan(1.15 * sum(({ oracle }) => oracle.first + oracle.second));
  expect(paid).toBeLessThan(sum(({ lowest }) => lowest.first + lowest.second));
  for (const { cheapest, explored } of results)
    expect(explored).toBeLessThanOrEqual(0.05 * (cheapest.first + cheapest.second));
  expect(sum(({ lost }) => lost)).toBeLessThan(14);
});

/** Sites at which a method was taken to be hopeless by chance, or for what another one met; they cost 1.5 to 6 times as much. */
test.each([
  ['opens: by address, then open', 103_013],
  ['scripts, and refuses our address', 1_940_225],
  ['some pages need scripts', 823_646],
  ['closes: headers, then APIs only', 1_758_087],
])('%s: what works is found, whatever the first pages met', (kind, seed) => {
  const { cheapest, oracle } = competeAtSite(kind, seed, 2_000);
  expect(cheapest.first).toBeLessThan(1.3 * oracle.first);
});
