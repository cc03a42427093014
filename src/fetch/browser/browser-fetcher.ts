import { messageOf, SeineError } from '../../core/errors.ts';
import { isLocalName } from '../../core/proxies/proxy.ts';
import { type AddressGuard, makeAddressGuard } from '../../core/url/address-guard.ts';
import { freeMemoryBytes } from '../../machine/machine.ts';
import type { Clock, Logger } from '../../ports/ambient.ts';
import type { BrowserSettings, Fetcher, FetchRequest, FetchResult } from '../../ports/fetcher.ts';
import { Stopwatch } from '../body/stopwatch.ts';
import { checkRequest, failure } from '../network/check-request.ts';
import { literalOf, privateAddress } from '../network/dial.ts';
import { DnsCache, type Lookup } from '../network/dns-cache.ts';
import { KeyedSemaphore } from '../network/keyed-semaphore.ts';
import { packShots } from './page/page-shots.ts';
import { type Devices, planTab } from './page/plan-tab.ts';
import type { Tab } from './page/tab.ts';
import { visitPage } from './page/visit-page.ts';
import { type BrowserInstance, LIFE_LIMITS, type LifeLimits } from './process/browser-instance.ts';
import { BrowserPool } from './process/browser-pool.ts';
import { FilterProxy } from './proxy/filter-proxy.ts';

/** What a page takes, roughly: as many are open at once as fit into half of the free memory. */
const BROWSER_PAGE_MEMORY_BYTES = 200 * 1024 ** 2;
/** However much memory there is. */
const BROWSER_PARALLEL_MAX = 16;

export interface BrowserFetcherOptions {
  clock: Clock;
  isPublicAddress: (ip: string) => boolean;
  /** No private address is dialled, whatever a request says. */
  forbidsPrivate?: boolean;
  /** Replaces the system resolver, in tests. */
  lookup?: Lookup;
  browser?: Partial<BrowserSettings> | undefined;
  logger?: Logger | undefined;
  /** When a browser is replaced; smaller in tests. */
  lifeLimits?: LifeLimits;
}

const HOLD_MS = 3_600_000;

/** Shows pages in Chromium, which is started with the first of them. */
export async function openBrowserFetcher(options: BrowserFetcherOptions): Promise<BrowserFetcher> {
  const names = new DnsCache(options.clock, options.lookup);
  const { devices } = await import('playwright-core');
  return new BrowserFetcher(options, names, await FilterProxy.open(names), devices as Devices);
}

export class BrowserFetcher implements Fetcher {
  readonly #guard: AddressGuard;
  readonly #names: DnsCache;
  readonly #proxy: FilterProxy;
  readonly #devices: Devices;
  readonly #room: number;
  readonly #pool: BrowserPool;
  readonly #semaphore = new KeyedSemaphore();
  readonly #closing = new AbortController();

