import { readFileSync } from 'node:fs';
import { createServer, type Server as Site } from 'node:http';
import type { AddressInfo } from 'node:net';
import { fileURLToPath } from 'node:url';
import { gzipSync } from 'node:zlib';
import { type Browser, chromium, type Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { openFolder } from '../../../src/app/folder.ts';
import { findChromium } from '../../../src/fetch/browser/process/find-chromium.ts';
import { createKey } from '../../../src/server/keys/manage-keys.ts';
import { openReadOnlyServer } from '../../../src/server/read-only-server.ts';
import { change, enqueue, leaseOne, recordOf, settlementOf, specOf, taskOf } from '../../support/fixtures.ts';
import { type ApiServer, openApiServer } from '../../support/servers/api-server.ts';

/** The page itself, in a real browser: against 50,000 tasks, and with text of strangers in every field. */

const PATIENCE = { timeout: 60_000 };
const BYTES_MAX = 90_000;

const MARKUP = '<img src=x onerror="window.ran=1"><script>window.ran=1</script>';
const HOSTILE = `${MARKUP}\u001b[31mred\u0007\u202egnp.exe\u2066`;
const LONG = `https://long.example/${'a%3Cb%3E'.repeat(250)}`;
const FIELD = '"><svg onload=window.ran=1>';
/** Runs a script and loads from its site, wherever it is let. */
const PAGE = `<!doctype html><title>Stored</title><h1>${'A page'}</h1><p class="price">12</p>
<img src="/beacon.png"><script>parent.ran = 1; fetch('/beacon')</script><a href="/missing">x</a>`;

const MANY = 50_000;
const CHUNK = 5_000;

let site: Site;
let siteUrl: string;
const asked: string[] = [];
let server: ApiServer;
let browser: Browser;
let crawled: string;
/** The page `/held` comes when a test wants it. */
const held = Promise.withResolvers<void>();

beforeAll(async () => {
  site = createServer((request, answer) => {
    asked.push(request.url!);
    const isPage = request.url === '/' || request.url === '/held';
    const send = () =>
      answer.writeHead(isPage ? 200 : 404, { 'content-type': 'text/html' }).end(isPage ? PAGE : '');
    if (request.url === '/held') void held.promise.then(send);
    else send();
  });
  await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve));
  siteUrl = `http://127.0.0.1:${(site.address() as AddressInfo).port}/`;
  const found = await findChromium(null);
  [server, browser] = await Promise.all([
    openApiServer(),
    chromium.launch({
      executablePath: found.path,
      env: { ...process.env, ...found.environment } as Record<string, string>,
      args: ['--no-sandbox', '--disable-gpu'],
    }),
  ]);
  await fill(server.dir);
  crawled = await crawl();
  const url = `https://hooks.example/${MARKUP}`;
  await api('POST', '/webhooks', { url, events: ['record.changed'] });
});

afterAll(async () => {
  await browser?.close();
  await server?.close();
  site?.close();
});

/** Beside the server, as another process would: a finished job with hostile text, and one of 50,000 tasks. */
async function fill(dir: string): Promise<void> {
  const folder = await openFolder({ dir, sync: 'normal' }, { create: false });
  const { store } = folder;
  const make = async (name: string) => {
    const code = { spec: specOf({ name }), specHash: name, bundle: null, file: null };
    const job = await store.jobs.create({ ...code, name, now: Date.now() });
    await store.jobs.update(job.id, { state: 'stopped', reason: HOSTILE, endedAt: Date.now() });
    return job;
  };
  const hostile = await make('hostile');
  const urls = [LONG, 'https://a.example/<script>window.ran=1</script>', `https://a.example/${HOSTILE}`];
  await enqueue(
    store,
    hostile,
    urls.map((url) => ({ ...taskOf(url), host: new URL(url).host, meta: { [FIELD]: HOSTILE } })),
  );
  for (let left = urls.length; left > 0; ) {
    const batch = await leaseOne(store, hostile);
    left -= batch.tasks.length;
    const tasks = batch.tasks.map(({ id, url }) =>
      url.includes('long.example')
        ? change.dead(id, { detail: HOSTILE })
        : change.fetched(id, { records: [recordOf(`${id}${FIELD}`, { [FIELD]: HOSTILE, text: 'x' })] }),
    );
    const host = { host: 'a.example', sent: 1, nextAt: null, failuresInRow: 9, rests: 0, pace: null };
    const lastError = { at: Date.now(), code: 'reset', detail: HOSTILE };
    await store.frontier.settle(
      settlementOf(hostile, batch.id, tasks, {
        worker: HOSTILE,
        hosts: [{ ...host, smallestGapMs: null, lastError }],
      }),
    );
  }
  const many = await make('many');
  for (let from = 0; from < MANY; from += CHUNK)
    await enqueue(
      store,
      many,
      Array.from({ length: CHUNK }, (_, at) => taskOf(`https://h${at % 50}.example/page/${from + at}`)),
    );
  const batch = await leaseOne(store, many);
  const [first, ...others] = batch.tasks.map(({ id }) => id);
  await store.frontier.settle(
    settlementOf(many, batch.id, [change.dead(first!), ...others.map((id) => change.fetched(id))]),
  );
  await store.alerts.fire({ kind: 'disk-low', subject: '', text: HOSTILE, now: Date.now() });
  await store.alerts.fire({ kind: 'success-low', subject: 'hostile-1', text: HOSTILE, now: Date.now() });
  await store.alerts.resolve('success-low', 'hostile-1', Date.now());
  await folder.close();
}

