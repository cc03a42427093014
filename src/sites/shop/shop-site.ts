import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createAnswers, sendAnswer } from './answers.ts';
import { type Catalogue, createCatalogue } from './catalogue.ts';
import { type Oddities, planOddities } from './oddities.ts';
import { INFO_PATHS, LATIN1_PATH } from './pages.ts';
import { categoryPaths } from './site-content.ts';

interface RequestLogEntry {
  /** Epoch milliseconds of arrival. */
  at: number;
  method: string;
  /** With its query. */
  path: string;
  status: number;
}

/** What a complete and polite crawl that follows every link must find. */
interface ShopExpectations {
  productPages: number;
  /** Every page of every category. */
  categoryPages: number;
  /** Home, about and help pages. */
  infoPages: number;
  /** All pages that end with status 200: the three above together. */
  pages: number;
  pagePaths: string[];
  productPaths: string[];
  disallowedPaths: string[];
  deadPaths: string[];
  flakyPaths: string[];
  throttledPaths: string[];
  slowPaths: string[];
  redirects: { from: string; to: string; status: number }[];
  latin1Path: string;
}

export interface ShopSite {
  /** With its trailing slash. */
  url: string;
  log: RequestLogEntry[];
  expected: ShopExpectations;
  close(): Promise<void>;
}

interface ShopSiteOptions {
  host?: string;
  port?: number;
  products?: number;
  seed?: number;
  /** Multiplies the delay of slow pages; 0 makes them as fast as the others. */
  delayScale?: number;
  /** Pages are drawn by a script in the browser, and are nothing without it. */
  isScripted?: boolean;
  /** Prices and products of another day. */
  day?: number;
}

function expectationsOf(catalogue: Catalogue, oddities: Oddities): ShopExpectations {
  const productPaths = catalogue.products.map((product) => product.path);
  const categories = categoryPaths(catalogue);
  const info = ['/', ...INFO_PATHS, LATIN1_PATH];
  const pagePaths = [...info, ...categories, ...productPaths];
  return {
    productPages: productPaths.length,
    categoryPages: categories.length,
    infoPages: info.length,
    pages: pagePaths.length,
    pagePaths,
    productPaths,
    disallowedPaths: oddities.disallowed,
    deadPaths: oddities.dead,
    flakyPaths: [...oddities.flaky.keys()],
    throttledPaths: [...oddities.throttled],
    slowPaths: [...oddities.slow.keys()],
    redirects: [...oddities.redirects].map(([from, { to, status }]) => ({ from, to, status })),
    latin1Path: LATIN1_PATH,
  };
}

/** A small made-up shop on loopback, with the good and bad habits of real ones. Same seed, same shop. */
export async function startShopSite(options: ShopSiteOptions = {}): Promise<ShopSite> {
  const {
    host = '127.0.0.1',
    port = 0,
    products = 300,
    seed = 7,
    delayScale = 1,
    isScripted = false,
    day = 1,
  } = options;
  const catalogue = createCatalogue({ products, seed, day });
  const oddities = planOddities(catalogue, seed);
  // A shop that is opened again for another day has forgotten whom it refused. Refused anew each day, a crawler would slow
  // down to one page a second, for hosts keep the pace that was learned.
  if (day > 1) for (const refusing of [oddities.flaky, oddities.throttled]) refusing.clear();
  const log: RequestLogEntry[] = [];
  const timers = new Set<NodeJS.Timeout>();
  let decide: ReturnType<typeof createAnswers> | null = null;

  const server = createServer(async (request, response) => {
    const path = request.url ?? '/';
    const decided = decide!(request);
    const answer = decided instanceof Promise ? await decided.catch(() => null) : decided;
    // The client went away in the middle of its form.
    if (answer === null) return;
    log.push({ at: Date.now(), method: request.method ?? 'GET', path, status: answer.status });
    const delayMs = (oddities.slow.get(path) ?? 0) * delayScale;
    if (delayMs <= 0) {
      sendAnswer(request, response, answer);
      return;
    }
    const timer = setTimeout(() => {
      timers.delete(timer);
      sendAnswer(request, response, answer);
    }, delayMs);
    timers.add(timer);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(port, host, resolve);
  });
  const address = server.address() as AddressInfo;
  const origin = `http://${host.includes(':') ? `[${host}]` : host}:${address.port}`;
  decide = createAnswers(catalogue, oddities, { origin, isScripted });

  return {
    url: `${origin}/`,
    log,
    expected: expectationsOf(catalogue, oddities),
    close: () =>
      new Promise((resolve) => {
        for (const timer of timers) clearTimeout(timer);
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
