import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import {
  attemptsOf,
  closeAll,
  closers,
  openProxy,
  openSite,
  run,
  writeJob,
} from '../../support/runs/proxied-run.ts';
import { seine } from '../../support/seine-in-process.ts';
import { lastJson, startSeine } from '../../support/seine-process.ts';
import { closedPort } from '../../support/servers/proxy-servers.ts';
import { openScrapingApi } from '../../support/servers/scraping-api.ts';

afterEach(closeAll);

test('rows of a source name their pool and country, and their pages go that way', async () => {
  const site = await openSite();
  const [german, french, other] = ['127.0.0.31', '127.0.0.32', '127.0.0.33'];
  const list = [
    `${(await openProxy({ from: german })).url()} DE`,
    `${(await openProxy({ from: french })).url()} FR`,
  ];
  const { dir, args } = writeJob({
    ...{ site, pages: 0, list },
    job: {
      sources: [{ file: 'rows.csv', poolColumn: 'via', countryColumn: 'land' }],
      proxies: {
        pools: {
          dc: { from: { file: 'proxies.txt' } },
          home: { from: { list: [(await openProxy({ from: other })).url()] } },
        },
        default: 'dc',
      },
    },
  });
  const rows = [
    'url,via,land',
    ...[1, 2, 3].map((at) => `${site.url}/de/${at},,de`),
    ...[1, 2, 3].map((at) => `${site.url}/fr/${at},dc,FR`),
    ...[1, 2, 3].map((at) => `${site.url}/home/${at},home,`),
    `${site.url}/se,,SE`,
    `${site.url}/nowhere,elsewhere,`,
    `${site.url}/unclear,,Germany`,
  ];
  writeFileSync(join(dir, 'rows.csv'), rows.join('\n'));
  const finished = await seine(args);
  expect(lastJson(finished)).toMatchObject({ state: 'done', done: 9, dead: 1 });
  expect(finished.stderr).toMatch(/unknown proxy pool 'elsewhere'/);
  expect(finished.stderr).toMatch(/the country must be two letters such as DE, got 'GERMANY'/);
  const pages = site.requests.filter(({ path }) => path !== '/robots.txt');
  const wayOf = (prefix: string) =>
    new Set(pages.filter(({ path }) => path.startsWith(prefix)).map(({ address }) => address));
  expect(wayOf('/de/')).toEqual(new Set([german]));
  expect(wayOf('/fr/')).toEqual(new Set([french]));
  expect(wayOf('/home/')).toEqual(new Set([other]));
  expect(wayOf('/se')).toEqual(new Set());
  const { stdout } = await seine(['export', '--what', 'tasks', '--dir', join(dir, 'data')]);
  expect(stdout).toMatch(/no-proxy.*pool 'dc' has no proxy in SE/);
  expect(stdout).not.toMatch(/@pool|@country/);
});

describe('a pool with nothing left', () => {
  test('sends nothing, says so, loses no attempt, and goes on with a better list', async () => {
    const site = await openSite();
    const list = [`http://127.0.0.1:${await closedPort()}`, `socks5h://127.0.0.1:${await closedPort()}`];
    const { dir, args } = writeJob({
      site,
      pages: 40,
      list,
      pool: { cooldownSeconds: 600 },
      job: { retry: { attempts: 2, baseMs: 50 } },
    });
    const started = startSeine(args);
    closers.push(async () => void (await started.killTree()));
    const data = join(dir, 'data');
    const status = async () => lastJson(await seine(['status', '--dir', data, '--json']));
    await expect
      .poll(async () => (await status()).reason)
      .toMatch(/^no proxy of pool 'dc' is usable until \S+Z \(2 in total, 2 failed\) since \d/);
    expect(await status()).toMatchObject({ state: 'running', done: 0, dead: 0, pending: 40 });
    await seine(['stop', '--dir', data]);
    const { stderr } = await started.finished;
    expect(stderr).toMatch(/no proxy of pool 'dc' is usable until/);
    expect(site.requests).toEqual([]);

    const from = '127.0.0.21';
    writeFileSync(join(dir, 'proxies.txt'), (await openProxy({ from })).url());
    const resumed = await seine(['resume', '--dir', data, '--json']);
    expect(lastJson(resumed)).toMatchObject({ state: 'done', done: 40, dead: 0 });
    expect(new Set(site.requests.map(({ address }) => address))).toEqual(new Set([from]));
  });

  test('that stays so stops the job by its breaker, with every task still there', async () => {
    const site = await openSite();
    const list = [`http://127.0.0.1:${await closedPort()}`];
    const pool = { cooldownSeconds: 0.01 };
    const job = { retry: { attempts: 2, baseMs: 10 }, breaker: { jobBatches: 4 } };
    const finished = await run({ site, pages: 40, list, pool, job });
    expect(finished.code).toBe(4);
    expect(lastJson(finished)).toMatchObject({ state: 'tripped', dead: 0, pending: 40 });
    expect(site.requests).toEqual([]);
  });

  test('is passed by only when the job says so', async () => {
    const site = await openSite();
    const list = [`http://127.0.0.1:${await closedPort()}`];
    const finished = await run({ site, pages: 20, list, proxies: { fallback: 'direct' } });
    expect(lastJson(finished)).toMatchObject({ state: 'done', done: 20 });
    expect(site.requests.some(({ address }) => address === '127.0.0.1')).toBe(true);
  });
});

