import { Readable } from 'node:stream';
import { setTimeout as pause } from 'node:timers/promises';
import { type Dispatcher, request } from 'undici';
import { messageOf, SeineError } from '../../core/errors.ts';
import { LIMITS } from '../../core/limits.ts';
import type { AddressCheck, AddressGuard } from '../../core/url/address-guard.ts';
import { type GuardedConnections, openGuardedConnections } from '../../network/guarded-connections.ts';
import { MissingFileError, type RemoteFiles } from '../../ports/remote-files.ts';
import { BrokenFileError } from '../rows/raw-row.ts';

/** Pauses before asking again; one more failure after the last is final. */
const PAUSES_MS = [250, 1_000, 4_000];

interface Part {
  status: number;
  /** Where the body begins, and the size of the whole file where the server says so. */
  start: number;
  total: number | null;
  /** Tells one state of the file from another; null when the server has no word for it. */
  version: string | null;
  body: Readable;
}

interface HttpFilesOptions {
  pausesMs?: readonly number[];
  guard: AddressGuard;
  /** The job says `allowPrivate`. */
  jobAllowsPrivate?: boolean;
  privateServices?: boolean | undefined;
}

/** Files on web servers. Bytes come as they are stored: nothing is unpacked on the way. */
export function openHttpFiles(options: HttpFilesOptions): RemoteFiles {
  return new HttpFiles(options);
}

class HttpFiles implements RemoteFiles {
  readonly #client: RedirectingClient;
  readonly #pausesMs: readonly number[];
  /** Of files that are read in pieces: all must be of the same state. */
  readonly #versions = new Map<string, string | null>();

  constructor({ pausesMs = PAUSES_MS, guard, jobAllowsPrivate = false, privateServices }: HttpFilesOptions) {
    this.#pausesMs = pausesMs;
    this.#client = new RedirectingClient(guard.services(privateServices), guard.pages(jobAllowsPrivate));
  }

  async *list(url: string): AsyncIterable<{ url: string; bytes: null }> {
    yield { url, bytes: null };
  }

  size(url: string): Promise<number> {
    return this.#insist(url, async () => {
      const part = await this.#ask(url, { from: 0, to: 0 });
      discard(part);
      this.#versions.set(url, part.version);
      if (part.total !== null) return part.total;
      throw new SeineError(`the server does not send the size of ${url}`, {
        hint: 'download the file first',
      });
    });
  }

  read(url: string, offset: number, length: number): Promise<Buffer> {
    return this.#insist(url, async () => {
      if (length === 0) return Buffer.alloc(0);
      const part = await this.#ask(url, { from: offset, to: offset + length - 1 });
      try {
        if (part.status === 200) throw withoutRanges(url);
        const known = this.#versions.get(url) ?? part.version;
        if (part.status !== 206 || part.start !== offset || part.version !== known) throw changed();
        return await readExactly(part.body, length);
      } finally {
        discard(part);
      }
    });
  }

  async stream(url: string, offset = 0): Promise<Readable> {
    const part = await this.#insist(url, () => this.#ask(url, { from: offset }));
    // Nothing is left after the last byte.
    const chunks = part.status === 416 ? [] : this.#follow(url, part, offset);
    return Readable.from(chunks, { objectMode: false });
  }

  close(): Promise<void> {
    return this.#client.close();
  }

  /** The body to its end, over as many answers as it takes. */
  async *#follow(url: string, first: Part, offset: number): AsyncIterable<Buffer> {
    let part = first;
    let at = offset;
    let failures = 0;
    try {
      for (;;) {
        try {
          // A server without ranges begins anew: what was read already is passed over.
          for await (const fresh of skipping(part.body, at - part.start)) {
            at += fresh.length;
            failures = 0;
            yield fresh;
          }
          return;
        } catch (error) {
          await this.#rest(url, failures++, error);
          const from = at;
          part = await this.#insist(url, () => this.#ask(url, { from }));
          if (part.version !== first.version || part.status === 416) throw changed();
        }
      }
    } finally {
      discard(part);
    }
  }

  /** Again after trouble that may pass. */
  async #insist<T>(url: string, work: () => Promise<T>): Promise<T> {
    for (let attempt = 0; ; attempt++) {
      try {
        return await work();
      } catch (error) {
        if (error instanceof SeineError || error instanceof BrokenFileError) throw error;
        await this.#rest(url, attempt, error);
      }
    }
  }

  async #rest(url: string, failures: number, error: unknown): Promise<void> {
    const wait = this.#pausesMs[failures];
    if (wait === undefined)
      throw new SeineError(`cannot read ${url}: ${messageOf(error)}`, {
        hint: 'run `seine resume` when the server works again',
        cause: error,
      });
    await pause(wait);
  }

  /** `range` is an offset to the end, or to the last byte wanted. */
  async #ask(url: string, range: { from: number; to?: number }): Promise<Part> {
    if (!URL.canParse(url)) throw new SeineError(`not a URL: ${url}`);
    const whole = range.from === 0 && range.to === undefined;
    const response = await this.#client.request(new URL(url), {
      'user-agent': 'Seine',
      accept: '*/*',
      'accept-encoding': 'identity',
      ...(whole ? {} : { range: `bytes=${range.from}-${range.to ?? ''}` }),
    });
    const part = partOf(response);
    if ([200, 206, 416].includes(part.status)) return part;
    discard(part);
    throw failureOf(url, part.status);
  }
}

