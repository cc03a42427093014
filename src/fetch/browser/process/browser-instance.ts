import type { Browser, CDPSession } from 'playwright-core';
import type { TabPlan } from '../page/plan-tab.ts';
import { ScreenshotQueue } from '../page/screenshot-queue.ts';
import { BROWSER_PAGES_MAX, Tab } from '../page/tab.ts';
import type { FilterProxy } from '../proxy/filter-proxy.ts';
import {
  type BrowserProcess,
  hasNoSandbox,
  mayNotStartOthers,
  NoSandboxError,
  notStarted,
  startBrowser,
} from './browser-process.ts';
import type { Chromium } from './find-chromium.ts';
import { groupMemoryBytes } from './process-memory.ts';

/** Playwright remembers some 50 KB of each page for as long as its tab is open. */
const BROWSER_TAB_PAGES_MAX = 100;
/** A browser is replaced when it is this old. */
const BROWSER_AGE_MS_MAX = 30 * 60_000;
/** A browser is replaced when it takes this much. */
const BROWSER_MEMORY_BYTES_MAX = 2 * 1024 ** 3;

export interface InstanceOptions {
  chromium: Chromium;
  sandbox: boolean;
  user: number | null;
  isAlone: boolean;
  proxy: FilterProxy;
  /** Tabs at once, in use or kept. */
  tabsMax: number;
  limits: LifeLimits;
}

/** When a browser is replaced. */
export interface LifeLimits {
  pages: number;
  ageMs: number;
  memoryBytes: number;
}

const CONNECT_MS = 30_000;
const BEAT_MS = 2_000;
/** The watchdog kills a browser that has not answered for so long. */
const SILENCE_MS = 20_000;
/** Memory is looked at with every so many beats. */
const BEATS_PER_LOOK = 5;
/** A tab that is not open by then never will be. */
const OPEN_MS = 10_000;
/** A tab that is not closed by then is in a browser that does not react. */
const CLOSE_MS = 5_000;

/** One browser from its start to its end. It is replaced in time: browsers only ever grow. */
export class BrowserInstance {
  readonly userAgent: string;
  /** Does not take new pages any more. */
  isOver = false;
  readonly #options: InstanceOptions;
  readonly #process: BrowserProcess;
  readonly #browser: Browser;
  readonly #cdp: CDPSession;
  readonly #idle = new IdleTabs();
  readonly #beats: NodeJS.Timeout;
  readonly #startedAt = performance.now();
  readonly #screenshots = new ScreenshotQueue();
  #busy = 0;
  #tabs = 0;
  #pages = 0;
  #beat = 0;

  private constructor(
    options: InstanceOptions,
    process: BrowserProcess,
    parts: { browser: Browser; cdp: CDPSession; userAgent: string },
  ) {
    this.#options = options;
    this.#process = process;
    this.#browser = parts.browser;
    this.#cdp = parts.cdp;
    this.userAgent = parts.userAgent;
    this.#browser.once('disconnected', () => void this.kill());
    this.#beats = setInterval(() => void this.#ask(), BEAT_MS).unref();
  }

  static async start(options: InstanceOptions): Promise<BrowserInstance> {
    const { chromium, sandbox, user, isAlone, proxy, tabsMax } = options;
    const { chromium: playwright } = await import('playwright-core');
    const process = await startBrowser({
      chromium,
      sandbox,
      user,
      isAlone,
      tabsMax,
      proxyUrl: proxy.url,
      silenceMs: SILENCE_MS,
    });
    try {
      const connecting = playwright.connectOverCDP(process.transport, {
        artifactsDir: process.folder,
        timeout: CONNECT_MS,
      });
      const browser = await Promise.race([
        connecting,
        process.ended.then(() => Promise.reject(notStarted(process.words()))),
      ]);
      const cdp = await browser.newBrowserCDPSession();
      const { userAgent } = await cdp.send('Browser.getVersion');
      await cdp.send('Target.setDiscoverTargets', { discover: true });
      process.unref();
      // Without a window it is the same browser: sites are told what it is, not how it is shown.
      return new BrowserInstance(options, process, {
        browser,
        cdp,
        userAgent: userAgent.replace('HeadlessChrome', 'Chrome'),
      });
    } catch (error) {
      process.kill();
      await process.ended;
      if (!isAlone && mayNotStartOthers(process.words()))
        return BrowserInstance.start({ ...options, isAlone: true });
      // That the connection broke may be known before its reason is.
      throw sandbox && hasNoSandbox(process.words()) ? new NoSandboxError() : error;
    }
  }

  get pid(): number {
    return this.#process.pid;
  }

  /** The next one has to be one process: this one was, or would have had to be. */
  get mustBeAlone(): boolean {
    return this.#options.isAlone || mayNotStartOthers(this.#process.words());
  }

  get ended(): Promise<void> {
    return this.#process.ended;
  }

