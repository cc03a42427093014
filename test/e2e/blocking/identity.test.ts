import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import type { AttemptRow, TaskRow } from '../../../src/core/model.ts';
import { seine } from '../../support/seine-in-process.ts';
import { type Finished, jsonLines, lastJson, temporaryFolder } from '../../support/seine-process.ts';
import {
  type Answer,
  CAPTCHA_PAGE,
  isBrowserLike,
  openPickySite,
  type PickySite,
  sendPage,
} from '../../support/sites/picky-site.ts';

const closers: (() => void | Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

interface Run {
  site: PickySite;
  dir: string;
  result: Finished;
  tasks(): Promise<TaskRow[]>;
  attempts(): Promise<AttemptRow[]>;
}

/** Runs a job of `count` pages against a site that answers as told. */
async function runJob(answer: Answer, count: number, job: Record<string, unknown>): Promise<Run> {
  const site = await openPickySite(answer);
  closers.push(() => site.close());
  const folder = temporaryFolder();
  closers.push(() => folder.remove());
  const file = join(folder.path, 'job.json');
  writeFileSync(
    file,
    JSON.stringify({
      name: 'picky',
      sources: Array.from({ length: count }, (_, index) => `${site.url}/p/${index}`),
      allowPrivate: true,
      politeness: { rate: 'max', parallel: 2, adaptive: false },
      retry: { attempts: 3, baseMs: 20, maxMs: 100 },
      breaker: { hostRestMs: 50 },
      ...job,
    }),
  );
  const dir = join(folder.path, 'seine');
  const result = await seine(['run', file, '--dir', dir, '--workers', '1', '--json']);
  const rows = async <T>(what: string) =>
    jsonLines<T>(
      (await seine(['export', 'picky', '--what', what, '--format', 'jsonl', '--dir', dir])).stdout,
    );
  return {
    site,
    dir,
    result,
    tasks: () => rows<TaskRow>('tasks'),
    attempts: () => rows<AttemptRow>('attempts'),
  };
}

const forBrowsersOnly: Answer = (request, response) => {
  if (isBrowserLike(request)) sendPage(response, request.path);
  else response.writeHead(403, { 'content-type': 'text/html' }).end('<h1>Forbidden</h1>');
};

test('a job that asks for nothing sends nothing of a browser, and is refused under its own name', async () => {
  const run = await runJob(forBrowsersOnly, 20, { routes: [{ name: 'all' }] });
  expect((await run.tasks()).map(({ state, failureCode }) => `${state} ${failureCode}`)).toEqual(
    Array(20).fill('dead forbidden'),
  );
  // Once more where another batch was out, which might have been let in.
  const requests = Map.groupBy(run.site.pages(), ({ path }) => path);
  expect(requests.size).toBe(20);
  for (const [path, { length }] of requests) expect(length, path).toBeLessThanOrEqual(2);
  for (const { headers, rawHeaders } of run.site.seen) {
    expect(headers['user-agent']).toMatch(/^Seine\//);
    expect(rawHeaders.filter((name) => /^(sec-|upgrade-insecure|cookie|referer)/i.test(name))).toEqual([]);
  }
});

test('a route that may change its identity finds the cheapest way that works, and stays with it', async () => {
  const routes = [{ name: 'all', escalate: ['identity', 'impersonate'] }];
  const run = await runJob(forBrowsersOnly, 60, { routes });
  expect(lastJson(run.result)).toMatchObject({ state: 'done' });
  expect((await run.tasks()).filter(({ state }) => state === 'done')).toHaveLength(60);
  const refused = run.site.pages().filter((request) => !isBrowserLike(request));
  // The scouts, and 2 % that try the honest way again.
  expect(refused.length).toBeGreaterThan(0);
  expect(refused.length).toBeLessThanOrEqual(10);
  const attempts = await run.attempts();
  expect(new Set(attempts.filter(({ httpStatus }) => httpStatus === 200).map(({ rung }) => rung))).toEqual(
    new Set([1]),
  );
  expect(attempts.every(({ fetcher, proxy }) => fetcher === 'http' && proxy === null)).toBe(true);
  // One visitor, not a crowd.
  const userAgents = new Set(
    run.site
      .pages()
      .filter(isBrowserLike)
      .map(({ headers }) => headers['user-agent']),
  );
  expect(userAgents.size).toBe(1);
  // robots.txt is asked for under the own name, whatever the pages are.
  for (const { headers } of run.site.seen.filter(({ path }) => path === '/robots.txt'))
    expect(headers['user-agent']).toMatch(/^Seine\//);
});

test('in browser mode the headers are whole, in the order of the browser, with the languages of the job', async () => {
  const run = await runJob((request, response) => sendPage(response, request.path), 3, {
    identity: { mode: 'browser', languages: ['de-CH'] },
  });
  expect((await run.tasks()).every(({ state }) => state === 'done')).toBe(true);
  const [first] = run.site.pages();
  const names = first!.rawHeaders.filter((_, index) => index % 2 === 0);
  const userAgent = first!.headers['user-agent']!;
  expect(first!.headers['accept-language']).toMatch(/^de-CH,de;q=0\.[59]$/);
  const place = (name: string) => names.indexOf(name);
  expect(place('User-Agent')).toBeGreaterThan(0);
  if (userAgent.includes('Chrome')) {
    expect(place('sec-ch-ua')).toBeLessThan(place('User-Agent'));
    expect(place('Accept-Encoding')).toBeGreaterThan(place('Sec-Fetch-Dest'));
  } else if (userAgent.includes('Firefox')) {
    expect(place('Accept-Language')).toBeLessThan(place('Accept-Encoding'));
  } else {
    expect(place('Sec-Fetch-Dest')).toBeLessThan(place('User-Agent'));
  }
});

const forFewHeadersOnly: Answer = (request, response) => {
  if (isBrowserLike(request) && request.headers.accept === '*/*') sendPage(response, request.path);
  else response.writeHead(406).end();
};

test('the header ladder goes from many to few', async () => {
  const run = await runJob(forFewHeadersOnly, 30, { identity: { mode: 'browser' } });
  expect((await run.tasks()).filter(({ state }) => state === 'done')).toHaveLength(30);
  const attempts = await run.attempts();
  expect(new Set(attempts.filter(({ httpStatus }) => httpStatus === 200).map(({ rung }) => rung))).toEqual(
    new Set([2]),
  );
  expect(attempts.length).toBeLessThan(30 + 16);
});

test('a route may be fetched like a browser down to TLS, with headers that fit', async () => {
  const run = await runJob((request, response) => sendPage(response, request.path), 6, {
    routes: [{ name: 'all', fetcher: 'impersonate' }],
  });
  expect((await run.tasks()).every(({ state, bytes }) => state === 'done' && bytes! > 1_000)).toBe(true);
  expect((await run.attempts()).every(({ fetcher }) => fetcher === 'impersonate')).toBe(true);
  for (const { headers } of run.site.pages()) {
    expect(headers['user-agent']).toMatch(/Chrome\/151\.0\.0\.0|Firefox\/144\.0/);
    expect(headers['sec-fetch-site']).toBe('none');
  }
  const page = await seine(['page', `${run.site.url}/p/1`, '--dir', run.dir]);
  expect(page.stdout).toContain('<h1>/p/1</h1>');
});

test('what was learned is there after a stop and a resume', async () => {
  const routes = [{ name: 'all', escalate: ['identity'] }];
  const run = await runJob(forFewHeadersOnly, 40, { routes, limits: { pages: 20 } });
  expect(lastJson(run.result)).toMatchObject({ state: 'stopped' });
  const before = (await run.attempts()).length;
  const resumed = await seine(['resume', '--max-pages', '41', '--dir', run.dir, '--workers', '1', '--json']);
  expect(lastJson(resumed)).toMatchObject({ state: 'done' });
  const after = (await run.attempts()).slice(before);
  // At most a few that try the cheaper rungs again: to learn anew would take three refusals for each scout.
  expect(after.filter(({ httpStatus }) => httpStatus === 406).length).toBeLessThanOrEqual(3);
});

test('429 is waited out on the same rung', async () => {
  const run = await runJob(
    (request, response, count) => {
      if (count <= 3) response.writeHead(429, { 'retry-after': '0' }).end();
      else sendPage(response, request.path);
    },
    10,
    { routes: [{ name: 'all', escalate: ['identity'] }] },
  );
  expect((await run.tasks()).filter(({ state }) => state === 'done')).toHaveLength(10);
  expect(run.site.pages().some(isBrowserLike)).toBe(false);
});

test('a CAPTCHA is never a success, with evidence, and is not solved', async () => {
  const run = await runJob(
    (_request, response) => response.writeHead(200, { 'content-type': 'text/html' }).end(CAPTCHA_PAGE),
    3,
    { breaker: { hostFailures: 100 } },
  );
  for (const { state, failureCode, failureDetail } of await run.tasks()) {
    expect([state, failureCode]).toEqual(['dead', 'captcha']);
    expect(failureDetail).toContain('Cloudflare: the page has "_cf_chl_opt"');
  }
  expect(run.site.pages()).toHaveLength(9);
});

test('a host that begins to give every URL the same few bytes is seen through', async () => {
  const run = await runJob(
    (request, response, count) => {
      if (count <= 30) sendPage(response, request.path);
      else response.writeHead(200, { 'content-type': 'text/html' }).end('<h1>Welcome</h1>');
    },
    60,
    { breaker: { hostFailures: 1_000 }, retry: { attempts: 1 } },
  );
  const tasks = await run.tasks();
  const soft = tasks.filter(({ failureCode }) => failureCode === 'soft-block');
  // The first seven of the same could not be told from pages.
  expect(soft).toHaveLength(60 - 30 - 7);
  expect(soft[0]!.failureDetail).toMatch(/^the same 16 bytes for \d+ URLs in a row/);
});

test('cookies stay with their identity and origin, and appear in no output', async () => {
  const secret = 'c00kie-5ecret';
  const answer: Answer = (request, response, count) => {
    const known = request.headers.cookie?.includes(`visit=${secret}`);
    if (known || count <= 2) {
      const cookies = { 'set-cookie': `visit=${secret}; Path=/; HttpOnly` };
      sendPage(response, request.path, known ? {} : cookies);
    } else response.writeHead(403).end();
  };
  const run = await runJob(answer, 40, { identity: { mode: 'browser' }, batchSize: 4 });
  expect((await run.tasks()).filter(({ state }) => state === 'done').length).toBeGreaterThan(35);
  expect(run.site.pages().filter(({ headers }) => headers.cookie !== undefined).length).toBeGreaterThan(30);
  const outputs = [run.result.stdout, run.result.stderr, JSON.stringify(await run.attempts())];
  for (const command of [
    ['status', '--json'],
    ['hosts', '--json'],
    ['dead', '--json'],
  ])
    outputs.push((await seine([...command, '--dir', run.dir])).stdout);
  expect(outputs.join('\n')).not.toContain(secret);
});

test('in browser mode a followed link tells the page that it is on, and other origins only its origin', async () => {
  const other = await openPickySite((request, response) => sendPage(response, request.path));
  closers.push(() => other.close());
  const run = await runJob(
    (request, response) => {
      const links =
        { '/p/0': ['/list?page=2'], '/list?page=2': ['/item/1', `${other.url}/out`] }[request.path] ?? [];
      response.writeHead(200, { 'content-type': 'text/html' });
      response.end(`<p>a page</p>${links.map((href) => `<a href="${href}">there</a>`).join(' ')}`);
    },
    1,
    { identity: { mode: 'browser' }, follow: 'any' },
  );
  expect(run.result.code).toBe(0);
  const told = (site: PickySite) =>
    site.pages().map(({ path, headers }) => [path, headers.referer, headers['sec-fetch-site']]);
  expect(told(run.site)).toEqual([
    ['/p/0', undefined, 'none'],
    ['/list?page=2', `${run.site.url}/p/0`, 'same-origin'],
    ['/item/1', `${run.site.url}/list?page=2`, 'same-origin'],
  ]);
  expect(told(other)).toEqual([['/out', `${run.site.url}/`, 'same-site']]);
});