/** Follows redirects. A job names the first server; where that redirects to is the server's choice. */
class RedirectingClient {
  readonly #named: GuardedConnections;
  readonly #elsewhere: GuardedConnections;

  constructor(named: AddressCheck, elsewhere: AddressCheck) {
    this.#named = openConnections(named, refusedSource);
    this.#elsewhere = openConnections(elsewhere, refusedRedirect);
  }

  async request(url: URL, headers: Record<string, string>): Promise<Dispatcher.ResponseData> {
    let at = url;
    for (let hops = 0; hops <= LIMITS.redirectsMax; hops++) {
      const isNamed = at.origin === url.origin;
      const response = await request(at, { dispatcher: isNamed ? this.#named : this.#elsewhere, headers });
      const { location } = response.headers;
      if (![301, 302, 303, 307, 308].includes(response.statusCode) || typeof location !== 'string')
        return response;
      response.body.on('error', () => {}).destroy();
      const next = URL.parse(location, at.href);
      if (next === null || !/^https?:$/.test(next.protocol))
        throw new SeineError(`${url} redirects to a URL that is not http(s)`);
      at = next;
    }
    throw new SeineError(`${url} redirects more than ${LIMITS.redirectsMax} times`);
  }

  async close(): Promise<void> {
    await this.#named.destroy();
    await this.#elsewhere.destroy();
  }
}

/** A body without its first bytes. */
async function* skipping(body: Readable, bytes: number): AsyncIterable<Buffer> {
  let skip = bytes;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    const fresh = skip > 0 ? chunk.subarray(skip) : chunk;
    skip = Math.max(0, skip - chunk.length);
    if (fresh.length > 0) yield fresh;
  }
}

function openConnections(isAllowed: AddressCheck, refused: (hostname: string) => Error): GuardedConnections {
  return openGuardedConnections({
    isAllowed,
    refused,
    connectMs: 10_000,
    limits: { headersTimeout: 30_000, bodyTimeout: 60_000, connections: 8 },
  });
}

function discard({ body }: Part): void {
  body.on('error', () => {}).destroy();
}

function partOf({ statusCode, headers, body }: Dispatcher.ResponseData): Part {
  const text = (name: string) => {
    const value = headers[name];
    return typeof value === 'string' ? value : null;
  };
  const range = /^bytes (?:(\d{1,15})-\d{1,15}|\*)\/(\d{1,15})/.exec(text('content-range') ?? '');
  const length = /^\d{1,15}$/.exec(text('content-length') ?? '');
  const total = range ? Number(range[2]) : statusCode === 200 && length ? Number(length[0]) : null;
  return {
    status: statusCode,
    start: statusCode === 206 ? Number(range?.[1] ?? Number.NaN) : 0,
    total,
    version: text('etag') ?? text('last-modified'),
    body,
  };
}

/** More than was asked for is not held. */
async function readExactly(body: Readable, length: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of body as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    bytes += chunk.length;
    if (bytes > length) break;
  }
  if (bytes !== length) throw new Error(`received ${bytes} bytes instead of ${length}`);
  return Buffer.concat(chunks, length);
}

/** What may pass is a plain error, and asked for again. */
function failureOf(url: string, status: number): Error {
  if (status === 404 || status === 410)
    return new MissingFileError(`no such file: ${url} (status ${status})`, {
      hint: url.includes('*') ? 'a web server cannot list files: name each file' : undefined,
    });
  if (status === 408 || status === 429 || status >= 500) return new Error(`status ${status}`);
  return new SeineError(`the server refuses ${url} with status ${status}`);
}

function withoutRanges(url: string): SeineError {
  return new SeineError(`the server of ${url} ignores range requests, which Parquet needs`, {
    hint: 'download the file first',
  });
}

function changed(): BrokenFileError {
  return new BrokenFileError('it changed while reading it');
}

function refusedSource(hostname: string): SeineError {
  return new SeineError(`the source ${hostname} has a private or reserved address`, {
    hint: 'SEINE_ALLOW_PRIVATE=never refuses it; set SEINE_ALLOW_PRIVATE=job if jobs may use the own network',
  });
}

function refusedRedirect(hostname: string): SeineError {
  return new SeineError(`a source redirects to ${hostname}, which has a private or reserved address`, {
    hint: 'use the final URL of the file, or allow private addresses with --allow-private',
  });
}