  constructor(options: BrowserFetcherOptions, names: DnsCache, proxy: FilterProxy, devices: Devices) {
    this.#guard = makeAddressGuard(options.isPublicAddress, options.forbidsPrivate ?? false);
    this.#names = names;
    this.#proxy = proxy;
    this.#devices = devices;
    this.#room = options.browser?.pages ?? roomOf(freeMemoryBytes());
    this.#pool = new BrowserPool({
      settings: { path: null, sandbox: 'auto', ...options.browser },
      logger: options.logger ?? null,
      proxy,
      tabsMax: this.#room,
      limits: options.lifeLimits ?? LIFE_LIMITS,
    });
  }

  async prepare(): Promise<void> {
    await this.#pool.instance();
  }

  /** Of the browsers that run. */
  pids(): number[] {
    return this.#pool.pids();
  }

  async fetch(request: FetchRequest): Promise<FetchResult> {
    const url = checkRequest(request);
    if (!(url instanceof URL)) return url;
    // The time for the task begins when there is a page for it: waiting for one is not the site's fault.
    const watch = new Stopwatch(request, this.#closing.signal, { begins: false });
    const leaves: (() => void)[] = [];
    // The browser does not keep this process alive; a request that waits for its page does.
    const hold = setInterval(() => {}, HOLD_MS);
    let wiping: Promise<void> | null = null;
    try {
      leaves.push(await this.#semaphore.enter(url.origin, Math.max(1, request.parallel), watch.signal));
      leaves.push(await this.#semaphore.enter('', this.#room, watch.signal));
      const refusal = watch.ending ?? (await this.#refusalOf(request, url));
      if (watch.ending || refusal) return watch.ending ?? refusal!;
      const taken = await this.#takeTab(request, watch);
      if (!('tab' in taken)) return taken;
      watch.begin();
      const result = await visitPage(taken.tab, request, watch, url);
      wiping = taken.instance.giveBack(taken.tab, result.kind === 'response').catch(() => {});
      return await packShots(result, request);
    } catch (error) {
      // The message may quote the page: one clean line of it.
      const reason = messageOf(error)
        .replace(/[^\x20-\x7e]+/g, ' ')
        .trim()
        .replace(/\.+$/, '')
        .slice(0, 120);
      return watch.ending ?? failure('browser', `the browser failed: ${reason}`);
    } finally {
      clearInterval(hold);
      watch.stop();
      // The page is gone only then; its result need not wait for that.
      void Promise.resolve(wiping).then(() => leaves.forEach((leave) => void leave()));
    }
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#pool.close();
    await this.#proxy.close();
  }

  /** Before anything leaves; the proxy checks again what it dials. */
  #refusalOf({ allowPrivate, proxy }: FetchRequest, { hostname }: URL): Promise<FetchResult | null> {
    const literal = literalOf(hostname);
    const isAllowed = this.#guard.pages(allowPrivate);
    const refused = failure('private-address', privateAddress().message);
    if (literal !== null) return Promise.resolve(!isAllowed || isAllowed(literal) ? null : refused);
    if (proxy) return Promise.resolve(isAllowed && isLocalName(hostname) ? refused : null);
    return new Promise((resolve) =>
      this.#names.resolve(hostname, (error, addresses) => {
        if (error !== null || addresses.length === 0)
          resolve(failure('dns', 'the host name could not be resolved'));
        else resolve(!isAllowed || addresses.some(({ address }) => isAllowed(address)) ? null : refused);
      }),
    );
  }

  /** A browser may end between two pages: then it is tried once more with another. */
  async #takeTab(
    request: FetchRequest,
    watch: Stopwatch,
  ): Promise<{ tab: Tab; instance: BrowserInstance } | FetchResult> {
    const over = watch.over.then(() => null);
    for (let tries = 0; ; tries++) {
      const instance = await Promise.race([this.#pool.instance().catch(wordsOf), over]);
      if (instance === null || watch.ending) return watch.ending ?? { kind: 'aborted' };
      if (typeof instance === 'string') return failure('browser', instance);
      const own = { userAgent: instance.userAgent, guard: this.#guard };
      const plan = planTab(request, this.#devices, own);
      if (typeof plan === 'string') return failure('internal', plan);
      const taking = instance.take(plan).catch(() => null);
      const tab = await Promise.race([taking, over]);
      if (watch.ending) {
        void taking.then((late) => late && instance.giveBack(late, false)).catch(() => {});
        return watch.ending;
      }
      if (tab) return { tab, instance };
      if (tries > 0) instance.retire();
      if (tries > 1) return failure('browser', 'the browser could not open a page');
    }
  }
}

function roomOf(freeBytes: number): number {
  const room = Math.floor(freeBytes / 2 / BROWSER_PAGE_MEMORY_BYTES);
  return Math.max(1, Math.min(room, BROWSER_PARALLEL_MAX));
}

function wordsOf(error: unknown): string {
  const hint = error instanceof SeineError && error.hint ? `: ${error.hint}` : '';
  return `${messageOf(error)}${hint}`.slice(0, 200);
}
