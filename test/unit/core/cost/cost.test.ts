import { expect, test } from 'vitest';
import {
  billOf,
  PRICES_DEFAULT,
  parsePrices,
  sumOfUsage,
  totalOf,
  usageOfReport,
} from '../../../../src/core/cost/cost.ts';
import { reportOf } from '../../../support/coordinator/batches.ts';
import { pageOf, traceOf } from '../../../support/fixtures.ts';

const via = (fetcher: 'http' | 'browser' | 'api', more: { proxy?: string; cost?: number } = {}) => ({
  ...{ rung: 0, fetcher, identity: null, proxy: null },
  ...more,
});
const fetched = (taskId: number, more: Parameters<typeof traceOf>[0]) => ({
  ...{ kind: 'fetched' as const, taskId, page: pageOf(), links: [], records: [], shows: [] },
  trace: traceOf(more),
});

test('a report uses requests, PUTs, bytes of proxies, calls of an API and time of a browser', () => {
  const report = reportOf({
    permits: [{ host: 'a', sent: 4, lastSentAt: 1, finished: true }],
    archive: { key: 'a', bytes: 20 * 1024 * 1024 },
    outcomes: [
      fetched(1, { bytes: 999_000, via: via('http', { proxy: 'p' }) }),
      fetched(2, { bytes: 5, durationMs: 1_500, via: via('browser') }),
      fetched(3, { via: via('api', { cost: 25 }) }),
      { kind: 'deferred', taskId: 4 },
    ],
  });
  expect(usageOfReport(report, { storesInS3: true })).toEqual({
    ...{ s3Puts: 3, egressGb: 4_000 / 1e9, proxyGb: 1e6 / 1e9, apiCalls: 25, browserSeconds: 1.5 },
  });
  expect(usageOfReport(report, { storesInS3: false }).s3Puts).toBe(0);
});

test('a bill has a line for each item that was used, at the prices of the table', () => {
  const usage = sumOfUsage(
    { lambdaCalls: 1_000_000, s3Puts: 500 },
    { s3Puts: 500, browserSeconds: 3, egressGb: 1 },
  );
  const lines = billOf(usage, PRICES_DEFAULT);
  expect(lines).toEqual([
    { item: 'lambdaCalls', quantity: 1_000_000, dollars: expect.closeTo(0.2, 12) },
    { item: 's3Puts', quantity: 1_000, dollars: expect.closeTo(0.005, 12) },
    { item: 'browserSeconds', quantity: 3, dollars: 0 },
  ]);
  expect(totalOf(lines)).toBeCloseTo(0.205, 12);
  expect(totalOf(billOf({ egressGb: 2 }, { ...PRICES_DEFAULT, egressGb: 0.09 }))).toBeCloseTo(0.18, 12);
});

test('prices are read from one line of names and numbers', () => {
  expect(parsePrices('proxyGb=8, machineHour=0.1')).toEqual({
    ...PRICES_DEFAULT,
    proxyGb: 8,
    machineHour: 0.1,
  });
  for (const text of ['', 'proxyGb', 'proxyGb=', 'gold=1', 'proxyGb=-1', 'proxyGb=1=2', 'toString=1'])
    expect(parsePrices(text), text).toBeNull();
});
