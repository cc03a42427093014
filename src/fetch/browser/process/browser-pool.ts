import type { Logger } from '../../../ports/ambient.ts';
import type { BrowserSettings } from '../../../ports/fetcher.ts';
import { BrowserInstance, type InstanceOptions } from './browser-instance.ts';
import { NoSandboxError } from './browser-process.ts';
import { findBrowserUser } from './browser-user.ts';
import { type Chromium, findChromium } from './find-chromium.ts';

interface BrowserPoolOptions extends Omit<InstanceOptions, 'chromium' | 'sandbox' | 'user' | 'isAlone'> {
  settings: Omit<BrowserSettings, 'pages'>;
  logger: Logger | null;
}

/** A browser that does not start is not tried again at once by every page that wants it. */
const FAILED_MS = 5_000;

interface Sandbox {
  isOn: boolean;
  /** Why it is off. */
  reason: string;
}

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
  #sandbox: Sandbox | null = null;
  #user: number | null | undefined;
  #isToldSandbox = false;

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
      if (isFirst) logger?.info(`browser: ${chromium.path}`, { from: chromium.from });
      const user = await this.#userFor(chromium);
      const start = (sandbox: boolean) =>
        BrowserInstance.start({ ...rest, chromium, sandbox, user, isAlone: this.#isAlone });
      const instance = await this.#inSandbox(start);
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

  /** Where it may be done without, and there turns out to be none, the next browsers do without at once. */
  async #inSandbox<T>(start: (sandbox: boolean) => Promise<T>): Promise<T> {
    const { settings, logger } = this.#options;
    this.#sandbox ??= firstSandbox(settings.sandbox, isRoot() && this.#user === null);
    const { isOn, reason } = this.#sandbox;
    if (!isOn && !this.#isToldSandbox) logger?.warn(`the browser runs without its sandbox${reason}`);
    this.#isToldSandbox ||= !isOn;
    try {
      return await start(isOn);
    } catch (error) {
      const mayDoWithout = settings.sandbox === 'try' || (settings.sandbox === 'auto' && isRoot());
      if (!(error instanceof NoSandboxError) || !mayDoWithout || !isOn) throw error;
      this.#sandbox = { isOn: false, reason: ': there are no user namespaces here' };
      return this.#inSandbox(start);
    }
  }

  /** Found out once: where files are does not change. */
  async #userFor(chromium: Chromium): Promise<number | null> {
    if (this.#user !== undefined) return this.#user;
    this.#user = await findBrowserUser(chromium);
    if (this.#user === null && isRoot())
      this.#options.logger?.warn(
        'the browser runs as root, and can read what root can: put Chromium and TMPDIR where other users can read them',
      );
    return this.#user;
  }

  #noteAlone({ mustBeAlone }: BrowserInstance): void {
    if (mustBeAlone && !this.#isAlone)
      this.#options.logger?.warn('the browser cannot start processes here, so it runs as a single process');
    this.#isAlone ||= mustBeAlone;
  }
}

function isRoot(): boolean {
  return process.getuid?.() === 0;
}

/** Chromium has no sandbox for root. */
function firstSandbox(setting: BrowserSettings['sandbox'], isRoot: boolean): Sandbox {
  if (setting === 'on') return { isOn: true, reason: '' };
  if (setting === 'off') return { isOn: false, reason: '' };
  return { isOn: !isRoot, reason: isRoot ? ': Chromium has none for root' : '' };
}
