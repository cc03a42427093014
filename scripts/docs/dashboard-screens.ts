import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { type Browser, chromium } from 'playwright-core';
import { findChromium } from '../../src/fetch/browser/process/find-chromium.ts';
import { startShopSite } from '../../src/sites/shop/shop-site.ts';
import { openApiServer } from '../../test/support/servers/api-server.ts';
import { readOptions } from '../read-options.ts';

const { values: options } = readOptions({
  start: 'npx node scripts/docs/dashboard-screens.ts',
  about: `Pictures of the dashboard from a real run, for the documentation. A proxy on this machine leads the names of some shops
to the bundled one; each is as fast and as reliable as its line in this file says.`,
  options: {
    all: {
      text: null,
      does: 'a folder: every view at two sizes in both themes, instead of the pictures of the documentation',
    },
    seconds: { number: 75, does: 'how long the run lasts before the pictures' },
  },
});

interface Habit {
  delayMs: number;
  /** Of 100 requests. */
  unavailable?: number;
  missing?: number;
  refused?: number;
}

const HABITS = new Map<string, Habit>([
  ['www.lamps-and-more.example', { delayMs: 45 }],
  ['kitchen.example', { delayMs: 90, missing: 4 }],
  ['shop.garden.example', { delayMs: 160, unavailable: 6 }],
  ['office-supplies.example', { delayMs: 70 }],
  ['outdoor.example', { delayMs: 240, missing: 2 }],
  ['toys.example', { delayMs: 60, unavailable: 2 }],
  ['books.example', { delayMs: 110 }],
  ['old-furniture.example', { delayMs: 420, missing: 12, refused: 3 }],
]);

const SIZES = { desktop: { width: 1_440, height: 900 }, phone: { width: 390, height: 844 } };
/** Charts have drawn what the first calls answered. */
const SETTLED_MS = 1_800;
const THEMES = ['dark', 'light'] as const;

const shop = await startShopSite({ delayScale: 0 });
const front = createServer(answer);
await new Promise<void>((resolve) => front.listen(0, '127.0.0.1', resolve));
// As a proxy, it is the other end of each tunnel itself.
front.on('connect', (_, socket) => {
  socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
  front.emit('connection', socket);
});
const folder = mkdtempSync(join(tmpdir(), 'seine-screens-'));
writeFileSync(join(folder, 'proxies.txt'), `http://127.0.0.1:${(front.address() as AddressInfo).port}`);
const server = await openApiServer({
  dir: join(folder, 'served'),
  environment: { SEINE_PROXY_POOLS: `dc=${join(folder, 'proxies.txt')}` },
});
const found = await findChromium(null);
const browser = await chromium.launch({
  executablePath: found.path,
  env: { ...process.env, ...found.environment } as Record<string, string>,
  args: ['--no-sandbox', '--disable-gpu'],
});

try {
  const shops = [...HABITS.keys()];
  await start('lamps', shops.slice(0, 1), 60);
  await start('nightly-prices', shops.slice(1, 4), 12);
  await call('POST', '/webhooks', { url: `${server.url}/healthz`, events: ['job.completed'] });
  const watched = await start('shops', shops, 5);
  // The page is open meanwhile, as it is for a person who watches.
  const tab = await openTab(browser, 'desktop', 'dark');
  await tab.goto(`${server.url}/jobs/${watched}`);
  await pause(options.seconds * 1_000);
  if (options.all === null) await takeForDocs(watched);
  else await takeAll(options.all, watched);
} finally {
  await browser.close();
  await server.close();
  front.close();
  await shop.close();
  rmSync(folder, { recursive: true, force: true });
}

function answer(asked: IncomingMessage, reply: ServerResponse): void {
  const habit = HABITS.get(asked.headers.host ?? '') ?? { delayMs: 20 };
  const path = new URL(asked.url ?? '/', 'http://any.example').pathname;
  // The same pages fail each time; those that are unavailable do so now and then.
  const place = [...path].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % 9_973, 7) % 100;
  const chance = Math.random() * 100;
  const isPage = path !== '/' && path !== '/robots.txt';
  const status = !isPage
    ? null
    : place < (habit.missing ?? 0)
      ? 404
      : place > 99 - (habit.refused ?? 0)
        ? 403
        : chance < (habit.unavailable ?? 0)
          ? 503
          : null;
  setTimeout(
    () => {
      if (status !== null) {
        reply.writeHead(status, { 'content-type': 'text/html' }).end('<h1>Not now</h1>');
        return;
      }
      const passed = request(new URL(path, shop.url), { headers: { accept: 'text/html' } }, (given) => {
        const { location, 'content-type': type = 'text/html' } = given.headers;
        reply.writeHead(given.statusCode!, { 'content-type': type, ...(location ? { location } : {}) });
        given.pipe(reply);
      });
      passed.on('error', () => reply.destroy());
      passed.end();
    },
    habit.delayMs * (0.6 + Math.random() ** 3 * 2),
  );
}

