import type { Dispatcher } from 'undici';
import type { FailureCode } from '../../core/failures.ts';
import { LIMITS } from '../../core/limits.ts';
import type { BodySink, FetchRequest, FetchResult } from '../../ports/fetcher.ts';
import { BodyBuffer } from '../body/body-buffer.ts';
import { ACCEPTED_CODINGS, type Decoded, decodeBody, parseContentEncoding } from '../body/content-coding.ts';
import { NO_ACCESS } from '../network/proxy-connect.ts';
import { type BodyPipe, openBodyPipe } from './body-pipe.ts';
import { failureOfError, isLengthMismatch, isStaleConnection, type Progress } from './failure-of-error.ts';
import type { InFlight } from './in-flight.ts';
import type { OriginPool, Slot } from './origin-pool.ts';

/** More interim answers (103 Early Hints and the like) than any server has a use for. */
const INTERIM_MAX = 16;

/** One request and its response: the handler that undici calls, kept free of streams, timers and closures. */
export class Exchange implements Dispatcher.DispatchHandler {
  readonly request: FetchRequest;
  readonly options: Omit<Dispatcher.DispatchOptions, 'headers'> & { headers: readonly string[] };
  /** Null while the request waits for its origin to be admitted. */
  pool: OriginPool | null = null;
  slot: Slot | null = null;
  readonly startedAt: number;
  place = -1;
  /** When the present stage began, or the last bytes of the body came. */
  since: number;
  stage: 'queued' | 'dialling' | 'headers' | 'body' | 'storing' | 'decoding' = 'queued';
  #inFlight: InFlight;
  #resolve: (result: FetchResult) => void;
  #done = false;
  #retried = false;
  /** The strict parser refused the response, and a lenient one may be able to read it. */
  isRefused = false;
  /** As the header has it; NaN when it has none. */
  #length = Number.NaN;
  #progress: Progress = 'unanswered';
  #interim = 0;
  #status = 0;
  /** HTTP/1.0. */
  #isOld = false;
  #statusText = '';
  #rawHeaders: string[] = [];
  #codings: string[] | null = null;
  #body: BodyBuffer;
  /** Of the body, as received. */
  wireBytes = 0;
  #bytesMax: number;
  /** For a body that goes into a sink instead of memory. */
  #pipe: BodyPipe | null = null;

  constructor(
    request: FetchRequest,
    path: string,
    inFlight: InFlight,
    resolve: (result: FetchResult) => void,
  ) {
    this.request = request;
    this.#inFlight = inFlight;
    this.#resolve = resolve;
    this.#bytesMax = request.bodyBytesMax;
    this.#body = new BodyBuffer(request.bodyMemory);
    this.startedAt = inFlight.nowMs;
    this.since = inFlight.nowMs;
    // Not blocking: with one request per connection it only costs a further turn of undici's queue.
    this.options = { path, method: 'GET', headers: headerList(request.headers), blocking: false };
  }

  /** A sink has something of the body, which cannot be taken back. */
  get hasStored(): boolean {
    return this.#pipe !== null;
  }

  get isDone(): boolean {
    return this.#done;
  }

  dialling(): void {
    this.#enter('dialling');
  }

  fail(code: FailureCode, detail: string): void {
    this.#abandon({ kind: 'failure', code, detail, bytes: this.wireBytes });
  }

  abort(): void {
    this.#abandon({ kind: 'aborted' });
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#enter('headers');
    // A retry on a fresh connection calls this again: it is one more request on the wire.
    if (this.request.onSent()) return;
    this.abort();
    controller.abort(new Error('the request was cancelled before it was sent'));
  }

