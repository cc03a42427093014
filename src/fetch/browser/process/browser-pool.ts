import type { Logger } from '../../../ports/ambient.ts';
import type { BrowserSettings } from '../../../ports/fetcher.ts';
import { BrowserInstance, type InstanceOptions } from './browser-instance.ts';
import { type Chromium, findChromium } from './find-chromium.ts';

interface BrowserPoolOptions extends Omit<InstanceOptions, 'chromium' | 'sandbox' | 'isAlone'> {
  settings: Omit<BrowserSettings, 'pages'>;
  logger: Logger | null;
}

/** A browser that does not start is not tried again at once by every page that wants it. */
const FAILED_MS = 5_000;

/** Has a browser there when one is wanted: started with the first page, and anew when one has ended or is too old. */
export class BrowserPool {
  readonly #options: BrowserPoolOptions;
  readonly #instances = new Set<BrowserInstance>();
  #chromium: Promise<Chromium> | null = null;
  #current: BrowserInstance | null = null;
  #starting: Promise<BrowserInstance> | null = null;
  #failure: { error: unknown; at: number } | null = null;
  #isAlone = false;
  #isClosed = false;

  constructor(options: BrowserPoolOptions) {
    this.#options = options;
  }

  instance(): Promise<BrowserInstance> {
    if (this.#current && !this.#current.isOver) return Promise.resolve(this.#current);
    if (this.#failure && performance.now() - this.#failure.at < FAILED_MS)
      return Promise.reject(this.#failure.error);
    this.#starting ??= this.#start().finally(() => {
      this.#starting = null;
    });
    return this.#starting;
  }

  /** Of the browsers that run. */
  pids(): number[] {
    return [...this.#instances].map(({ pid }) => pid);
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    await this.#starting?.catch(() => {});
    await Promise.all([...this.#instances].map((instance) => instance.kill()));
  }

  async #start(): Promise<BrowserInstance> {
    const { settings, logger, ...rest } = this.#options;
    try {
      const isFirst = this.#chromium === null;
      this.#chromium ??= findChromium(settings.path);
      const chromium = await this.#chromium;
      const sandbox = settings.sandbox === 'on' || (settings.sandbox === 'auto' && process.getuid?.() !== 0);
      if (isFirst) logger?.info(`browser: ${chromium.path}`, { from: chromium.from });
      if (isFirst && !sandbox)
        logger?.warn(`the browser runs without its sandbox${reasonOf(settings.sandbox)}`);
      const instance = await BrowserInstance.start({ ...rest, chromium, sandbox, isAlone: this.#isAlone });
      this.#noteAlone(instance);
      this.#instances.add(instance);
      void instance.ended.then(() => {
        this.#noteAlone(instance);
        this.#instances.delete(instance);
      });
      if (this.#isClosed) await instance.kill();
      this.#current = instance;
      this.#failure = null;
      return instance;
    } catch (error) {
      this.#chromium = null;
      this.#failure = { error, at: performance.now() };
      throw error;
    }
  }

  #noteAlone({ mustBeAlone }: BrowserInstance): void {
    if (mustBeAlone && !this.#isAlone)
      this.#options.logger?.warn('the browser cannot start processes here, so it runs as a single process');
    this.#isAlone ||= mustBeAlone;
  }
}

function reasonOf(sandbox: BrowserSettings['sandbox']): string {
  return sandbox === 'off' ? '' : ': Chromium has none for root';
}