  /** A tab of this kind, an old one if there is one. The caller gives it back. */
  async take(plan: TabPlan): Promise<Tab> {
    this.#busy++;
    this.#pages++;
    const { pages, ageMs } = this.#options.limits;
    if (this.#pages >= pages || performance.now() - this.#startedAt > ageMs) this.isOver = true;
    const kept = this.#keptFor(plan.key);
    if (kept) return kept;
    try {
      // Beside the opening of the next, which is most of what a page of another site costs.
      const closing = this.#tabs >= this.#options.tabsMax ? this.#closeOldest() : null;
      const [tab] = await Promise.all([this.#open(plan), closing]);
      this.#tabs++;
      return tab;
    } catch (error) {
      this.#left();
      throw error;
    }
  }

  /** A tab that served well is wiped and kept; any other is closed. Resolves when there is room again. */
  async giveBack(tab: Tab, isClean: boolean): Promise<void> {
    const isKept =
      isClean &&
      !tab.isCrashed &&
      !this.isOver &&
      tab.pages < BROWSER_TAB_PAGES_MAX &&
      (await this.#inTime(tab.wipe()));
    if (isKept) this.#idle.put(tab);
    else await this.#close(tab);
    this.#left();
  }

  async kill(): Promise<void> {
    this.isOver = true;
    clearInterval(this.#beats);
    this.#process.kill();
    await this.#process.ended;
  }

  /** Ends when the last page is done. */
  retire(): void {
    this.isOver = true;
    if (this.#busy === 0) void this.kill();
  }

  /** A renderer that dies just then leaves Playwright waiting for ever. */
  async #open(plan: TabPlan): Promise<Tab> {
    const { proxy } = this.#options;
    const opening = Tab.open(this.#browser, plan, {
      proxy,
      screenshots: this.#screenshots,
      watchNetwork: this.#process.watchNetwork,
    });
    const { promise, reject } = Promise.withResolvers<never>();
    const giveUp = () => {
      reject(new Error('the browser cannot open a page'));
      void opening.then((late) => late.close()).catch(() => {});
    };
    const timer = setTimeout(giveUp, OPEN_MS);
    // Which one has crashed is not to be known; another try costs little.
    this.#cdp.once('Target.targetCrashed', giveUp);
    try {
      return await Promise.race([opening, promise]);
    } finally {
      clearTimeout(timer);
      this.#cdp.off('Target.targetCrashed', giveUp);
    }
  }

  #keptFor(key: string): Tab | null {
    for (let tab = this.#idle.take(key); tab; tab = this.#idle.take(key)) {
      if (!tab.isCrashed) return tab;
      void this.#close(tab);
    }
    return null;
  }

  #left(): void {
    this.#busy--;
    if (this.isOver && this.#busy === 0) void this.kill();
  }

  async #close(tab: Tab): Promise<void> {
    this.#tabs--;
    // It does not react: who else is in it gets another one.
    if (!(await this.#inTime(tab.close())) && this.#browser.isConnected()) await this.kill();
  }

  async #closeOldest(): Promise<void> {
    const oldest = this.#idle.takeOldest();
    if (oldest) await this.#close(oldest);
  }

  async #inTime(doing: Promise<void>): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const timer = setTimeout(() => resolve(false), CLOSE_MS);
    const done = doing.then(
      () => true,
      () => false,
    );
    const isDone = await Promise.race([done, promise]);
    clearTimeout(timer);
    return isDone;
  }

  /** The watchdog hears of it only if the browser answers. */
  async #ask(): Promise<void> {
    try {
      await this.#cdp.send('Browser.getVersion');
      this.#process.beat();
      if (++this.#beat % BEATS_PER_LOOK !== 0 || this.isOver) return;
      const bytes = await groupMemoryBytes(this.#process.pid);
      if (bytes !== null && bytes > this.#options.limits.memoryBytes) this.retire();
      if (performance.now() - this.#startedAt > this.#options.limits.ageMs) this.retire();
    } catch {
      // It has ended, which others notice.
    }
  }
}

export const LIFE_LIMITS: LifeLimits = {
  pages: BROWSER_PAGES_MAX,
  ageMs: BROWSER_AGE_MS_MAX,
  memoryBytes: BROWSER_MEMORY_BYTES_MAX,
};

/** Tabs that wait for their next page, by the kind of pages that they are for. */
class IdleTabs {
  readonly #tabs = new Map<string, Tab[]>();

  put(tab: Tab): void {
    tab.lastUsedAt = performance.now();
    const same = this.#tabs.get(tab.plan.key);
    if (same) same.push(tab);
    else this.#tabs.set(tab.plan.key, [tab]);
  }

  take(key: string): Tab | null {
    const tabs = this.#tabs.get(key);
    const tab = tabs?.pop() ?? null;
    if (tabs?.length === 0) this.#tabs.delete(key);
    return tab;
  }

  takeOldest(): Tab | null {
    let oldest: Tab | null = null;
    for (const tabs of this.#tabs.values())
      for (const tab of tabs) if (oldest === null || tab.lastUsedAt < oldest.lastUsedAt) oldest = tab;
    if (oldest === null) return null;
    const { key } = oldest.plan;
    const others = this.#tabs.get(key)!.filter((tab) => tab !== oldest);
    if (others.length === 0) this.#tabs.delete(key);
    else this.#tabs.set(key, others);
    return oldest;
  }
}