  onResponseStarted(): void {
    this.#progress = 'answering';
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: Record<string, string | string[] | undefined>,
    statusText?: string,
  ): void {
    if (status === 407 && this.slot?.pool.proxy?.wantsWholeUrls) this.fail('proxy', NO_ACCESS);
    if (this.#done) return;
    if (status < 200) {
      this.#interim += 1;
      if (this.#interim > INTERIM_MAX) this.fail('protocol', 'too many interim responses');
      return;
    }
    this.#progress = 'headers';
    this.#enter('body');
    this.#status = status;
    this.#isOld = this.slot?.isHttp10 === true;
    this.#statusText = statusText ?? '';
    this.#rawHeaders = (controller.rawHeaders as Buffer[]).map(headerText);
    this.#codings = parseContentEncoding(headers['content-encoding']);
    const transfer = headers['transfer-encoding'];
    // The parser undoes chunks only; a body that is gzip in transfer would pass for plain.
    if (transfer !== undefined && !/^(chunked|identity) *$/i.test(String(transfer))) {
      this.fail('bad-encoding', 'unknown Transfer-Encoding');
      return;
    }
    if (this.request.sinkFor !== undefined) this.#openPipe(controller);
    const length = headers['content-length'];
    if (this.#done || typeof length !== 'string' || status === 204 || status === 304) return;
    const bytes = Number(length);
    this.#length = bytes;
    if (bytes > this.#bytesMax) this.fail('too-large', 'the Content-Length is over the size limit');
    else this.#body.expect(bytes);
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    // undici wakes a paused parser with an empty chunk; to pause for that one would go on for ever.
    if (this.#done || chunk.length === 0) return;
    this.since = this.#inFlight.nowMs;
    this.wireBytes += chunk.length;
    if (this.wireBytes > this.#bytesMax) this.fail('too-large', 'the body is over the size limit');
    else if (this.#pipe === null) this.#body.add(chunk);
    else this.#pipe.add(chunk);
  }

  onResponseEnd(): void {
    const slot = this.slot;
    if (this.#done || slot === null) return;
    // A body without length ends with the connection, and undici takes a reset for such an end.
    if (slot.socket?.errored) {
      this.fail('reset', 'the connection broke before the body was complete');
      return;
    }
    slot.served += 1;
    this.slot = null;
    slot.pool.release(slot);
    this.#takeBody();
  }

  /** As `onResponseEnd`, on a connection that is closed. */
  #complete(slot: Slot | null): void {
    this.slot = null;
    if (slot !== null) slot.pool.discard(slot);
    this.#takeBody();
  }

  #takeBody(): void {
    if (this.#pipe !== null) {
      this.#enter('storing');
      this.#pipe.end();
      return;
    }
    const wireBody = this.#body.take();
    if (this.#codings === null) {
      this.#respond(wireBody, { ok: true, body: wireBody });
      return;
    }
    this.#enter('decoding');
    const decoded = decodeBody(wireBody, this.#codings, this.#bytesMax);
    if (decoded instanceof Promise) void decoded.then((result) => this.#respond(wireBody, result));
    else this.#respond(wireBody, decoded);
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    if (this.#done) return;
    const slot = this.slot;
    const reused = slot !== null && slot.served > 0;
    if (reused && !this.#retried && this.#progress === 'unanswered' && isStaleConnection(error)) {
      this.#retried = true;
      this.slot = null;
      this.#enter('queued');
      slot.pool.retry(slot, this);
      return;
    }
    if (slot?.pool.retryWhole(slot, this, error)) return;
    // undici counts the white space after a Content-Length as digits: the body is there all the same.
    if (this.#progress === 'headers' && this.wireBytes === this.#length && isLengthMismatch(error)) {
      this.#complete(slot);
      return;
    }
    const { code, detail, isRefused = false } = failureOfError(error, this.#progress);
    this.isRefused = isRefused;
    this.fail(code, detail);
  }

  /** What the sink keeps waiting is not the site's silence: only the time of the whole task goes on. */
  #openPipe(controller: Dispatcher.DispatchController): void {
    let sink: BodySink | null = null;
    try {
      const head = { status: this.#status, rawHeaders: this.#rawHeaders };
      sink = this.#status < 300 ? this.request.sinkFor!(head) : null;
    } catch {
      this.fail('internal', 'the body could not be stored');
    }
    if (sink === null) {
      // What was meant for a sink may be a film; what stays here is a page about an error at most.
      this.#bytesMax = Math.min(this.#bytesMax, LIMITS.bodyBytesMax);
      return;
    }
    this.#pipe = openBodyPipe(sink, this.#codings, this.#bytesMax, {
      onFull: () => {
        this.#enter('storing');
        controller.pause();
      },
      onRoom: () => {
        // After its end the connection may carry another response already, which this must not set going.
        if (this.slot === null) return;
        this.#enter('body');
        controller.resume();
      },
      onDone: () => this.#respond(EMPTY, { ok: true, body: EMPTY }),
      onFailure: (code, detail) => this.fail(code, detail),
    });
  }

  #enter(stage: Exchange['stage']): void {
    this.stage = stage;
    this.since = this.#inFlight.nowMs;
  }

  #respond(wireBody: Buffer, decoded: Decoded): void {
    if (this.#done) return;
    if (!decoded.ok) {
      const { code, detail } = decoded;
      this.#finish({ kind: 'failure', code, detail, bytes: this.wireBytes });
      return;
    }
    this.#finish({
      kind: 'response',
      status: this.#status,
      statusText: this.#statusText,
      ...(this.#isOld ? { httpVersion: '1.0' } : {}),
      requestHeaders: this.options.headers,
      rawHeaders: this.#rawHeaders,
      wireBody,
      body: decoded.body,
      wireBytes: this.wireBytes,
    });
  }

  /** Ends before the response is complete: the connection is of no more use. */
  #abandon(result: FetchResult): void {
    if (this.#done) return;
    // First of all: undici reports the connection's end to this same handler.
    this.#done = true;
    this.#pipe?.stop();
    const slot = this.slot;
    this.slot = null;
    if (slot !== null) slot.pool.discard(slot);
    else this.pool?.forget(this);
    this.#finish(result);
  }

  /** The pool has its slot back by now, so that waiting requests find it idle. */
  #finish(result: FetchResult): void {
    this.#done = true;
    this.#resolve(result);
    this.#inFlight.remove(this);
  }
}

const EMPTY = Buffer.alloc(0);

/** undici leaves the white space after a value. */
function headerText(bytes: Buffer): string {
  let end = bytes.length;
  while (end > 0 && (bytes[end - 1] === 32 || bytes[end - 1] === 9)) end--;
  return bytes.toString('latin1', 0, end);
}

/** Most requests of a job have the same headers, as one object. */
const headerLists = new WeakMap<Record<string, string>, readonly string[]>();

/** A flat list is what undici walks fastest. */
function headerList(headers: Record<string, string>): readonly string[] {
  const known = headerLists.get(headers);
  if (known) return known;
  const list: string[] = [];
  let hasCodings = false;
  for (const name in headers) {
    list.push(name, headers[name]!);
    if (name.length === 15 && name.toLowerCase() === 'accept-encoding') hasCodings = true;
  }
  if (!hasCodings) list.push('accept-encoding', ACCEPTED_CODINGS);
  headerLists.set(headers, list);
  return list;
}
