import { describe, expect, test } from 'vitest';
import { PRICES_DEFAULT } from '../../../../src/core/cost/cost.ts';
import {
  assumptionsOf,
  type Evidence,
  forecastOf,
  type RunPlan,
} from '../../../../src/core/forecast/forecast.ts';
import { siteSizeOf } from '../../../../src/core/forecast/growth.ts';

const plan = (change: Partial<RunPlan> = {}): RunPlan => ({
  listed: new Map([
    ['slow.example', 1_000],
    ['fast.example', 100],
  ]),
  finds: false,
  limits: { pages: null, requests: null, seconds: null, bytes: null },
  paceOf: () => ({ gapMs: 250, parallel: 4 }),
  adaptive: false,
  workers: 2,
  prices: PRICES_DEFAULT,
  ...change,
});

/** Requests to one host every 250 ms. */
const evidence = (change: Partial<Evidence> = {}): Evidence => ({
  requests: Array.from({ length: 100 }, (_, index) => ({
    url: `https://slow.example/${index}`,
    host: 'slow.example',
    startedAt: index * 250,
    durationMs: 100,
    bytes: 2_000,
    goesOn: false,
  })),
  sent: 101,
  growth: [],
  known: new Map(),
  bill: [],
  ...change,
});

describe('a forecast', () => {
  test('is the backlog of the slowest host by its pace', () => {
    const { seconds, pages, requests, bytes, criticalHost } = forecastOf(plan(), evidence(), 'sample');
    expect({ pages, requests, criticalHost }).toEqual({
      pages: 1_100,
      requests: 1_102,
      criticalHost: 'slow.example',
    });
    // Gaps are granted with a margin, and each permit waits for the report of the last.
    expect(seconds.p50).toBeGreaterThan(255);
    expect(seconds.p50).toBeLessThan(290);
    expect(seconds.p90).toBeGreaterThan(seconds.p50 * 1.01);
    expect(seconds.p90).toBeLessThan(seconds.p50 * 1.1);
    expect(bytes).toBe(1_102 * 2_000);
  });

  test('is the same for the same sample', () => {
    expect(forecastOf(plan(), evidence(), 'sample')).toEqual(forecastOf(plan(), evidence(), 'sample'));
  });

  test('counts requests that are made again, and what they cost', () => {
    const requests = evidence().requests.map((request, index) => ({ ...request, goesOn: index % 5 === 0 }));
    const bill = [{ item: 'apiCalls' as const, quantity: 100, dollars: 1 }];
    const prices = { ...PRICES_DEFAULT, apiCall: 0.01 };
    const forecast = forecastOf(plan({ prices }), evidence({ requests, bill, sent: 100 }), 'sample');
    // Four in five of them are the last for their page.
    expect(forecast.requests / (1_100 / 0.8)).toBeCloseTo(1, 1);
    expect(forecast.dollars.p50 / (1_100 / 0.8 / 100)).toBeCloseTo(1, 0);
    expect(forecast.dollars.items[0]!.item).toBe('apiCalls');
  });

  test('ends where the limits of the job do', () => {
    const limits = { pages: 50, requests: null, seconds: 9, bytes: 40_000 };
    expect(forecastOf(plan({ limits }), evidence(), 'sample')).toMatchObject({
      ...{ pages: 50, bytes: 40_000, seconds: { p50: 9, p90: 9 } },
    });
    const few = forecastOf(plan({ limits: { ...limits, pages: null, requests: 30 } }), evidence(), 'sample');
    expect(few).toMatchObject({ requests: 30, pages: 30 });
  });

  test('without evidence is wide, and says so', () => {
    const usual = assumptionsOf({
      isLambda: true,
      storesInS3: true,
      hasProxies: true,
      fetchers: [],
      gapMs: 250,
    });
    const { seconds, sample, dollars } = forecastOf(plan(), usual, 'assumptions');
    expect(sample).toEqual({ from: 'assumptions', requests: 0, pages: 0 });
    expect(seconds.p90).toBeGreaterThan(seconds.p50 * 1.8);
    expect(dollars.items.map(({ item }) => item)).toContain('lambdaGbSeconds');
  });
});

describe('the size of a site', () => {
  const grown = (...known: number[]) => known.map((count, index) => ({ visited: index * 10, known: count }));

  test('is what is known when all of it was visited, or nothing new comes', () => {
    expect(siteSizeOf([])).toEqual({ known: 0, more: 0 });
    expect(siteSizeOf(grown(1, 10))).toEqual({ known: 10, more: 0 });
    expect(siteSizeOf(grown(1, 80, 90, 90, 90, 90, 90))).toEqual({ known: 90, more: 0 });
  });

  test('follows a slope that shrinks', () => {
    const { known, more } = siteSizeOf(grown(1, 40, 80, 100, 120, 130, 140));
    expect(known).toBe(140);
    // Half as many in each third: 10, 5, …
    expect(more).toBeGreaterThan(15);
    expect(more).toBeLessThan(25);
  });

  test('is bounded where no end is in sight', () => {
    expect(siteSizeOf(grown(1, 100, 200, 300, 400, 500, 600))).toEqual({ known: 600, more: 2_400 });
  });
});
