import { expect, test } from 'vitest';
import { reportProxies, restingByHost } from '../../../../src/coordinator/reports/proxy-report.ts';
import { newHealth } from '../../../../src/core/proxies/proxy-health.ts';
import { T0 } from '../../../support/fixtures.ts';

const health = (change: object) => ({ ...newHealth(T0), ...change });
const ROWS = [
  { proxy: 'b:1#x', host: null, health: health({ bad: 3, inRow: 3, rests: 2, until: T0 + 60_000 }) },
  { proxy: 'a:1#x', host: null, health: health({ ok: 8 }) },
  { proxy: 'a:1#x', host: 'shop.example', health: health({ rests: 1, until: T0 + 30_000 }) },
  { proxy: 'a:1#x', host: 'past.example', health: health({ rests: 1, until: T0 - 1 }) },
  { proxy: 'c:1#x', host: null, health: health({ rests: 1, until: T0 - 5 }) },
];

test('each proxy is told with its rest, and the hosts that it rests for', () => {
  expect(reportProxies(ROWS, T0)).toEqual([
    {
      proxy: 'a:1#x',
      state: 'usable',
      until: null,
      score: 0.9,
      failuresInRow: 0,
      hosts: [{ host: 'shop.example', until: new Date(T0 + 30_000).toISOString() }],
    },
    {
      proxy: 'b:1#x',
      state: 'resting',
      until: new Date(T0 + 60_000).toISOString(),
      score: 0.2,
      failuresInRow: 3,
      hosts: [],
    },
    { proxy: 'c:1#x', state: 'probation', until: null, score: 0.5, failuresInRow: 0, hosts: [] },
  ]);
});

test('each host is told with the proxies that rest for it', () => {
  const resting = restingByHost(reportProxies(ROWS, T0));
  expect([...resting.keys()]).toEqual(['shop.example']);
  expect(resting.get('shop.example')).toMatchObject([{ proxy: 'a:1#x' }]);
});
