import type { Tab } from './tab.ts';

interface Extra {
  headers: Record<string, string>;
  text: string | null;
}

/** They speak of bytes that were decoded on the way, or of the connection. */
const OF_THE_WIRE = new Set([
  'content-encoding',
  'content-length',
  'transfer-encoding',
  'connection',
  'keep-alive',
  'proxy-connection',
]);

/** The network process sends the head by another way, which may be a little slower. */
const EXTRA_MS = 200;
const EXTRAS_MAX = 100;

/** Headers as the network process has them: with cookies, which the browser keeps from all others. */
export class HeadLines {
  readonly #tab: Tab;
  readonly #extras = new Map<string, Extra>();
  #waiting: (() => void) | null = null;

  constructor(tab: Tab) {
    this.#tab = tab;
  }

  async listen(): Promise<void> {
    this.#tab.listen('Network.responseReceivedExtraInfo', ({ requestId, headers, headersText }) => {
      if (this.#extras.size >= EXTRAS_MAX) this.#extras.clear();
      this.#extras.set(requestId, { headers, text: headersText ?? null });
      this.#waiting?.();
    });
    await this.#tab.cdp.send('Network.enable');
  }

  /** Alternating name and value. */
  async of(networkId: string, plain: readonly { name: string; value: string }[]): Promise<string[]> {
    const extra = this.#extras.get(networkId) ?? (await this.#wait(networkId));
    const lines = extra?.text ? linesOf(extra.text) : withCookies(plain, extra);
    return lines.filter(([name]) => !OF_THE_WIRE.has(name.toLowerCase())).flat();
  }

  async #wait(networkId: string): Promise<Extra | null> {
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, EXTRA_MS);
      this.#waiting = () => {
        if (!this.#extras.has(networkId)) return;
        clearTimeout(timer);
        resolve();
      };
    });
    this.#waiting = null;
    return this.#extras.get(networkId) ?? null;
  }
}

type Line = [name: string, value: string];

function linesOf(text: string): Line[] {
  return text
    .split('\r\n')
    .slice(1)
    .flatMap((line): Line[] => {
      const colon = line.indexOf(':');
      return colon < 1 ? [] : [[line.slice(0, colon), line.slice(colon + 1).trim()]];
    });
}

function withCookies(plain: readonly { name: string; value: string }[], extra: Extra | null): Line[] {
  const lines = plain
    .filter(({ name }) => name.toLowerCase() !== 'set-cookie')
    .map(({ name, value }): Line => [name, value]);
  for (const [name, value] of Object.entries(extra?.headers ?? {}))
    if (name.toLowerCase() === 'set-cookie') for (const one of value.split('\n')) lines.push([name, one]);
  return lines;
}
