import type { FailureCode } from '../core/failures.ts';

export interface FetchRequest {
  url: string;
  headers: Record<string, string>;
  timeouts: { connectMs: number; headersMs: number; bodyMs: number; taskMs: number };
  bodyBytesMax: number;
  /** Connections to this origin may not outnumber this. */
  parallel: number;
  allowPrivate: boolean;
  /** Fires when the batch's time is over; the result is then `aborted`. */
  signal: AbortSignal;
  /**
   * Called when the request is about to leave: later than the call when a connection must be made,
   * and again if a stale one forces a retry. False refuses: nothing leaves, the result is `aborted`.
   */
  onSent(): boolean;
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
