import type { CaptureSpec } from '../../../core/job-schema/browser.ts';
import { compilePatterns } from '../../../core/url/pattern.ts';
import type { Tab } from './tab.ts';

/** All that is captured of one page. */
const CAPTURE_BYTES_MAX = 16 * 1024 * 1024;
/** Answers and sockets of one page that a capture waits for at once. */
const CAPTURES_OPEN_MAX = 1_000;

interface Capture {
  spec: CaptureSpec;
  matches(url: string): boolean;
  values: unknown[];
}

/** Keeps the JSON that scripts of a page fetch, and the frames of its WebSockets, where a job wants them. */
export class PageCaptures {
  readonly #tab: Tab;
  readonly #captures: Capture[];
  readonly #wanted = new Map<string, Capture[]>();
  readonly #sockets = new Map<string, Capture[]>();
  #reading: Promise<void> = Promise.resolve();
  #bytesLeft = CAPTURE_BYTES_MAX;

  constructor(tab: Tab, specs: readonly CaptureSpec[]) {
    this.#tab = tab;
    this.#captures = specs.map((spec) => ({
      spec,
      matches: compilePatterns([spec.url], { sockets: spec.of === 'frames' }),
      values: [],
    }));
  }

  listen(): void {
    if (this.#captures.length === 0) return;
    this.#tab.listen('Network.responseReceived', ({ requestId, type, response }) => {
      if ((type !== 'XHR' && type !== 'Fetch') || !/json/i.test(response.mimeType)) return;
      this.#await(this.#wanted, requestId, this.#capturesOf('json', [response.url]));
    });
    this.#tab.listen('Network.loadingFinished', ({ requestId }) => {
      const captures = this.#wanted.get(requestId);
      this.#wanted.delete(requestId);
      if (captures) this.#reading = this.#reading.then(() => this.#read(requestId, captures));
    });
    this.#tab.listen('Network.webSocketCreated', ({ requestId, url }) => {
      // Patterns without a scheme, or with one of pages, mean the same place.
      const captures = this.#capturesOf('frames', [url, url.replace(/^ws/, 'http')]);
      this.#await(this.#sockets, requestId, captures);
    });
    this.#tab.listen('Network.webSocketFrameReceived', ({ requestId, response }) => {
      const { opcode, payloadData } = response;
      // Binary frames come as base64; text that is JSON is data.
      const value = opcode === 1 ? parseOr(payloadData) : { base64: payloadData };
      this.#keep(this.#sockets.get(requestId) ?? [], value, payloadData.length);
    });
  }

  /** By name; answers that are complete by now are in it. */
  async collect(): Promise<Record<string, unknown[]>> {
    await this.#reading;
    return Object.fromEntries(this.#captures.map(({ spec, values }) => [spec.name, values]));
  }

  #capturesOf(of: CaptureSpec['of'], urls: readonly string[]): Capture[] {
    return this.#captures.filter(({ spec, matches }) => spec.of === of && urls.some(matches));
  }

  #await(into: Map<string, Capture[]>, id: string, captures: Capture[]): void {
    if (captures.length > 0 && into.size < CAPTURES_OPEN_MAX) into.set(id, captures);
  }

  async #read(requestId: string, captures: Capture[]): Promise<void> {
    if (this.#bytesLeft <= 0 || captures.every(isFull)) return;
    try {
      const { body, base64Encoded } = await this.#tab.cdp.send('Network.getResponseBody', { requestId });
      const text = base64Encoded ? Buffer.from(body, 'base64').toString() : body;
      this.#keep(captures, JSON.parse(text), text.length);
    } catch {
      // Not JSON after all, or more than the browser keeps.
    }
  }

  #keep(captures: Capture[], value: unknown, bytes: number): void {
    this.#bytesLeft -= bytes;
    if (this.#bytesLeft < 0) return;
    for (const capture of captures) if (!isFull(capture)) capture.values.push(value);
  }
}

function isFull({ spec, values }: Capture): boolean {
  return values.length >= spec.max;
}

function parseOr(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
