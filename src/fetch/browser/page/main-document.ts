import { BoundedMap } from '../../../core/lru.ts';
import type { FetchRequest, FetchResult } from '../../../ports/fetcher.ts';
import type { Stopwatch } from '../../body/stopwatch.ts';
import { DocumentResponse, type Head, type PausedAnswer } from './document-response.ts';
import type { Tab } from './tab.ts';

/** Where scripts or `meta refresh` lead on the same host, again and again. */
const BROWSER_NAVIGATIONS_MAX = 10;

/** A request of the tab that waits for a word: before it leaves, or once it has a head or an error. */
interface Paused {
  requestId: string;
  networkId?: string;
  frameId: string;
  resourceType: string;
  request: { url: string; headers: Record<string, string> };
  responseStatusCode?: number;
  responseStatusText?: string;
  responseErrorReason?: string;
  responseHeaders?: Header[];
}

interface Header {
  name: string;
  value: string;
}

/** Headers that are the browser's own business, or are given to it in another way. */
const OWN_HEADERS =
  /^(?:user-agent|accept|accept-language|accept-encoding|cookie|host|connection|content-length|referer|upgrade-insecure-requests|priority|te|sec-.*)$/i;
const CONDITIONS = /^if-/i;

const RESOURCE_TYPES = {
  images: ['Image'],
  media: ['Media'],
  fonts: ['Font'],
  styles: ['Stylesheet'],
  // Told by their hosts: the proxy does not connect to them.
  ads: [],
} as const;

/**
 * Stands between the network and the tab for what the tab's main frame shows: the page itself is taken whole, held to
 * its limits and then given to the tab, and a redirect is an answer like any other. Where scripts want to go afterwards
 * is let be on the same host only.
 */
export class MainDocument {
  /** Null when the page is in the tab; else the result without it. */
  readonly arrived: Promise<FetchResult | null>;
  /** Resolves when the page wanted to go elsewhere and was kept: it may never say that it is complete. */
  readonly kept: Promise<void>;
  /** Of the page that the tab shows. */
  head: Head | null = null;
  readonly #tab: Tab;
  readonly #request: FetchRequest;
  readonly #watch: Stopwatch;
  readonly #url: URL;
  readonly #lines: HeadLines;
  readonly #response: DocumentResponse;
  readonly #extra: Header[];
  readonly #blocked: ReadonlySet<string>;
  #navigations = 0;
  /** Of the request that is under way. */
  #requestHeaders: string[] = [];
  #arrive: (result: FetchResult | null) => void = () => {};
  #keep: () => void = () => {};

  constructor(tab: Tab, request: FetchRequest, watch: Stopwatch, url: URL) {
    this.#tab = tab;
    this.#request = request;
    this.#watch = watch;
    this.#url = url;
    this.#lines = new HeadLines(tab);
    this.#response = new DocumentResponse(tab, request, watch, url);
    this.#extra = Object.entries(request.headers)
      .filter(([name]) => !OWN_HEADERS.test(name))
      .map(([name, value]) => ({ name, value }));
    this.#blocked = new Set(request.render?.block.flatMap((kind): readonly string[] => RESOURCE_TYPES[kind]));
    this.arrived = new Promise((resolve) => {
      this.#arrive = resolve;
    });
    this.kept = new Promise((resolve) => {
      this.#keep = resolve;
    });
  }

