import type { Browser, BrowserContext, CDPSession, Page } from 'playwright-core';
import { BoundedSet } from '../../../core/lru.ts';
import type { FilterProxy } from '../proxy/filter-proxy.ts';
import type { ProxyTicket } from '../proxy/proxy-ticket.ts';
import type { TabPlan } from './plan-tab.ts';
import type { ScreenshotQueue } from './screenshot-queue.ts';

/** A browser is replaced after so many pages, whatever it is at fault for. */
export const BROWSER_PAGES_MAX = 500;

/** What all tabs of a browser have in common. */
interface BrowserParts {
  proxy: FilterProxy;
  screenshots: ScreenshotQueue;
  watchNetwork(page: string, isOn: boolean): void;
}

/**
 * A tab in a context of its own: it shares no cookies, cache or connections. It shows one page at a time, all of one site
 * and for one visitor.
 */
export class Tab {
  readonly plan: TabPlan;
  readonly page: Page;
  readonly cdp: CDPSession;
  readonly ticket: ProxyTicket;
  /** Shared by all tabs of the browser. */
  readonly screenshots: ScreenshotQueue;
  readonly frameId: string;
  /** URLs that it has shown: asked for again, they must not come from its cache. */
  readonly shown = new BoundedSet<string>(BROWSER_PAGES_MAX);
  lastUsedAt = 0;
  /** Pages that it has shown. */
  pages = 0;
  isCrashed = false;
  /**
   * Called when there is no page any more. Whoever shows a page takes it off again: a promise that lives as long as the
   * tab would keep everything of every page, pictures and all.
   */
  onBroken: (() => void) | null = null;
  readonly #context: BrowserContext;
  readonly #proxy: FilterProxy;
  readonly #watchNetwork: BrowserParts['watchNetwork'];
  readonly #listening: (() => void)[] = [];

  private constructor(
    plan: TabPlan,
    parts: { context: BrowserContext; page: Page; cdp: CDPSession; frameId: string },
    ticket: ProxyTicket,
    { proxy, screenshots, watchNetwork }: BrowserParts,
  ) {
    this.plan = plan;
    this.page = parts.page;
    this.cdp = parts.cdp;
    this.frameId = parts.frameId;
    this.ticket = ticket;
    this.screenshots = screenshots;
    this.#context = parts.context;
    this.#proxy = proxy;
    this.#watchNetwork = watchNetwork;
    const end = () => {
      this.isCrashed = true;
      this.onBroken?.();
    };
    this.page.once('crash', end);
    this.page.once('close', end);
    // Windows that a page opens are not asked for.
    this.#context.on('page', (page) => {
      if (page !== this.page) void page.close().catch(() => {});
    });
  }

  static async open(browser: Browser, plan: TabPlan, parts: BrowserParts): Promise<Tab> {
    const { proxy } = parts;
    const ticket = proxy.issue(plan.route);
    let context: BrowserContext | null = null;
    try {
      context = await browser.newContext({ ...plan.options, proxy: { server: proxy.url } });
      const page = await context.newPage();
      const cdp = await context.newCDPSession(page);
      const [{ frameTree }] = await Promise.all([
        cdp.send('Page.getFrameTree'),
        cdp.send('Emulation.setUserAgentOverride', plan.userAgentOverride),
        cdp.send('Emulation.setAutomationOverride', { enabled: plan.saysAutomated }),
        plan.touchPoints &&
          cdp.send('Emulation.setTouchEmulationEnabled', { enabled: true, maxTouchPoints: plan.touchPoints }),
        plan.window && resizeWindow(cdp, plan.window),
        // One that Chromium does not know is not worth failing for.
        plan.locale && cdp.send('Emulation.setLocaleOverride', { locale: plan.locale }).catch(() => {}),
      ]);
      const tab = new Tab(plan, { context, page, cdp, frameId: frameTree.frame.id }, ticket, parts);
      tab.#answerChallenges();
      return tab;
    } catch (error) {
      proxy.revoke(ticket);
      await context?.close().catch(() => {});
      throw error;
    }
  }

  /** The proxy wants the ticket; what sites ask for is not known here. */
  #answerChallenges(): void {
    const credentials = this.#proxy.credentialsOf(this.ticket);
    this.cdp.on('Fetch.authRequired', ({ requestId, authChallenge }) => {
      const authChallengeResponse =
        authChallenge.source === 'Proxy'
          ? ({ response: 'ProvideCredentials', ...credentials } as const)
          : ({ response: 'CancelAuth' } as const);
      void this.cdp.send('Fetch.continueWithAuth', { requestId, authChallengeResponse }).catch(() => {});
    });
  }

  /** For one page: taken off again after it. */
  readonly listen = ((event: 'Network.dataReceived', listener: (payload: object) => void) => {
    this.cdp.on(event, listener);
    this.#listening.push(() => this.cdp.off(event, listener));
    return this.cdp;
  }) as CDPSession['on'];

  unlisten(): void {
    for (const off of this.#listening.splice(0)) off();
  }

  /** Only where this is on does Playwright know when the network is idle. For the next page; a page has its main frame's name. */
  watchNetwork(isOn: boolean): void {
    this.#watchNetwork(this.frameId, isOn);
  }

  /** Notes that a URL is asked for, and says whether it was before. */
  show(url: string): boolean {
    if (this.shown.has(url)) return true;
    this.shown.add(url);
    return false;
  }

  async setCookies(url: string, header: string | null): Promise<void> {
    const cookies = (header ?? '').split(';').flatMap((pair) => {
      const equals = pair.indexOf('=');
      return equals < 1
        ? []
        : [{ name: pair.slice(0, equals).trim(), value: pair.slice(equals + 1).trim(), url }];
    });
    if (cookies.length > 0) await this.#context.addCookies(cookies);
  }

  /** Leaves the page, and forgets what it left behind. */
  async wipe(): Promise<void> {
    this.pages++;
    await this.cdp.send('Fetch.disable');
    await this.page.goto('about:blank');
    await Promise.all([
      // It would outlive the page.
      this.cdp.send('Runtime.evaluate', { expression: "window.name = ''" }),
      // What the page's scripts have left would stay until the next ones need room: 10 MB for each tab.
      this.cdp.send('Memory.forciblyPurgeJavaScriptMemory').catch(() => {}),
      this.plan.keepsState ? null : this.#clearStorage(),
    ]);
  }

  async #clearStorage(): Promise<void> {
    await Promise.all([
      this.#context.clearCookies(),
      this.cdp.send('Storage.clearDataForOrigin', {
        origin: '*',
        storageTypes: 'local_storage,indexeddb,websql,cache_storage,file_systems,service_workers',
      }),
    ]);
  }

  async close(): Promise<void> {
    this.#proxy.revoke(this.ticket);
    await this.#context.close();
  }
}

/** What scripts see as the window. A Chromium without windows has nothing to resize. */
async function resizeWindow(cdp: CDPSession, bounds: { width: number; height: number }): Promise<void> {
  try {
    const { windowId } = await cdp.send('Browser.getWindowForTarget');
    await cdp.send('Browser.setWindowBounds', { windowId, bounds });
  } catch {
    // Headless shells have none.
  }
}
