import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Permit } from '../../../src/core/batch/batch.ts';
import type { Dispatcher } from '../../../src/ports/dispatcher.ts';
import { crawl } from '../../support/coordinator/crawl-setup.ts';
import { realClock } from '../../support/real-clock.ts';

/** What a job may do, seen from the server that it asks. */

let requests = 0;
let onRequest = () => {};
const server = createServer((request, response) => {
  requests++;
  onRequest();
  response.setHeader('content-type', 'text/html');
  const page = `<title>${request.url}</title>`;
  // So slow that the pages last longer than the hours.
  if (request.url?.startsWith('/hours')) setTimeout(() => response.end(page), 20);
  else response.end(page);
});
let origin: string;
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});

const pagesOf = (path: string, count: number) =>
  Array.from({ length: count }, (_, page) => `${origin}/${path}/${page}`);

test.each(['max', 40] as const)('no request leaves after the hours of a host, at rate %s', async (rate) => {
  requests = 0;
  const end = Date.UTC(2026, 0, 2, 6);
  const untilEnd = (ms: number) => end - ms - realClock.now();
  let shiftMs = untilEnd(20_000);
  const clock = { now: () => realClock.now() + shiftMs };
  // Once it runs, there is little time left.
  onRequest = () => {
    if (requests === 5) shiftMs = untilEnd(1_500);
  };
  const permits: Permit[] = [];
  const lastSentAts: number[] = [];
  const through = (inline: Dispatcher): Dispatcher => ({
    ...inline,
    async dispatch(batch, onPart) {
      permits.push(...batch.permits);
      const delivery = await inline.dispatch(batch, onPart);
      if (delivery.kind === 'report')
        for (const { lastSentAt } of delivery.report.permits) lastSentAts.push(lastSentAt ?? 0);
      return delivery;
    },
  });
  const hosts = { '127.0.0.1': { rate, window: { from: '05:00', to: '06:00' } } };
  const { counters } = await crawl(
    {
      sources: pagesOf(`hours-${rate}`, 400),
      politeness: { adaptive: false, robots: false, parallel: 2, hosts },
      allowPrivate: true,
      limits: { seconds: 21 },
    },
    { clock, through },
  );
  expect(counters.done).toBeGreaterThan(0);
  expect(counters.pending).toBeGreaterThan(0);
  expect(permits.every((permit) => Math.min(permit.endAt, permit.closesAt ?? end) <= end - 500)).toBe(true);
  expect(Math.max(...lastSentAts)).toBeLessThanOrEqual(end - 500);
});