async function call<T>(method: string, path: string, body?: unknown): Promise<T> {
  const given = await fetch(`${server.url}/api/v1${path}`, {
    method,
    ...(body === undefined
      ? {}
      : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
  });
  if (!given.ok) throw new Error(`${method} ${path}: ${given.status} ${await given.text()}`);
  return (await given.json()) as T;
}

async function start(name: string, shops: string[], rate: number): Promise<string> {
  const { job_id: id } = await call<{ job_id: string }>('POST', '/jobs', {
    name,
    sources: shops.map((host) => `http://${host}/`),
    follow: true,
    routes: [
      {
        name: 'product',
        match: '/product/*',
        select: { title: 'h1', price: '.price', brand: '.brand-name', rating: '.rating', stock: '.stock' },
      },
    ],
    politeness: { rate, robots: false },
    proxies: { pools: { dc: { from: { shared: 'dc' } } }, default: 'dc' },
    allowPrivate: true,
  });
  return id;
}

async function openTab(of: Browser, size: keyof typeof SIZES, theme: 'dark' | 'light') {
  return of.newPage({ viewport: SIZES[size], colorScheme: theme, deviceScaleFactor: 1 });
}

/** `{size}` and `{theme}` in the name of the file are replaced. */
async function shoot(
  path: string,
  file: string,
  { sizes, isWhole = false }: { sizes: (keyof typeof SIZES)[]; isWhole?: boolean },
): Promise<void> {
  for (const size of sizes) {
    const tab = await openTab(browser, size, 'dark');
    await tab.goto(server.url + path);
    await tab.getByText('Live', { exact: true }).waitFor();
    await pause(SETTLED_MS);
    for (const theme of THEMES) {
      await tab.emulateMedia({ colorScheme: theme });
      await pause(300);
      const named = file.replace('{size}', size).replace('{theme}', theme);
      await tab.screenshot({ path: named });
      if (isWhole) await tab.screenshot({ path: named.replace('.png', '-whole.png'), fullPage: true });
    }
    await tab.close();
  }
}

async function takeForDocs(id: string): Promise<void> {
  await shoot(`/jobs/${id}`, 'docs/dashboard-{theme}.png', { sizes: ['desktop'] });
  await shoot(`/jobs/${id}`, 'docs/dashboard-phone.png', { sizes: ['phone'] });
}

async function takeAll(to: string, id: string): Promise<void> {
  mkdirSync(to, { recursive: true });
  const { results } = await call<{ results: { url: string }[] }>(
    'GET',
    `/jobs/${id}/results?status=failed&limit=1`,
  );
  const { records } = await call<{ records: { url: string; key: string }[] }>(
    'GET',
    `/jobs/${id}/records?limit=1`,
  );
  const task = (url: string | undefined) => `/jobs/${id}/task?url=${encodeURIComponent(url ?? '')}`;
  const views: Record<string, string> = {
    jobs: '/',
    job: `/jobs/${id}`,
    'job-ended': '/jobs/job_1',
    tasks: `/jobs/${id}/tasks`,
    'task-failed': task(results[0]?.url),
    task: task(records[0]?.url),
    dead: `/jobs/${id}/dead`,
    records: `/jobs/${id}/records`,
    'job-hosts': `/jobs/${id}/hosts`,
    'job-cost': `/jobs/${id}/cost`,
    hosts: '/hosts',
    workers: '/workers',
    cost: '/cost',
    webhooks: '/webhooks',
    alerts: '/alerts',
    settings: '/settings',
    new: '/new',
    'new-file': '/new?as=file',
  };
  for (const [name, path] of Object.entries(views))
    await shoot(path, join(to, `${name}-{size}-{theme}.png`), { sizes: ['desktop', 'phone'], isWhole: true });
}
