import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { connect } from '../../../src/client/client.ts';
import { PRICES_DEFAULT } from '../../../src/core/cost/cost.ts';
import { type ApiServer, openApiServer } from '../../support/servers/api-server.ts';
import { type LinkedSite, pathOf, startLinkedSite } from '../../support/sites/linked-site.ts';

let site: LinkedSite;
let server: ApiServer;

beforeAll(async () => {
  // A request is 1,000 bytes, which is a cent.
  const prices = { ...PRICES_DEFAULT, egressGb: 10_000 };
  [site, server] = await Promise.all([startLinkedSite({ pages: 60 }), openApiServer({ prices })]);
});

afterAll(async () => {
  await server.close();
  await site.close();
});

const pages = () => Array.from({ length: 50 }, (_, index) => site.url.replace(/\/$/, '') + pathOf(index));
const FAST = { rate: 'max', robots: false } as const;

async function post(path: string, body: object) {
  const answer = await fetch(`${server.url}/api/v1${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return { status: answer.status, body: (await answer.json()) as { batch_id: string; job_id: string } };
}

test('quote, contract and receipt', async () => {
  const client = connect({ url: server.url });
  // A sample of the pages first.
  const quote = await vi.waitFor(
    async () => {
      const found = await client.forecast({ urls: pages(), ...FAST } as never);
      expect(found).not.toBeNull();
      return found!;
    },
    { timeout: 60_000 },
  );
  expect(quote).toMatchObject({ pages: 50, sample: { from: 'sample' } });
  expect(quote.sample.requests).toBeLessThanOrEqual(13);
  expect(quote.dollars.p50).toBeGreaterThan(0.4);
  expect(quote.dollars.p50).toBeLessThan(0.7);

  // Nobody wants to pay that little for it: nothing is requested, and no job is left of it.
  const { jobs: before } = await client.call<{ jobs: object[] }>('GET', '/jobs');
  const refused = await post('/batch', { urls: pages(), ...FAST, max_cost_usd: 0.05 });
  expect(refused.status).toBe(409);
  expect(refused.body).toMatchObject({ code: 'over-budget', quote: { pages: 50 } });
  const job = {
    name: 'priced',
    sources: pages(),
    allowPrivate: true,
    politeness: { rate: 'max', robots: false },
  };
  expect(await post('/jobs', { ...job, max_cost_usd: 0.05 })).toMatchObject({ status: 409 });
  expect(await post('/scrape', { url: pages()[0], ...FAST, max_cost_usd: 0.000_1 })).toMatchObject({
    status: 409,
  });
  const { jobs: after } = await client.call<{ jobs: object[] }>('GET', '/jobs');
  expect(after).toEqual(before);
  expect(await post('/jobs?dry_run', job)).toMatchObject({
    body: { job: { name: 'priced' }, forecast: { pages: 50, sample: { from: 'assumptions' } } },
  });

  // A contract that is kept.
  const accepted = await post('/batch', { urls: pages(), ...FAST, max_cost_usd: 0.6 });
  expect(accepted.status).toBe(202);
  const id = accepted.body.batch_id as string;
  const ended = () => client.job(id, 30).then(({ status }) => expect(status).not.toMatch(/queued|running/));
  await vi.waitFor(ended, { timeout: 60_000 });
  const receipt = await client.receipt(id);
  expect(receipt).toMatchObject({
    state: 'done',
    quote: { pages: 50 },
    addsUp: true,
    urls: { accepted: 50, done: 50, waiting: 0 },
    bill: { items: [{ item: 'egressGb' }] },
  });
  expect((receipt.bill as { dollars: number }).dollars).toBeCloseTo(0.5, 6);

  // What was run is what the next forecast is made of.
  const next = await post('/batch', { urls: pages(), ...FAST, max_cost_usd: 0.3 });
  expect(next).toMatchObject({ status: 409, body: { quote: { sample: { from: 'earlier runs' } } } });

  // A lower limit while it runs, or before it is resumed, holds as well.
  const limited = await post('/jobs', { ...job, limits: { dollars: 0.2 } });
  await vi.waitFor(
    async () => expect(await client.job(limited.body.job_id, 30)).toMatchObject({ status: 'stopped' }),
    { timeout: 60_000 },
  );
  const stopped = await client.receipt(limited.body.job_id);
  expect(stopped).toMatchObject({ reason: 'limit of 0.2 USD reached', addsUp: true });
  expect((stopped.bill as { dollars: number }).dollars).toBeLessThan(0.3);
  await client.call('PATCH', `/jobs/${limited.body.job_id}`, { dollars: null });
  await client.call('POST', `/jobs/${limited.body.job_id}/resume`);
  await vi.waitFor(
    async () => expect(await client.job(limited.body.job_id, 30)).toMatchObject({ status: 'completed' }),
    { timeout: 60_000 },
  );
});

test('a forecast needs pages or a job', async () => {
  expect(await post('/forecast', {})).toMatchObject({ status: 400, body: { code: 'bad-option' } });
  expect(await post('/forecast', { urls: pages(), job: {} })).toMatchObject({ status: 400 });
  expect(await post('/forecast', { job: { sources: ['/etc/passwd'] } })).toMatchObject({ status: 403 });
});
