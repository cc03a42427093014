import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import type { Batch, Permit } from '../../../src/core/batch/batch.ts';
import type { HostProfile } from '../../../src/core/calibration/host-profile.ts';
import { PRICES_DEFAULT } from '../../../src/core/cost/cost.ts';
import { KEY_LIMITS_DEFAULT } from '../../../src/core/keys/api-key.ts';
import type { Dispatcher } from '../../../src/ports/dispatcher.ts';
import { crawl } from '../../support/coordinator/crawl-setup.ts';
import { realClock } from '../../support/real-clock.ts';

/** What a job may do, seen from the server that it asks. */

const LARGE = 200_000;
let requests = 0;
const paths = new Set<string | undefined>();
let onRequest = () => {};
const server = createServer((request, response) => {
  requests++;
  const isFirst = !paths.has(request.url);
  paths.add(request.url);
  onRequest();
  response.setHeader('content-type', 'text/html');
  const page = `<title>${request.url}</title>`;
  // So slow that the pages last longer than the hours.
  if (request.url?.startsWith('/large')) response.end(Buffer.alloc(LARGE, 'x'));
  else if (request.url?.startsWith('/once-unwell') && isFirst) response.writeHead(503).end();
  else if (request.url?.startsWith('/hangs-once')) {
    if (!isFirst) setTimeout(() => response.end(page), 400);
  } else if (request.url?.startsWith('/unwell')) response.writeHead(503).end();
  else if (request.url?.startsWith('/hours')) setTimeout(() => response.end(page), 20);
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

beforeEach(() => {
  requests = 0;
  paths.clear();
  onRequest = () => {};
});

const pagesOf = (path: string, count: number) =>
  Array.from({ length: count }, (_, page) => `${origin}/${path}/${page}`);

test('with learned timeouts a page that hangs is cut soon, and gets the whole time at its next attempt', async () => {
  const timeoutMs = 300;
  const profile = { host: new URL(origin).host, timeoutMs, measuredAt: 0, expiresAt: Date.now() + 600_000 };
  const batches: Batch[] = [];
  const through = (inline: Dispatcher): Dispatcher => ({
    ...inline,
    dispatch(batch, onPart) {
      batches.push(batch);
      return inline.dispatch(batch, onPart);
    },
  });
  const { tasks } = await crawl(
    {
      sources: [...pagesOf('hangs-once', 1), ...pagesOf('quick', 3)],
      politeness: { adaptive: false, robots: false, rate: 50 },
      timeouts: { adaptive: true, taskMs: 3_600_000, headersMs: 3_600_000 },
      retry: { baseMs: 1 },
      allowPrivate: true,
    },
    { through, prepare: (store) => store.hosts.saveProfile(profile as HostProfile, null) },
  );
  expect(tasks.map(({ state }) => state)).toEqual(Array.from({ length: 4 }, () => 'done'));
  const hung = tasks.find(({ url }) => url.includes('hangs-once'));
  expect(hung!.attempts).toBeGreaterThan(1);
  expect(batches[0]!.permits[0]).toMatchObject({ timeoutMs });
  expect(batches[0]!.budgetMs).toBeLessThan(60_000);
  const second = batches.find((batch) => batch.tasks.some(({ attempt }) => attempt > 1));
  expect(second!.budgetMs).toBeGreaterThan(3_600_000);
});

test.each(['max', 40] as const)('no request leaves after the hours of a host, at rate %s', async (rate) => {
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
  // A permit ends half a second early, because the time noted is when the bytes were written.
  expect(Math.max(...lastSentAts)).toBeLessThan(end);
});

const PLAIN = { politeness: { robots: false, rate: 'max', adaptive: false }, allowPrivate: true } as const;

test('a limit of bytes holds for what is in flight', async () => {
  const bytes = 10 * LARGE;
  const { state, counters } = await crawl({
    ...PLAIN,
    sources: pagesOf('large', 200),
    limits: { bytes },
  });
  expect(state).toBe('stopped');
  expect(counters.bytes).toBeGreaterThanOrEqual(bytes);
  // What is out at the end is as much as still fits: one page more, where headers count.
  expect(requests).toBeLessThanOrEqual(12);
});

test('a worker sends nothing more once the bytes of its batch are used', async () => {
  const seen: { bytesMax: number | undefined; tasks: number }[] = [];
  const through = (inline: Dispatcher): Dispatcher => ({
    ...inline,
    dispatch(batch, onPart) {
      seen.push({ bytesMax: batch.bytesMax, tasks: batch.tasks.length });
      // As if small pages had come before.
      return inline.dispatch({ ...batch, bytesMax: LARGE / 2 }, onPart);
    },
  });
  const { counters } = await crawl(
    {
      ...PLAIN,
      politeness: { ...PLAIN.politeness, parallel: 1 },
      sources: pagesOf('large/batch', 12),
      limits: { bytes: 100 * LARGE },
    },
    { through },
  );
  expect(counters).toMatchObject({ done: 12, dead: 0 });
  expect(seen[0]).toEqual({ bytesMax: 25 * LARGE * seen[0]!.tasks, tasks: expect.any(Number) });
  expect(seen.length).toBeGreaterThanOrEqual(12);
});

test.each(['unwell', 'plain'])('pages that are tried count for the limit: %s', async (kind) => {
  const throws = () => {
    throw new Error('no price here');
  };
  const { state, counters } = await crawl(
    {
      ...PLAIN,
      sources: pagesOf(kind, 200),
      routes: [{ name: 'page' }],
      limits: { pages: 10 },
      breaker: { hostFailures: 1_000 },
    },
    { handlers: new Map([['page', { handler: throws }]]) },
  );
  expect(state).toBe('stopped');
  // Retries come on top.
  expect(paths.size).toBe(10);
  expect(requests).toBeLessThanOrEqual(20);
  expect(counters).toMatchObject({ attempted: 10, done: 0 });
});

test('as long as there are no more pages than allowed, those that failed are tried again', async () => {
  const pages = pagesOf('once-unwell', 10);
  const { state, counters } = await crawl({ ...PLAIN, sources: pages, limits: { pages: pages.length } });
  expect(state).toBe('done');
  expect(counters).toMatchObject({ done: 10, attempted: 10, dead: 0 });
  expect(requests).toBe(20);
});

test('code that throws for every page ends the job, and says why and where', async () => {
  const handler = () => {
    throw new Error('no price here');
  };
  let reason: string | null = null;
  const { state } = await crawl(
    {
      ...PLAIN,
      politeness: { ...PLAIN.politeness, parallel: 1 },
      sources: pagesOf('plain', 200),
      routes: [{ name: 'page' }],
    },
    {
      handlers: new Map([['page', { handler }]]),
      inspect: async ({ store, job }) => {
        ({ reason } = await store.jobs.get(job.id));
      },
    },
  );
  expect(state).toBe('tripped');
  expect(reason).toMatch(
    /^the code of route 'page' failed \d+ times in a row, first with: no price here \(.*limits\.test\.ts:\d+\)$/,
  );
  // The worker does not fetch the rest of its batch.
  expect(requests).toBeLessThan(60);
});

test.each([
  ['stop', 'stopped'],
  ['cancel', 'cancelled'],
] as const)('a %s that comes before the run begins is not lost', async (requestedState, state) => {
  const crawled = await crawl(
    { sources: pagesOf('asked', 3) },
    { begun: ({ store, job }) => void store.jobs.update(job.id, { requestedState }) },
  );
  expect(crawled.state).toBe(state);
  expect(requests).toBe(0);
});

test('a budget of requests counts what is in flight, and a higher one goes on', async () => {
  const limits: (number | null)[] = [40];
  const sent: number[] = [];
  const { state, counters } = await crawl(
    { ...PLAIN, sources: pagesOf('requests', 100), limits: { requests: 25 } },
    {
      again: async ({ store, job }) => {
        sent.push(requests);
        expect((await store.jobs.get(job.id)).reason).toMatch(/^limit of \d+ requests reached$/);
        const [next] = limits.splice(0, 1);
        if (next === undefined) return false;
        const { spec } = await store.jobs.get(job.id);
        await store.jobs.update(job.id, { spec: { ...spec, limits: { ...spec.limits, requests: next } } });
        return true;
      },
    },
  );
  expect(sent).toEqual([25, 40]);
  expect(state).toBe('stopped');
  expect(counters).toMatchObject({ done: 40, pending: 60, requests: 40 });
});

/** Each page is one call of Lambda, at a cent. */
const paidByPage = (inline: Dispatcher): Dispatcher => ({
  ...inline,
  async dispatch(batch, onPart) {
    const delivery = await inline.dispatch(batch, onPart);
    return { ...delivery, used: { lambdaCalls: batch.tasks.length } };
  },
});
const CENT = { prices: { ...PRICES_DEFAULT, lambdaCall: 0.01 }, storesInS3: false };

test('a budget of dollars is exceeded by what is in flight at most', async () => {
  let spent = 0;
  const { state, counters } = await crawl(
    { ...PLAIN, sources: pagesOf('dollars', 200), limits: { dollars: 0.3 } },
    {
      through: paidByPage,
      costs: CENT,
      inspect: async ({ store, job }) => {
        const [line] = await store.jobs.costs(job.id);
        spent = line!.dollars;
        expect(await store.jobs.get(job.id)).toMatchObject({ reason: 'limit of 0.3 USD reached' });
      },
    },
  );
  expect(state).toBe('stopped');
  expect(spent).toBeGreaterThanOrEqual(0.3 - 1e-9);
  expect(spent).toBeLessThanOrEqual(0.35);
  expect(counters.done).toBe(Math.round(spent * 100));
});

test('seconds of browsers that the jobs of a key use on a day stop them, too', async () => {
  const limits = { ...KEY_LIMITS_DEFAULT, browserSecondsPerDay: 20 };
  const key = { id: 'k', name: 'k', hash: 'h', scope: 'write' as const, limits, createdAt: 0 };
  // No day ends while it runs.
  const untilNoon = Date.UTC(2026, 0, 2, 12) - realClock.now();
  // Each page is a second in a browser.
  const through = (inline: Dispatcher): Dispatcher => ({
    ...inline,
    async dispatch(batch, onPart) {
      const delivery = await inline.dispatch(batch, onPart);
      return { ...delivery, used: { browserSeconds: batch.tasks.length } };
    },
  });
  const { state, counters } = await crawl(
    { ...PLAIN, sources: pagesOf('seconds', 100) },
    {
      through,
      clock: { now: () => realClock.now() + untilNoon },
      owner: 'k',
      prepare: async ({ keys }) => void (await keys.create(key)),
      inspect: async ({ store, job }) => {
        const { reason } = await store.jobs.get(job.id);
        expect(reason).toBe('limit of 20 browser seconds per day of the API key reached');
      },
    },
  );
  expect(state).toBe('stopped');
  expect(counters.done).toBeGreaterThanOrEqual(20);
  expect(counters.done).toBeLessThanOrEqual(25);
});

test('what the jobs of a key cost on a day stops them, too', async () => {
  const day = Math.floor(realClock.now() / 86_400_000);
  const limits = { ...KEY_LIMITS_DEFAULT, costPerDay: 0.5 };
  const key = { id: 'k', name: 'k', hash: 'h', scope: 'write' as const, limits, createdAt: 0 };
  const { state, counters } = await crawl(
    { ...PLAIN, sources: pagesOf('key', 100) },
    {
      through: paidByPage,
      costs: CENT,
      owner: 'k',
      prepare: async ({ keys }) => {
        await keys.create(key);
        // Other jobs of the day, and of the next if it begins meanwhile.
        for (const each of [day, day + 1])
          await keys.use('k', each, { pages: 0, cost: 0.3 }, { pages: null, cost: null });
      },
      inspect: async ({ store, job }) => {
        expect((await store.jobs.get(job.id)).reason).toBe('limit of 0.5 USD per day of the API key reached');
      },
    },
  );
  expect(state).toBe('stopped');
  expect(counters.done).toBeGreaterThanOrEqual(20);
  expect(counters.done).toBeLessThanOrEqual(25);
});
