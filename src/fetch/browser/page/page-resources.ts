import type { Subresource } from '../../../ports/fetcher.ts';
import { MARK_HEADER } from '../proxy/forward-plain.ts';
import type { Tab } from './tab.ts';

/** Of one page. Pages of shops and newspapers load 50 to 250. */
const RESOURCES_MAX = 500;
/** All of one page: they are in memory until the page is archived. */
const BYTES_MAX = 32 * 1024 * 1024;
/** Answers that are under way at once. */
const OPEN_MAX = 1_000;

/** They speak of bytes that were decoded on the way, or of the connection. */
const OF_THE_WIRE =
  /^(?:content-encoding|content-length|transfer-encoding|connection|keep-alive|proxy-connection)$/i;

/** An answer that has begun; its body is asked for when it is complete. */
type OpenResource = Omit<Subresource, 'body'> & { hasAnswer: boolean };

interface NetworkResponse {
  status: number;
  statusText: string;
  headers: Record<string, string>;
}

/**
 * Keeps what the tab loads for a page besides the page itself: scripts, styles, pictures, answers to scripts. Only GET:
 * an archive finds answers by their URL. What the filtering proxy refused was answered by no server and is not kept.
 */
export class PageResources {
  readonly #tab: Tab;
  readonly #open = new Map<string, OpenResource>();
  readonly #kept: Subresource[] = [];
  #reading: Promise<void> = Promise.resolve();
  #bytesLeft = BYTES_MAX;

  constructor(tab: Tab) {
    this.#tab = tab;
  }

  listen(): void {
    this.#tab.listen('Network.requestWillBeSent', (event) => {
      const { requestId, request, wallTime, type, frameId, redirectResponse } = event;
      const former = this.#open.get(requestId);
      if (former && redirectResponse) {
        answer(former, redirectResponse);
        this.#keep(former, Buffer.alloc(0));
      }
      this.#open.delete(requestId);
      const isPage = type === 'Document' && frameId === this.#tab.frameId;
      if (isPage || request.method !== 'GET' || !/^https?:/i.test(request.url)) return;
      if (this.#open.size >= OPEN_MAX || this.#isFull()) return;
      this.#open.set(requestId, {
        url: request.url.replace(/#.*$/s, ''),
        date: Math.round(wallTime * 1_000),
        requestHeaders: Object.entries(request.headers).flat(),
        ...{ status: 0, statusText: '', rawHeaders: [], hasAnswer: false },
      });
    });
    this.#tab.listen('Network.responseReceived', ({ requestId, response }) => {
      const open = this.#open.get(requestId);
      if (open) answer(open, response);
    });
    this.#tab.listen('Network.loadingFailed', ({ requestId }) => void this.#open.delete(requestId));
    this.#tab.listen('Network.loadingFinished', ({ requestId }) => {
      const open = this.#open.get(requestId);
      this.#open.delete(requestId);
      if (open?.hasAnswer) this.#reading = this.#reading.then(() => this.#read(requestId, open));
    });
  }

  /** In the order in which they were complete; those that are not by now are left out. */
  async collect(): Promise<Subresource[]> {
    await this.#reading;
    return this.#kept;
  }

  #isFull(): boolean {
    return this.#kept.length >= RESOURCES_MAX || this.#bytesLeft <= 0;
  }

  async #read(requestId: string, open: OpenResource): Promise<void> {
    if (this.#isFull()) return;
    try {
      const { body, base64Encoded } = await this.#tab.cdp.send('Network.getResponseBody', { requestId });
      if (!base64Encoded) open.rawHeaders = inUtf8(open.rawHeaders);
      this.#keep(open, Buffer.from(body, base64Encoded ? 'base64' : 'utf8'));
    } catch {
      // More than the browser keeps, or the tab is gone.
    }
  }

  #keep({ hasAnswer: _, ...resource }: OpenResource, body: Buffer): void {
    const { rawHeaders } = resource;
    const isOwn = rawHeaders.some(
      (name, at) =>
        at % 2 === 0 && name.toLowerCase() === MARK_HEADER && rawHeaders[at + 1] === this.#tab.ticket.mark,
    );
    if (isOwn || this.#isFull() || body.length > this.#bytesLeft) return;
    this.#bytesLeft -= body.length;
    this.#kept.push({ ...resource, body });
  }
}

function answer(open: OpenResource, { status, statusText, headers }: NetworkResponse): void {
  const rawHeaders = Object.entries(headers)
    .filter(([name]) => !OF_THE_WIRE.test(name))
    .flatMap(([name, value]) => value.split('\n').flatMap((one) => [name, one]));
  Object.assign(open, { status, statusText, rawHeaders, hasAnswer: true });
}

/** Text comes decoded, and is written in UTF-8: what its type says must be true of the bytes. */
function inUtf8(rawHeaders: readonly string[]): string[] {
  return rawHeaders.map((value, at) =>
    at % 2 === 1 && rawHeaders[at - 1]!.toLowerCase() === 'content-type'
      ? value.replace(/;\s*charset\s*=[^;]*/i, '; charset=utf-8')
      : value,
  );
}