test.each(['http', 'socks5'] as const)(
  'impersonation goes through %s proxies, too, and not without',
  async (kind) => {
    const site = await openSite();
    const from = '127.0.0.51';
    const dead = `http://127.0.0.1:${await closedPort()}`;
    const list = [dead, (await openProxy({ kind, from })).url()];
    const job = { routes: [{ name: 'pages', fetcher: 'impersonate' }] };
    const finished = await run({ site, pages: 20, list, job });
    expect(lastJson(finished)).toMatchObject({ state: 'done', done: 20, dead: 0 });
    expect(new Set(site.requests.map(({ address }) => address))).toEqual(new Set([from]));
  },
);

describe('staying with a proxy', () => {
  const addresses = [31, 32, 33, 34, 35, 36].map((last) => `127.0.0.${last}`);
  const openAll = () => Promise.all(addresses.map((from) => openProxy({ from })));

  test('a host keeps its residential proxy', async () => {
    const site = await openSite();
    const list = (await openAll()).map((proxy) => proxy.url());
    await run({ site, pages: 60, list, pool: { type: 'residential' } });
    expect(site.requests.length).toBe(61);
    // One, or two where its ten minutes end during the run; all six where each request has another.
    expect(new Set(site.requests.map(({ address }) => address)).size).toBeLessThanOrEqual(2);
  });

  test('a worker keeps its own', async () => {
    const site = await openSite();
    const list = (await openAll()).map((proxy) => proxy.url());
    const { dir } = await run({ site, pages: 200, list, pool: { perWorker: true }, workers: 2 });
    const byWorker = Map.groupBy(await attemptsOf(dir), ({ worker }) => worker);
    expect(byWorker.size).toBe(2);
    for (const attempts of byWorker.values())
      expect(new Set(attempts.map(({ proxy }) => proxy)).size).toBe(1);
  });
});

describe('what is dear', () => {
  test('is taken only where the cheap way is refused', async () => {
    const site = await openSite();
    const from = '127.0.0.41';
    const list = [(await openProxy({ from })).url()];
    const proxies = { default: undefined };
    const routes = [{ name: 'pages', proxy: 'dc', escalate: ['proxy'] }];
    const open = await run({ site, pages: 30, list, proxies, job: { routes } });
    expect(lastJson(open)).toMatchObject({ state: 'done', done: 30 });
    expect(new Set(site.requests.map(({ address }) => address))).toEqual(new Set(['127.0.0.1']));

    const strict = await openSite();
    strict.banned.add('127.0.0.1');
    const finished = await run({ site: strict, pages: 30, list, proxies, job: { routes } });
    expect(lastJson(finished)).toMatchObject({ state: 'done', done: 30, dead: 0 });
    const direct = strict.requests.filter(({ address }) => address === '127.0.0.1').length;
    expect(direct).toBeLessThan(20);
  });

  test('is counted: pages of a remote scraping API, asked for in lists', async () => {
    const api = await openScrapingApi('the-key');
    closers.push(() => api.close());
    const site = await openSite();
    const { dir, args } = writeJob({
      site,
      pages: 40,
      list: [],
      proxies: { pools: {}, default: undefined },
      job: {
        // A pace that learns asks for less at once on a machine that is busy: the lists would be shorter.
        politeness: { rate: 'max', parallel: 20, robots: false, adaptive: false },
        routes: [{ name: 'pages', fetcher: 'api' }],
        api: {
          key: { env: 'SEINE_SECRET_API' },
          headers: { 'x-key': '{key}' },
          batch: {
            ...{ submit: `${api.url}/lists`, jobs: 'job', size: 10, pollMs: 50 },
            // Nothing here waits for these unless a list stays short, or a message gets lost.
            ...{ gatherMs: 2_000, callbackPollMs: 60_000 },
          },
        },
      },
    });
    const finished = await seine(args, { env: { SEINE_SECRET_API: 'the-key' } });
    expect(lastJson(finished)).toMatchObject({ state: 'done', done: 40, apiCost: 80 });
    expect(api.fetched.length).toBe(40);
    expect(api.lists.length).toBeLessThan(20);
    expect(site.requests).toEqual([]);
    expect(new Set((await attemptsOf(dir)).map(({ fetcher }) => fetcher))).toEqual(new Set(['api']));

    // The same again, with pages that the API sends by itself.
    api.calls = (id, results) => ({ body: { id, status: 'finished', results } });
    api.lists.length = api.polls = 0;
    const job = JSON.parse(readFileSync(join(dir, 'job.json'), 'utf8'));
    job.api.batch.body = { urls: '{urls}', callback: '{callback}' };
    writeFileSync(join(dir, 'job.json'), JSON.stringify(job));
    const env = { SEINE_SECRET_API: 'the-key', SEINE_API_CALLBACK_LISTEN: '127.0.0.1:0' };
    expect(lastJson(await seine(args, { env }))).toMatchObject({ state: 'done', done: 40, apiCost: 80 });
    expect([api.polls, api.called.filter((status) => status !== 204)]).toEqual([0, []]);
  });
});
