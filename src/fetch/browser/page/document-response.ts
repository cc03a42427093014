import type { FailureCode } from '../../../core/failures.ts';
import { LIMITS } from '../../../core/limits.ts';
import type { BodySink, FetchRequest, FetchResult } from '../../../ports/fetcher.ts';
import { BodyBuffer } from '../../body/body-buffer.ts';
import type { Stopwatch } from '../../body/stopwatch.ts';
import { literalOf } from '../../network/dial.ts';
import { MARK_HEADER } from '../proxy/forward-plain.ts';
import type { Tab } from './tab.ts';

export interface Head {
  status: number;
  statusText: string;
  /** Of the request: alternating name and value. */
  requestHeaders: string[];
  rawHeaders: string[];
}

export interface PausedAnswer {
  requestId: string;
  status: number;
  headers: { name: string; value: string }[];
}

const WITHOUT_BODY = new Set([204, 205, 301, 302, 303, 304, 307, 308]);
const HTML_TYPE = /^\s*(?:text\/html|application\/xhtml\+xml)\s*(?:;|$)/i;
const HTML_START = /^\s*<(?:!--|!doctype html|html|head|body|script|style|title|meta|div|p|h1)\b/i;
/** They speak of bytes that were decoded on the way, or of the connection. */
const OF_THE_WIRE =
  /^(?:content-encoding|content-length|transfer-encoding|connection|keep-alive|proxy-connection)$/i;

/** Bytes that are no text come six times as long. */
const PIECE_BYTES = 256 * 1024;

/** Takes the page from the network, whole and within its limits, before the tab sees any of it. */
export class DocumentResponse {
  readonly #tab: Tab;
  readonly #request: FetchRequest;
  readonly #watch: Stopwatch;
  readonly #url: URL;
  #bytes = 0;

  constructor(tab: Tab, request: FetchRequest, watch: Stopwatch, url: URL) {
    this.#tab = tab;
    this.#request = request;
    this.#watch = watch;
    this.#url = url;
  }

  /** There when it was our own proxy that answered: no server was reached. */
  refusalOf({ headers }: PausedAnswer): FetchResult | null {
    const mark = headerIn(headers, MARK_HEADER);
    return mark === this.#tab.ticket.mark ? this.#failure('connect', 'the connection failed') : null;
  }

  /** Null when the page is one that a browser makes something of, and was given to it. */
  async receive(answer: PausedAnswer, head: Head): Promise<FetchResult | null> {
    const { requestId, status, headers } = answer;
    if (WITHOUT_BODY.has(status)) return responseOf(head, Buffer.alloc(0), 0);
    if (/^\s*attachment\b/i.test(headerIn(headers, 'content-disposition') ?? ''))
      return this.#failure('media-type', 'the URL is a download, which the browser does not fetch');
    let sink: BodySink | null = null;
    try {
      sink = status < 300 ? (this.#request.sinkFor?.(head) ?? null) : null;
    } catch {
      return this.#failure('internal', 'the body could not be stored');
    }
    const body = await this.#read(requestId, sink);
    if (!Buffer.isBuffer(body)) return body;
    const type = headerIn(headers, 'content-type');
    const isHtml = type === null ? HTML_START.test(body.toString('latin1', 0, 1_024)) : HTML_TYPE.test(type);
    if (sink || !isHtml || body.length === 0) return responseOf(head, body, this.#bytes);
    await this.#tab.cdp.send('Fetch.fulfillRequest', {
      requestId,
      responseCode: status,
      responseHeaders: [
        ...headers.filter(({ name }) => !OF_THE_WIRE.test(name)),
        ...(type === null ? [{ name: 'Content-Type', value: 'text/html' }] : []),
      ],
      body: body.toString('base64'),
    });
    return null;
  }

  async #read(requestId: string, sink: BodySink | null): Promise<Buffer | FetchResult> {
    const { cdp } = this.#tab;
    const { bodyBytesMax, sinkFor, timeouts } = this.#request;
    const bytesMax = sinkFor && !sink ? Math.min(bodyBytesMax, LIMITS.bodyBytesMax) : bodyBytesMax;
    const whole = new BodyBuffer();
    try {
      this.#watch.start('body-timeout', timeouts.bodyMs);
      const { stream } = await cdp.send('Fetch.takeResponseBodyAsStream', { requestId });
      while (!this.#watch.ending) {
        this.#watch.start('body-timeout', timeouts.bodyMs);
        const { data, base64Encoded, eof } = await cdp.send('IO.read', { handle: stream, size: PIECE_BYTES });
        const piece = Buffer.from(data, base64Encoded ? 'base64' : 'utf8');
        this.#bytes += piece.length;
        if (this.#bytes > bytesMax) return this.#failure('too-large', 'the body is over the size limit');
        if (piece.length > 0 && sink === null) whole.add(piece);
        else if (piece.length > 0 && !(await this.#store(sink!, piece)))
          return this.#failure('internal', 'the body could not be stored');
        if (eof) break;
      }
      void cdp.send('IO.close', { handle: stream }).catch(() => {});
    } catch {
      return this.#failure('truncated', 'the connection closed before the body was complete');
    }
    // What the proxy saw break off may look complete to the browser.
    const broken = this.#tab.ticket.failureOf(authorityOf(this.#url));
    if (broken) return this.#failure('truncated', broken.message);
    return this.#watch.ending ?? whole.take();
  }

  /** What the sink keeps waiting is not the site's silence: only the time of the whole task goes on. */
  async #store(sink: BodySink, piece: Buffer): Promise<boolean> {
    this.#watch.pause();
    try {
      await Promise.race([sink.write(piece), this.#watch.over]);
      return true;
    } catch {
      return false;
    }
  }

  /** Where the connection is to blame, the proxy knows more than the browser. */
  #failure(code: FailureCode, detail: string): FetchResult {
    const isConnection = code === 'truncated' || code === 'connect';
    const known = isConnection ? this.#tab.ticket.failureOf(authorityOf(this.#url)) : null;
    if (known) return { kind: 'failure', code: known.failure, detail: known.message, bytes: this.#bytes };
    return { kind: 'failure', code, detail, bytes: this.#bytes };
  }
}

/** As the proxy names it. */
export function authorityOf(url: URL): string {
  const port = url.port || (url.protocol === 'https:' ? '443' : '80');
  return `${literalOf(url.hostname) ?? url.hostname}:${port}`;
}

function responseOf(head: Head, body: Buffer, wireBytes: number): FetchResult {
  return { kind: 'response', ...head, wireBody: body, body, wireBytes };
}

function headerIn(headers: readonly { name: string; value: string }[], wanted: string): string | null {
  return headers.find(({ name }) => name.toLowerCase() === wanted)?.value ?? null;
}