async function crawl(): Promise<string> {
  const { job_id: id } = await api<{ job_id: string }>('POST', '/jobs', {
    name: 'crawled',
    sources: [siteUrl],
    follow: true,
    routes: [{ name: 'page', select: { title: 'h1', price: '.price' } }],
    politeness: { rate: 'max', robots: false },
    allowPrivate: true,
  });
  await vi.waitFor(async () => {
    const { status } = await api<{ status: string }>('GET', `/jobs/${id}`);
    expect(status).toBe('completed');
  }, PATIENCE);
  return id;
}

async function api<T>(method: string, path: string, body?: unknown): Promise<T> {
  const answer = await fetch(`${server.url}/api/v1${path}`, {
    method,
    ...(body === undefined
      ? {}
      : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
  });
  return (await answer.json()) as T;
}

/** A tab that notes everything that must not happen. */
async function openPage(
  base: string,
  options: { width?: number; height?: number; colorScheme?: 'dark' | 'light' } = {},
): Promise<{ page: Page; wrong: string[] }> {
  const { width = 1440, height = 900, colorScheme = 'dark' } = options;
  const page = await browser.newPage({ viewport: { width, height }, colorScheme });
  const wrong: string[] = [];
  page.on('console', (message) => {
    // That the frame of a stored page is kept from doing something is told as an error.
    const isKept = /frame is sandboxed|directive: "(img|default)-src/.test(message.text());
    if (message.type() === 'error' && !isKept) wrong.push(message.text());
  });
  page.on('pageerror', (error) => wrong.push(String(error)));
  page.on('dialog', (dialog) => wrong.push(dialog.message()));
  page.on('request', (request) => {
    const url = request.url();
    if (!url.startsWith(base) && !url.startsWith('data:')) wrong.push(`asked for ${url.slice(0, 100)}`);
  });
  return { page, wrong };
}

const AXE = readFileSync(fileURLToPath(import.meta.resolve('axe-core/axe.min.js')), 'utf8');

/** Serious and critical violations, by rule and place. */
async function violationsOf(page: Page): Promise<string[]> {
  await page.evaluate(AXE);
  return page.evaluate<string[]>(`
    axe.run(document, { iframes: false, resultTypes: ['violations'] }).then(({ violations }) =>
      violations
        .filter(({ impact }) => impact === 'serious' || impact === 'critical')
        .map(({ id, nodes }) => id + ': ' + nodes[0].html.slice(0, 160)))`);
}

test('all files together are small, and nothing of them is elsewhere', () => {
  const read = (name: string) =>
    readFileSync(fileURLToPath(new URL(`../../../dist/dashboard/${name}`, import.meta.url)));
  const sizes = ['index.html', 'app.js', 'app.css', 'icon.svg'].map((name) => gzipSync(read(name)).length);
  expect(sizes.reduce((sum, size) => sum + size, 0)).toBeLessThan(BYTES_MAX);
  expect(read('index.html').toString()).not.toMatch(/https?:|style=|<script>|<style/);
  expect(read('app.css').toString()).not.toMatch(/url\(|@import/);
});

test('the page and its files come with a strict policy, deep links too, and what is known is not sent again', async () => {
  for (const path of ['/', '/jobs/job_1/tasks?q=x', '/settings', '/assets/app.js']) {
    const answer = await fetch(server.url + path);
    expect([path, answer.status]).toEqual([path, 200]);
    const policy = answer.headers.get('content-security-policy')!;
    expect(policy).toContain("default-src 'none'");
    expect(policy).toContain("script-src 'self';");
    expect(policy).toContain("style-src 'self';");
    expect(policy).not.toContain('unsafe');
    const etag = answer.headers.get('etag')!;
    const again = await fetch(server.url + path, { headers: { 'if-none-match': etag } });
    expect(again.status).toBe(304);
  }
  expect((await fetch(`${server.url}/assets/../../package.json`)).status).toBe(404);
});

describe('views', () => {
  const views = () => [
    ['/', 'hostile'],
    ['/jobs/job_1', 'Failed attempts by host'],
    ['/jobs/job_1/tasks', 'long.example'],
    [`/jobs/job_1/task?url=${encodeURIComponent(LONG)}`, 'Attempts'],
    ['/jobs/job_1/dead', 'not-found'],
    ['/jobs/job_1/records', '27e8'],
    ['/jobs/job_1/hosts', 'a.example'],
    ['/jobs/job_1/cost', 'Spent'],
    ['/jobs/job_2', '50.0k'],
    ['/jobs/job_2', 'Too few measurements for a curve'],
    ['/jobs/job_2/tasks', '50 shown'],
    ['/jobs/job_2/tasks?q=page/49999', 'h49.example'],
    ['/jobs/job_2/dead', 'Retry all'],
    ['/jobs/job_2/hosts', 'h49.example'],
    ['/jobs/job_2/cost', 'adds up'],
    [`/jobs/${crawled}`, 'Quality of records'],
    [`/jobs/${crawled}/task?url=${encodeURIComponent(siteUrl)}`, 'Stored page'],
    ['/hosts', 'a.example'],
    ['/workers', 'Workers'],
    ['/cost', 'hostile'],
    ['/webhooks', 'hooks.example'],
    ['/alerts', '27e8'],
    ['/settings', 'Running since'],
    ['/new?as=file', 'Valid'],
  ];

  test('each shows what it is about, runs no script of strangers, logs no error, and is accessible', async () => {
    const { page, wrong } = await openPage(server.url);
    const found: unknown[] = [];
    for (const [path, text] of views()) {
      await page.goto(server.url + path!);
      const shown = text === '27e8' ? '⟨202e⟩gnp.exe' : text!;
      await page.getByText(shown).first().waitFor(PATIENCE);
      await page.setViewportSize({ width: 375, height: 812 });
      const isTooWide = await page.evaluate('document.documentElement.scrollWidth > innerWidth');
      // Rows become cards there; only tables with columns of strangers are moved sideways.
      const isCut = await page.evaluate(
        `[...document.querySelectorAll('.table-box:has(.stack)')].some((box) => box.scrollWidth > box.clientWidth)`,
      );
      const cutFigures = [await cutFiguresOf(page)];
      for (const width of [900, 1331, 1440]) {
        await page.setViewportSize({ width, height: 900 });
        cutFigures.push(await cutFiguresOf(page));
      }
      const ran = await page.evaluate('"ran" in window');
      const violations = await violationsOf(page);
      const isFigureCut = cutFigures.flat().length > 0;
      if (ran || isTooWide || isCut || isFigureCut || violations.length > 0 || wrong.length > 0)
        found.push({
          ...{ path: path!.slice(0, 80), ran, isTooWide, isCut, cutFigures, violations },
          wrong: wrong.splice(0),
        });
    }
    expect(found).toEqual([]);
    // Its script and its images were in the frame, and did nothing.
    expect(asked.filter((url) => url.startsWith('/beacon'))).toEqual([]);
    await page.close();
  });

  test('light colours are readable, too, by the system and by the switch', async () => {
    const { page, wrong } = await openPage(server.url, { colorScheme: 'light' });
    await page.goto(`${server.url}/jobs/${crawled}`);
    await page.getByText('Quality of records').waitFor(PATIENCE);
    expect([await violationsOf(page), wrong]).toEqual([[], []]);
    await page.getByRole('button', { name: 'Dark colours' }).click();
    expect(await page.evaluate('document.documentElement.dataset.theme')).toBe('dark');
    await page.reload();
    await page.getByRole('button', { name: 'Light colours' }).waitFor(PATIENCE);
    await page.close();
  });
});

/** Figures that do not fit into their boxes, also where the time left is the longest. */
function cutFiguresOf(page: Page): Promise<string[]> {
  return page.evaluate(`[...document.querySelectorAll('.stat-value')].flatMap((figure) => {
    const long = figure.cloneNode();
    long.classList.add('long');
    long.style.setProperty('--characters', 13);
    long.textContent = '≥ 23 h 59 min';
    figure.after(long);
    const cut = [figure, long].filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth);
    long.remove();
    return cut.map(({ textContent }) => textContent);
  })`);
}

describe('what a person does', () => {
  test('finds one URL by its address, sees its attempts and its page without scripts', async () => {
    const { page, wrong } = await openPage(server.url);
    await page.goto(`${server.url}/jobs/${crawled}/tasks`);
    await page.getByRole('searchbox').fill(siteUrl);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Attempts' }).waitFor(PATIENCE);
    const frame = page.frameLocator('iframe');
    await frame.getByText('A page').waitFor(PATIENCE);
    expect(await page.locator('iframe').getAttribute('sandbox')).toBe('');
    expect(wrong).toEqual([]);
    await page.close();
  });

  test('writes a job, is told what is wrong with it, and starts it', async () => {
    const { page } = await openPage(server.url);
    await page.goto(`${server.url}/new?as=file`);
    const field = page.getByLabel('Job file');
    await field.fill('name: typed\nsuorces: [https://a.example/]\n');
    await page.getByText('Not valid yet').waitFor(PATIENCE);
    await page.getByRole('alert').getByText('suorces').waitFor(PATIENCE);
    await field.fill(
      `name: typed\nsources: ['${siteUrl}']\npoliteness: {robots: false}\nallowPrivate: true\n`,
    );
    await page.getByText('Valid', { exact: true }).waitFor(PATIENCE);
    await page.getByRole('button', { name: 'Start' }).click();
    await page.getByRole('heading', { name: 'typed' }).waitFor(PATIENCE);
    await page.getByText('completed').first().waitFor(PATIENCE);
    await page.close();
  });

  test('follows a job by its name to its end, and finds a mistake in a line of the form', async () => {
    const { page } = await openPage(server.url);
    await page.goto(`${server.url}/new`);
    await page.getByLabel('Fields of records').fill('title h1');
    await page.getByLabel('URLs, one on each line').fill(siteUrl);
    await page.getByRole('alert').getByText('"title h1" is not a field').waitFor(PATIENCE);
    const sources = [`${siteUrl}held`];
    await api('POST', '/jobs', {
      name: 'by-name',
      sources,
      allowPrivate: true,
      politeness: { robots: false },
    });
    await page.goto(`${server.url}/jobs/by-name`);
    await page.getByText('running', { exact: true }).first().waitFor(PATIENCE);
    await expect.poll(() => page.title(), PATIENCE).toBe('by-name · Seine');
    held.resolve();
    await page.getByText('completed', { exact: true }).first().waitFor(PATIENCE);
    await page.close();
  });

  test('tries a group of dead letters again', async () => {
    const { page } = await openPage(server.url);
    await page.goto(`${server.url}/jobs/${crawled}/dead`);
    const before = asked.filter((url) => url === '/missing').length;
    await page.getByRole('button', { name: 'Retry not-found' }).click();
    await vi.waitFor(() => {
      expect(asked.filter((url) => url === '/missing').length).toBeGreaterThan(before);
    }, PATIENCE);
    await page.close();
  });

  test('is told of alerts beside the name of their view, and silences one', async () => {
    const { page, wrong } = await openPage(server.url);
    await page.goto(`${server.url}/alerts`);
    const link = page.getByRole('link', { name: 'Alerts' });
    await expect.poll(() => link.locator('.badge').textContent(), PATIENCE).toBe('1');
    await page.getByText('success-low').waitFor(PATIENCE);
    await page.getByRole('button', { name: 'Silence disk-low for an hour' }).click();
    await page.getByText('silent until').waitFor(PATIENCE);
    await expect.poll(() => link.locator('.badge').count(), PATIENCE).toBe(0);
    expect(wrong).toEqual([]);
    await page.close();
  });

  test('goes from view to view with keys', async () => {
    const { page } = await openPage(server.url);
    await page.goto(server.url);
    await page.getByRole('heading', { name: 'Jobs', exact: true }).waitFor(PATIENCE);
    await page.keyboard.press('g');
    await page.keyboard.press('h');
    await page.getByRole('heading', { name: 'Hosts', exact: true }).waitFor(PATIENCE);
    expect(new URL(page.url()).pathname).toBe('/hosts');
    await page.goBack();
    await page.getByRole('heading', { name: 'Jobs', exact: true }).waitFor(PATIENCE);
    await page.close();
  });

  test('leaves the tab, and nothing is sent to it until it is seen again', async () => {
    const { page } = await openPage(server.url);
    await page.goto(server.url);
    await page.getByText('Live', { exact: true }).waitFor(PATIENCE);
    const hide = (isHidden: boolean) =>
      page.evaluate(`
        Object.defineProperty(document, 'hidden', { value: ${isHidden}, configurable: true });
        document.dispatchEvent(new Event('visibilitychange'));`);
    await hide(true);
    await page.getByText('Paused').waitFor(PATIENCE);
    await hide(false);
    await page.getByText('Live', { exact: true }).waitFor(PATIENCE);
    await page.close();
  });
});

test('a folder is shown read-only, beside the server that owns it', async () => {
  const settings = {
    dir: server.dir,
    sync: 'normal' as const,
    workers: 1,
    jobEnvironment: {},
    logger: { info() {}, warn() {}, error() {} },
  };
  const folder = await openFolder(settings, { create: false });
  const shown = await openReadOnlyServer(folder, { listen: { host: '127.0.0.1', port: 0 }, settings });
  try {
    const refused = await fetch(`${shown.url}/api/v1/jobs/${crawled}/refresh`, { method: 'POST' });
    expect([refused.status, await refused.json()]).toMatchObject([403, { code: 'read-only' }]);
    const { page, wrong } = await openPage(shown.url);
    await page.goto(shown.url);
    await page.getByText('crawled').waitFor(PATIENCE);
    expect(await page.getByText('New job').count()).toBe(0);
    expect(wrong).toEqual([]);
    await page.close();
  } finally {
    await shown.close();
    await folder.close();
  }
});

test('with keys, a person logs in, by a cookie that scripts and other sites cannot use', async () => {
  const locked = await openApiServer();
  try {
    const folder = await openFolder({ dir: locked.dir, sync: 'normal' }, { create: false });
    const { key } = (await createKey(
      folder.store.keys,
      { name: 'a', scope: 'read', limits: {} },
      Date.now(),
    ))!;
    await folder.close();
    const { page } = await openPage(locked.url);
    await page.goto(`${locked.url}/settings`);
    await page.getByLabel('API key').fill('seine_wrong');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').waitFor(PATIENCE);
    await page.getByLabel('API key').fill(key);
    await page.keyboard.press('Enter');
    await page.getByText('Running since').waitFor(PATIENCE);
    const [cookie] = await page.context().cookies();
    expect(cookie).toMatchObject({ name: 'seine_key', httpOnly: true, sameSite: 'Strict', path: '/' });
    const call = (headers: Record<string, string>) =>
      fetch(`${locked.url}/api/v1/jobs`, { headers: { cookie: `seine_key=${cookie!.value}`, ...headers } });
    expect((await call({})).status).toBe(200);
    expect((await call({ 'sec-fetch-site': 'cross-site' })).status).toBe(403);
    expect((await call({ origin: 'https://evil.example' })).status).toBe(403);
    await page.getByRole('button', { name: 'Log out' }).click();
    await page.getByLabel('API key').waitFor(PATIENCE);
    expect(await page.context().cookies()).toEqual([]);
    await page.close();
  } finally {
    await locked.close();
  }
});

test('snapshots are a stream of what jobs do, for those who may see them', async () => {
  const answer = await fetch(`${server.url}/api/v1/snapshots?job=${crawled}`);
  const reader = answer.body!.getReader();
  let text = '';
  while (!/^data: .*\n\n/m.test(text)) {
    const { value } = await reader.read();
    text += Buffer.from(value!).toString();
  }
  await reader.cancel();
  const { jobs } = JSON.parse(/^data: (.*)$/m.exec(text)![1]!);
  expect(jobs.map(({ name }: { name: string }) => name)).toEqual(
    expect.arrayContaining(['hostile', 'many', 'crawled']),
  );
  expect((await fetch(`${server.url}/api/v1/snapshots?job=job_999`)).status).toBe(404);
});
