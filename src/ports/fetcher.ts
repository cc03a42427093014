import type { BatchProxy } from '../core/batch/batch.ts';
import type { FailureCode } from '../core/failures.ts';
import type { EmulatedBrowser } from '../core/identity/browser-profile.ts';
import type { BrowserSpec } from '../core/job-schema/browser.ts';
import type { ApiSpec } from '../core/job-schema/remote-api.ts';

/** Takes a decoded body piece by piece, instead of memory. */
export interface BodySink {
  /** What it returns is waited for before the next piece is read. A throw ends the request as `internal`. */
  write(piece: Buffer): Promise<void> | void;
}

/** Memory in which bodies are gathered, and which later bodies get again. */
export interface BodyMemory {
  /** A block of at least so many bytes, with anything in them. */
  take(bytes: number): Buffer;
  /** For a block, or a view of it, that nobody reads any more. Other buffers change nothing. */
  giveBack(block: Buffer): void;
}

export interface FetchRequest {
  url: string;
  headers: Record<string, string>;
  timeouts: { connectMs: number; headersMs: number; bodyMs: number; taskMs: number };
  bodyBytesMax: number;
  /** Connections to this origin may not outnumber this. */
  parallel: number;
  allowPrivate: boolean;
  /** Whether what the job names may have a private address: its proxy, its scraping API. As far as this worker permits it. */
  privateServices?: boolean | undefined;
  /** What it goes through; from the own address when absent. Who cannot do that fails with `proxy` and sends nothing. */
  proxy?: BatchProxy | undefined;
  /** For a fetcher that speaks like a browser: which one. */
  emulate?: EmulatedBrowser | undefined;
  /** For a fetcher that has a remote scraping API do the work. */
  api?: { spec: ApiSpec; key: string | null } | undefined;
  /** For a fetcher that is a browser: what it does with the page. */
  render?: BrowserSpec | undefined;
  /** For a fetcher that is a browser: whether it gives what it loads for the page, too. */
  wantsResources?: true | undefined;
  /** For a fetcher that is a browser: that it is one that people use, on which kind of device. As it is when absent. */
  poses?: { device: 'desktop' | 'mobile' } | undefined;
  /** For a fetcher that is a browser: whose visit it is, job and identity. Those of others share nothing with it. */
  visitor?: string | undefined;
  /** For a fetcher that is a browser: cookies and storage to start with, as Playwright writes them. */
  loginState?: string | undefined;
  /** Headers hold secrets of the job, under whatever names. */
  hasSecrets?: true | undefined;
  /** Fires when the batch's time is over; the result is then `aborted`. */
  signal: AbortSignal;
  /**
   * Called when the request is about to leave: later than the call when a connection must be made,
   * and again if a stale one forces a retry. False refuses: nothing leaves, the result is `aborted`.
   */
  onSent(): boolean;
  /**
   * Waits until the host may get one more request for this task, which `onSent` then announces. False where there is no
   * time for it; a fetcher that wants a second request asks `onSent` alone when absent.
   */
  nextTurn?: (() => Promise<boolean>) | undefined;
  /**
   * Asked now and then while no head of a response has come: how long to wait for it in all, where that is less than the
   * timeout. Fetchers may ignore it.
   */
  headersMs?: (() => number) | undefined;
  /**
   * Asked once the head of a 2xx response is there; null keeps the body in memory as usual. What stays in memory of such
   * a request is held to `LIMITS.bodyBytesMax` besides, as `bodyBytesMax` is then meant for the sink.
   */
  sinkFor?(head: { status: number; rawHeaders: string[] }): BodySink | null;
  /**
   * Where a body that stays in memory may be gathered. The block is that of the response then, until whoever asked gives it
   * back. Fetchers may ignore it.
   */
  bodyMemory?: BodyMemory | undefined;
}

/** How a worker has its browser, if its jobs want one. */
export interface BrowserSettings {
  /** Path of Chromium, or where to take it from: `playwright`, `system` or `bundled`; looked for when null. */
  path: string | null;
  /** `auto` is on, except for root, for whom Chromium has none. */
  sandbox: 'auto' | 'try' | 'on' | 'off';
  /** Pages at once; by free memory when null. */
  pages: number | null;
}

/** A picture of a page, or its print. */
export interface Shot {
  kind: 'screenshot' | 'pdf';
  type: 'image/png' | 'image/jpeg' | 'image/webp' | 'application/pdf';
  bytes: Buffer;
}

/** An answer to one request that a browser made for a page, decoded. */
export interface Subresource {
  url: string;
  /** When it was requested, epoch milliseconds. */
  date: number;
  requestHeaders: readonly string[];
  status: number;
  statusText: string;
  rawHeaders: readonly string[];
  body: Buffer;
}

/** What a browser has of a page besides its HTML. */
interface Rendered {
  shots: Shot[];
  /** By the name of the capture. */
  captured: Record<string, unknown[]>;
  /** What it loaded for the page, where that is wanted. */
  resources?: readonly Subresource[];
}

export interface FetchResponse {
  kind: 'response';
  status: number;
  statusText: string;
  /** As served; 1.1 when absent. */
  httpVersion?: '1.0' | undefined;
  /** Of the request, as sent: alternating name and value. Absent where the fetcher does not know them. */
  requestHeaders?: readonly string[] | undefined;
  /** As received, in order, names in their original case: alternating name and value. */
  rawHeaders: string[];
  /** As received, before Content-Encoding is undone. */
  wireBody: Buffer;
  /** Decoded and complete; the same buffer as `wireBody` when there is no coding. */
  body: Buffer;
  /** Bytes as received: of `wireBody`, or of a body that went into a sink, whose buffers are empty. */
  wireBytes: number;
  /** What a remote scraping API took for it. */
  cost?: number;
  /** There when a browser made the page: the body is then the HTML of its DOM, and the headers are those of the page itself. */
  rendered?: Rendered;
}

export type FetchResult =
  | FetchResponse
  | {
      kind: 'failure';
      code: FailureCode;
      detail: string;
      bytes: number;
      /** What a browser showed when it failed, for people. */
      snapshot?: { html: Buffer; screenshot: Shot | null };
    }
  | { kind: 'aborted' };

export interface Fetcher {
  /** One request, no redirects followed, never rejects. */
  fetch(request: FetchRequest): Promise<FetchResult>;
  /** Gets ready for requests that will come soon; what goes wrong shows again when they come. */
  prepare?(): Promise<void>;
  close(): Promise<void>;
}

/** Where a worker listens for pages that a remote scraping API sends by itself. */
export interface CallbackSettings {
  host: string;
  /** The first that is free from here on; any free one for 0. */
  port: number;
  /** How the API reaches it; `{port}` stands for the port. */
  url: string;
}
