import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  addHistogram,
  addLatency,
  countOf,
  emptyHistogram,
  LATENCY_BOUNDS_SECONDS,
  quantile,
  quantilesOf,
} from '../../../../src/core/rollups/histogram.ts';
import {
  addCosts,
  addRollup,
  addSettled,
  byHourOfDay,
  costOf,
  countsOf,
  emptyRollup,
  pagesOf,
  type SettledTask,
  stretchOf,
} from '../../../../src/core/rollups/rollup.ts';

const LATENCY = fc.double({ min: 0, max: 30_000, noNaN: true });
const LATENCIES = fc.array(LATENCY, { maxLength: 80 });

const histogramOf = (latencies: readonly number[]) => {
  const histogram = emptyHistogram();
  for (const ms of latencies) addLatency(histogram, ms);
  return histogram;
};

test('histograms of parts add up to that of the whole', () => {
  fc.assert(
    fc.property(LATENCIES, LATENCIES, (some, others) => {
      const merged = histogramOf(some);
      addHistogram(merged, histogramOf(others));
      const whole = histogramOf([...some, ...others]);
      expect(merged.buckets).toEqual(whole.buckets);
      expect(merged.maxMs).toBe(whole.maxMs);
      expect(merged.sumMs).toBeCloseTo(whole.sumMs, 3);
    }),
  );
});

test('a quantile is in the bucket of the true one, and never longer than the longest', () => {
  const bounds = [0, ...LATENCY_BOUNDS_SECONDS.map((seconds) => seconds * 1_000), Number.POSITIVE_INFINITY];
  fc.assert(
    fc.property(
      fc.array(LATENCY, { minLength: 1, maxLength: 80 }),
      fc.constantFrom(0.5, 0.95, 0.99),
      (latencies, q) => {
        const found = quantile(histogramOf(latencies), q);
        const sorted = latencies.toSorted((a, b) => a - b);
        const exact = sorted[Math.ceil(q * sorted.length) - 1]!;
        const upper = bounds.findIndex((bound, index) => index > 0 && exact <= bound);
        expect(found).toBeGreaterThanOrEqual(bounds[upper - 1]!);
        // Rounded to a tenth.
        expect(found).toBeLessThanOrEqual(Math.min(bounds[upper]!, sorted.at(-1)!) + 0.1);
      },
    ),
  );
});

test('quantiles are told for nothing, for one answer and for a clock that was set back', () => {
  expect(quantilesOf(emptyHistogram())).toEqual({ p50: null, p95: null, p99: null });
  expect(quantile(histogramOf([25_000]), 0.99)).toBeCloseTo(24_850, 0);
  const odd = histogramOf([-5]);
  expect(odd).toMatchObject({ sumMs: 0, maxMs: 0 });
  expect(countOf(odd)).toBe(1);
});

const TASK: SettledTask = { outcome: 'fetched', to: 'done', code: null, trace: null };
const trace = { startedAt: 0, durationMs: 30, httpStatus: 200, bytes: 10 };

test('a settled task is a page when it has ended, and a failure each time that it failed', () => {
  const rollup = emptyRollup();
  addSettled(rollup, { ...TASK, trace });
  addSettled(rollup, { ...TASK, to: 'unchanged', outcome: 'unchanged', trace });
  addSettled(rollup, { ...TASK, to: 'skipped', outcome: 'skipped', code: 'robots' });
  addSettled(rollup, { ...TASK, to: 'pending', outcome: 'failed', code: 'timeout', trace });
  addSettled(rollup, { ...TASK, to: 'dead', outcome: 'failed', code: 'timeout', trace });
  addSettled(rollup, { ...TASK, to: 'pending', outcome: 'deferred' });
  expect(rollup).toMatchObject({ succeeded: 2, failed: 1, skipped: 1, bytes: 40 });
  expect(pagesOf(rollup)).toBe(4);
  expect(countsOf(rollup, 'failure')).toEqual([['timeout', 2]]);
  expect(countOf(rollup.latency)).toBe(4);
});

test('sums and counts of roll-ups add up, and costs are told apart from the rest', () => {
  const rollup = emptyRollup();
  addSettled(rollup, { ...TASK, trace });
  addCosts(rollup, [
    { item: 'lambdaCalls', quantity: 9, dollars: 0.5 },
    { item: 's3Puts', quantity: 4, dollars: 0.25 },
    { item: 'browserSeconds', quantity: 4, dollars: 0 },
  ]);
  const sum = emptyRollup();
  for (let n = 0; n < 3; n++) addRollup(sum, rollup);
  expect(sum).toMatchObject({ succeeded: 3, bytes: 30 });
  expect(costOf(sum)).toBe(2.25);
  expect(countsOf(sum, 'cost')).toEqual([
    ['lambdaCalls', 1.5],
    ['s3Puts', 0.75],
  ]);
  expect(stretchOf(1_234_567, 10)).toBe(1_230_000);
  expect(stretchOf(7_234_567, 3_600)).toBe(7_200_000);
});

test('attempts through proxies are counted by provider, and addresses are one of them', () => {
  const rollup = emptyRollup();
  const through = (proxy: string, outcome: 'fetched' | 'failed') =>
    addSettled(rollup, {
      outcome,
      to: outcome === 'fetched' ? 'done' : 'pending',
      code: outcome === 'failed' ? 'timeout' : null,
      trace: {
        startedAt: 0,
        durationMs: 1,
        httpStatus: null,
        bytes: 0,
        via: { rung: 0, fetcher: 'http', identity: null, proxy },
      },
    });
  through('gate.provider.example:8080#k3x9qa', 'fetched');
  through('gate2.provider.example:8080#k3x9qb', 'failed');
  through('10.0.0.1:3128#aaaaaa', 'failed');
  through('[2001:db8::1]:3128#bbbbbb', 'fetched');
  expect(countsOf(rollup, 'proxied')).toEqual([
    ['addresses', 2],
    ['provider.example', 2],
  ]);
  expect(countsOf(rollup, 'proxied-failure')).toEqual([
    ['addresses', 1],
    ['provider.example', 1],
  ]);
  expect(countsOf(rollup, 'failure')).toEqual([['timeout', 2]]);
});

test('hours of the day are sums over days', () => {
  const rollup = { ...emptyRollup(), succeeded: 3, counts: new Map([['failure timeout', 2]]) };
  const at = Date.UTC(2026, 0, 1, 5);
  const hours = byHourOfDay([
    { at, rollup },
    { at: at + 86_400_000, rollup },
  ]);
  expect(hours).toHaveLength(24);
  expect(hours[5]).toEqual({ hour: 5, pages: 6, failures: 4 });
  expect(hours[6]).toEqual({ hour: 6, pages: 0, failures: 0 });
});