  /** Must be through before the tab goes anywhere. */
  async listen(): Promise<void> {
    const { cdp } = this.#tab;
    this.#tab.listen('Fetch.requestPaused', (event) => {
      // What fails here has lost its tab, which ends the visit.
      this.#paused(event).catch(() => {});
    });
    const sendsFurther = this.#extra.some(({ name }) => !CONDITIONS.test(name));
    await Promise.all([
      this.#lines.listen(),
      cdp.send('Fetch.enable', {
        handleAuthRequests: true,
        patterns: [
          { resourceType: 'Document', requestStage: 'Request' },
          { resourceType: 'Document', requestStage: 'Response' },
          ...[...this.#blocked].map((type) => ({
            resourceType: type as 'Image',
            requestStage: 'Request' as const,
          })),
          // Headers of the job are for the site that it named, and for no other that the page calls.
          ...(sendsFurther
            ? [{ urlPattern: `${this.#url.origin}/*`, requestStage: 'Request' as const }]
            : []),
        ],
      }),
    ]);
  }

  async #paused(event: Paused): Promise<void> {
    const { requestId, resourceType, frameId } = event;
    const { cdp } = this.#tab;
    const isAnswer = event.responseStatusCode !== undefined || event.responseErrorReason !== undefined;
    if (this.#blocked.has(resourceType))
      await cdp.send('Fetch.failRequest', { requestId, errorReason: 'BlockedByClient' });
    else if (resourceType === 'Document' && frameId === this.#tab.frameId)
      await (isAnswer ? this.#answered(event) : this.#asked(event));
    else if (isAnswer) await cdp.send('Fetch.continueRequest', { requestId });
    else await cdp.send('Fetch.continueRequest', { requestId, ...this.#headersFor(event, false) });
  }

  /** The main frame is about to ask for something. */
  async #asked(event: Paused): Promise<void> {
    const { requestId } = event;
    const { cdp } = this.#tab;
    this.#navigations++;
    const isFirst = this.#navigations === 1;
    const goes = isFirst ? !this.#watch.ending && this.#request.onSent() : this.#mayGo(event.request.url);
    if (!goes) {
      if (isFirst) this.#arrive({ kind: 'aborted' });
      await cdp.send('Fetch.failRequest', { requestId, errorReason: 'Aborted' });
      this.#keep();
      return;
    }
    if (isFirst) this.#awaitHead();
    const changed = this.#headersFor(event, isFirst);
    this.#requestHeaders = changed.headers
      ? changed.headers.flatMap(({ name, value }) => [name, value])
      : Object.entries(event.request.headers).flat();
    await cdp.send('Fetch.continueRequest', { requestId, ...changed });
  }

  /** The time for a connection is counted where it is made. */
  #awaitHead(): void {
    const { headersMs } = this.#request.timeouts;
    this.#watch.start('headers-timeout', headersMs);
    this.#tab.ticket.onDial = (_authority, isDone) => {
      if (this.head !== null || this.#watch.ending) return;
      if (isDone) this.#watch.start('headers-timeout', headersMs);
      else this.#watch.pause();
    };
  }

  #mayGo(text: string): boolean {
    const url = URL.parse(text);
    return url !== null && url.host === this.#url.host && this.#navigations <= BROWSER_NAVIGATIONS_MAX;
  }

  #headersFor(event: Paused, isFirst: boolean): { headers?: Header[] } {
    if (URL.parse(event.request.url)?.origin !== this.#url.origin) return {};
    const extra = isFirst ? [...this.#extra] : this.#extra.filter(({ name }) => !CONDITIONS.test(name));
    if (isFirst && this.#tab.show(event.request.url))
      extra.push({ name: 'Cache-Control', value: 'no-cache' });
    if (extra.length === 0) return {};
    const names = new Set(extra.map(({ name }) => name.toLowerCase()));
    const own = Object.entries(event.request.headers).map(([name, value]) => ({ name, value }));
    return { headers: [...own.filter(({ name }) => !names.has(name.toLowerCase())), ...extra] };
  }

  async #answered(event: Paused): Promise<void> {
    const { requestId, responseStatusCode: status, responseHeaders: headers = [] } = event;
    const { cdp } = this.#tab;
    // A failed navigation says why; of later ones the tab may make what it likes.
    if (status === undefined || this.head !== null) {
      if (status !== undefined && !isRedirect(status)) await this.#note(event, status);
      await cdp.send('Fetch.continueRequest', { requestId });
      return;
    }
    const answer: PausedAnswer = { requestId, status, headers };
    const refusal = this.#response.refusalOf(answer);
    const result = refusal ?? (await this.#response.receive(answer, await this.#note(event, status)));
    if (result === null) {
      this.#watch.pause();
      this.#arrive(null);
      return;
    }
    this.#arrive(this.#watch.ending ?? result);
    await cdp.send('Fetch.failRequest', { requestId, errorReason: 'Aborted' });
  }

  async #note(event: Paused, status: number): Promise<Head> {
    const rawHeaders = await this.#lines.of(event.networkId ?? '', event.responseHeaders ?? []);
    const requestHeaders = this.#requestHeaders;
    this.head = { status, statusText: event.responseStatusText ?? '', requestHeaders, rawHeaders };
    return this.head;
  }
}

function isRedirect(status: number): boolean {
  return status === 301 || status === 302 || status === 303 || status === 307 || status === 308;
}

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
class HeadLines {
  readonly #tab: Tab;
  readonly #extras = new BoundedMap<string, Extra>(EXTRAS_MAX);
  #waiting: (() => void) | null = null;

  constructor(tab: Tab) {
    this.#tab = tab;
  }

  async listen(): Promise<void> {
    this.#tab.listen('Network.responseReceivedExtraInfo', ({ requestId, headers, headersText }) => {
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
