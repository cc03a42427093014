import type { BatchProxy } from '../core/batch.ts';
import type { FailureCode } from '../core/failures.ts';
import type { EmulatedBrowser } from '../core/identity-profile.ts';
import type { ApiSpec } from '../core/job-schema-api.ts';

/** Takes a decoded body piece by piece, instead of memory. */
export interface BodySink {
  /** What it returns is waited for before the next piece is read. A throw ends the request as `internal`. */
  write(piece: Buffer): Promise<void> | void;
}

export interface FetchRequest {
  url: string;
  headers: Record<string, string>;
  timeouts: { connectMs: number; headersMs: number; bodyMs: number; taskMs: number };
  bodyBytesMax: number;
  /** Connections to this origin may not outnumber this. */
  parallel: number;
  allowPrivate: boolean;
  /** What it goes through; from the own address when absent. Who cannot do that fails with `proxy` and sends nothing. */
  proxy?: BatchProxy | undefined;
  /** For a fetcher that speaks like a browser: which one. */
  emulate?: EmulatedBrowser | undefined;
  /** For a fetcher that has a remote scraping API do the work. */
  api?: { spec: ApiSpec; key: string | null } | undefined;
  /** Fires when the batch's time is over; the result is then `aborted`. */
  signal: AbortSignal;
  /**
   * Called when the request is about to leave: later than the call when a connection must be made,
   * and again if a stale one forces a retry. False refuses: nothing leaves, the result is `aborted`.
   */
  onSent(): boolean;
  /**
   * Asked once the head of a 2xx response is there; null keeps the body in memory as usual. What stays in memory of such
   * a request is held to `LIMITS.bodyBytesMax` besides, as `bodyBytesMax` is then meant for the sink.
   */
  sinkFor?(head: { status: number; rawHeaders: string[] }): BodySink | null;
}

export interface FetchResponse {
  kind: 'response';
  status: number;
  statusText: string;
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
}

export type FetchResult =
  | FetchResponse
  | { kind: 'failure'; code: FailureCode; detail: string; bytes: number }
  | { kind: 'aborted' };

export interface Fetcher {
  /** One request, no redirects followed, never rejects. */
  fetch(request: FetchRequest): Promise<FetchResult>;
  close(): Promise<void>;
}
