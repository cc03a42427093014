import type dns from 'node:dns';
import { STATUS_CODES } from 'node:http';
import { fetch, type Response } from 'undici';
import type { ApiSpec, BatchApiSpec } from '../../core/job-schema/remote-api.ts';
import { LIMITS } from '../../core/limits.ts';
import type { AddressCheck } from '../../core/url/address-guard.ts';
import { type GuardedConnections, openGuardedConnections } from '../../network/guarded-connections.ts';
import type { FetchRequest, FetchResult } from '../../ports/fetcher.ts';
import { failure } from '../network/check-request.ts';
import type { Lookup } from '../network/dns-cache.ts';
import { CallbackInbox, Mailbox } from './callback-inbox.ts';
import { API_ANSWER_BYTES_MAX, type CallbackReceiver } from './callback-receiver.ts';
import {
  fillBody,
  fillTemplate,
  headersFor,
  intoSink,
  PRIVATE_API,
  wantsCallback,
} from './remote-api-request.ts';

interface Entry {
  request: FetchRequest;
  done(result: FetchResult): void;
  isDone: boolean;
}

/** One kind of API, with one key. */
interface ApiAccount {
  spec: ApiSpec;
  batch: BatchApiSpec;
  key: string | null;
  gathered: Entry[];
  timer: NodeJS.Timeout | null;
}

/** A job at the API: where to ask for it, and which requests it will answer. */
interface Handle {
  id: string | null;
  /** Null where only a callback will tell. */
  url: string | null;
  entries: Entry[];
  mail: Mailbox;
}

/** Questions in a row without a usable answer, after which a job is given up. */
const FAILED_POLLS_MAX = 5;

/** Hands lists of URLs to an API, and waits for their pages, or asks for them until they are there. */
export class ApiBatches {
  readonly #accounts = new Map<string, ApiAccount>();
  readonly #closing = new AbortController();
  readonly #open = new Set<Entry>();
  readonly #openReceiver: () => Promise<CallbackReceiver | null>;

  readonly #connections: GuardedConnections;

  /** `openReceiver` gives null where this worker cannot listen: then pages are asked for. */
  constructor(
    openReceiver: () => Promise<CallbackReceiver | null>,
    isAllowed: AddressCheck,
    lookup?: Lookup,
  ) {
    this.#openReceiver = openReceiver;
    this.#connections = openGuardedConnections({
      isAllowed,
      refused: () => new ApiTrouble(PRIVATE_API),
      connectMs: 10_000,
      ...(lookup ? { lookup: lookup as typeof dns.lookup } : {}),
    });
  }

  fetch(request: FetchRequest, spec: ApiSpec, key: string | null): Promise<FetchResult> {
    // Handing it over is what the site's limits are counted by: when the API asks the site is up to the API.
    if (request.signal.aborted || !request.onSent()) return Promise.resolve({ kind: 'aborted' });
    const account = this.#accountOf(spec, key);
    return new Promise((resolve) => {
      const entry: Entry = { request, isDone: false, done: () => {} };
      const abort = () => entry.done({ kind: 'aborted' });
      const { taskMs } = request.timeouts;
      const timer = setTimeout(
        () => entry.done(failure('api', `the API returned no page within ${taskMs} ms`)),
        taskMs,
      );
      entry.done = (result) => {
        if (entry.isDone) return;
        entry.isDone = true;
        clearTimeout(timer);
        request.signal.removeEventListener('abort', abort);
        this.#open.delete(entry);
        resolve(result.kind === 'response' ? intoSink(request, result) : result);
      };
      request.signal.addEventListener('abort', abort);
      this.#open.add(entry);
      this.#gather(account, entry);
    });
  }

  close(): void {
    this.#closing.abort();
    for (const { timer } of this.#accounts.values()) if (timer) clearTimeout(timer);
    for (const entry of this.#open) entry.done({ kind: 'aborted' });
    void this.#connections.destroy();
  }

  #accountOf(spec: ApiSpec, key: string | null): ApiAccount {
    const name = JSON.stringify([spec, key]);
    let account = this.#accounts.get(name);
    if (!account) {
      account = { spec, batch: spec.batch!, key, gathered: [], timer: null };
      this.#accounts.set(name, account);
    }
    return account;
  }

  #gather(account: ApiAccount, entry: Entry): void {
    account.gathered.push(entry);
    if (account.gathered.length >= account.batch.size) this.#submit(account);
    else account.timer ??= setTimeout(() => this.#submit(account), account.batch.gatherMs);
  }

  #submit(account: ApiAccount): void {
    if (account.timer) clearTimeout(account.timer);
    account.timer = null;
    const entries = account.gathered.filter((entry) => !entry.isDone);
    account.gathered = [];
    if (entries.length === 0) return;
    this.#carryOut(account, entries).catch((error: unknown) => giveUp(entries, error));
  }

  async #carryOut(account: ApiAccount, entries: Entry[]): Promise<void> {
    const { batch, key } = account;
    const urls = [...new Set(entries.map(({ request }) => request.url))];
    const receiver = wantsCallback(batch.body) ? await this.#openReceiver() : null;
    const inbox = receiver && new CallbackInbox(receiver, urls.length, (value) => textAt(value, batch.id));
    try {
      const body = JSON.stringify(fillBody(batch.body, { urls, key, callback: inbox?.url ?? null }));
      const answer = await this.#ask(account, fillTemplate(batch.submit, { key }), body);
      const handles = handlesOf(account, answer, entries, inbox !== null);
      inbox?.open(handles.map(({ id, mail }) => ({ id, take: (value) => mail.take(value) })));
      const pollMs = inbox ? batch.callbackPollMs : batch.pollMs;
      await Promise.all(
        handles.map((handle) =>
          this.#follow(account, handle, pollMs).catch((error) => giveUp(handle.entries, error)),
        ),
      );
    } finally {
      inbox?.close();
    }
    for (const entry of entries) entry.done(failure('api', 'the API returned no page for the URL'));
  }

  /** Waits and asks for a job until it is over, or until no request waits for it any more. */
  async #follow(account: ApiAccount, handle: Handle, pollMs: number): Promise<void> {
    const { batch } = account;
    for (let failed = 0; handle.entries.some((entry) => !entry.isDone); ) {
      const told = await handle.mail.next(pollMs, this.#closing.signal);
      if (told && isOver(account, handle, told.value, valueAt(told.value, batch.results) !== undefined))
        return;
      if (handle.url === null) continue;
      // Also after a message without pages: it says that there is something to ask for.
      const answer = await this.#ask(account, handle.url, null).catch((error: unknown) => {
        if (++failed >= FAILED_POLLS_MAX) throw error;
        return null;
      });
      if (answer === null) continue;
      failed = 0;
      if (isOver(account, handle, answer, true)) return;
    }
  }

  /** No redirects are followed: the key is for this API alone. */
  async #ask(account: ApiAccount, url: string, body: string | null): Promise<unknown> {
    const response = await fetch(url, {
      method: body === null ? 'GET' : 'POST',
      headers: {
        ...(body === null ? {} : { 'content-type': 'application/json' }),
        ...headersFor(account.spec, account.key),
      },
      body,
      redirect: 'manual',
      dispatcher: this.#connections,
      signal: AbortSignal.any([this.#closing.signal, AbortSignal.timeout(60_000)]),
    });
    if (response.status < 200 || response.status >= 300) {
      await response.body?.cancel();
      throw new ApiTrouble(`the API answered with status ${response.status}`);
    }
    try {
      return JSON.parse(await readText(response));
    } catch (error) {
      throw error instanceof SyntaxError ? new ApiTrouble('the API did not answer with JSON') : error;
    }
  }
}

/** One sentence without anything of what was sent or received. */
class ApiTrouble extends Error {}

function giveUp(entries: Entry[], error: unknown): void {
  // What goes wrong with a connection is the cause of what `fetch` throws.
  const trouble = [error, error instanceof Error ? error.cause : null].find(
    (each) => each instanceof ApiTrouble,
  );
  const detail = trouble instanceof ApiTrouble ? trouble.message : 'the API could not be reached';
  for (const entry of entries) entry.done(failure('api', detail));
}

async function readText(response: Response): Promise<string> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of response.body ?? []) {
    bytes += piece.length;
    if (bytes > API_ANSWER_BYTES_MAX) throw new ApiTrouble('the answer of the API is too large');
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString('utf8');
}

/** One job for the whole list, or a list of jobs of one URL each. */
function handlesOf(account: ApiAccount, answer: unknown, entries: Entry[], isAwaited: boolean): Handle[] {
  const { batch } = account;
  const jobs = valueAt(answer, batch.jobs);
  const handleOf = (job: unknown, own: Entry[]): Handle => {
    const url = placeOf(account, job);
    if (url === null && !isAwaited) throw new ApiTrouble('the API returned no job id');
    return { id: textAt(job, batch.id), url, entries: own, mail: new Mailbox() };
  };
  if (!Array.isArray(jobs)) return [handleOf(jobs, entries)];
  return jobs.slice(0, entries.length).map((job, index) => {
    const url = textAt(job, batch.url) ?? entries[index]!.request.url;
    return handleOf(
      job,
      entries.filter(({ request }) => request.url === url),
    );
  });
}

/** What the answer says is followed only where the API itself is: elsewhere would get the key. */
function placeOf({ batch, key }: ApiAccount, job: unknown): string | null {
  const id = textAt(job, batch.id);
  if (batch.poll !== undefined && id !== null)
    return fillTemplate(batch.poll.replaceAll('{id}', encodeURIComponent(id)), { key });
  const told = URL.parse(textAt(job, batch.statusUrl) ?? '', batch.submit);
  const own = new URL(fillTemplate(batch.submit, { key }));
  return told === null || told.origin !== own.origin ? null : told.href;
}

/** Delivers the pages of a job that has them. Throws when it failed. */
function isOver(account: ApiAccount, handle: Handle, answer: unknown, hasPages: boolean): boolean {
  const { batch } = account;
  const state = textAt(answer, batch.state) ?? '';
  if (batch.failed.includes(state)) throw new ApiTrouble('the API job failed');
  if (!batch.done.includes(state) || !hasPages) return false;
  deliver(account, handle, valueAt(answer, batch.results));
  return true;
}

function deliver({ spec, batch }: ApiAccount, { entries }: Handle, results: unknown): void {
  const items = Array.isArray(results) ? results : [results];
  const isOnly = items.length === 1 && entries.length === 1;
  for (const item of items) {
    const url = textAt(item, batch.url);
    for (const entry of entries.filter(({ request }) => isOnly || request.url === url)) {
      const page = pageAt(batch, item, entry.request.bodyBytesMax, spec.cost);
      entry.done(page ?? failure('api', 'the API returned no page for the URL'));
    }
  }
}

/** What a batch API says, which is as hostile as what a site says. */

/** A value inside JSON, by names and numbers with dots between; the whole of it for an empty path. */
function valueAt(value: unknown, path: string): unknown {
  if (path === '') return value;
  let found = value;
  for (const name of path.split('.')) {
    if (typeof found !== 'object' || found === null || !Object.hasOwn(found, name)) return undefined;
    found = (found as Record<string, unknown>)[name];
  }
  return found;
}

function textAt(value: unknown, path: string): string | null {
  const found = valueAt(value, path);
  return typeof found === 'string' || typeof found === 'number' ? String(found) : null;
}

/** A page that the API has fetched; null when it says nothing usable. */
function pageAt(spec: BatchApiSpec, item: unknown, bodyBytesMax: number, cost: number): FetchResult | null {
  const status = Number(textAt(item, spec.status) ?? 200);
  const text = textAt(item, spec.page);
  if (text === null || !Number.isInteger(status) || status < 200 || status > 599) return null;
  const body = Buffer.from(text, spec.base64 ? 'base64' : 'utf8');
  if (body.length > bodyBytesMax)
    return {
      kind: 'failure',
      code: 'too-large',
      detail: 'the body is over the size limit',
      bytes: body.length,
    };
  const told = Number(textAt(item, spec.cost) ?? Number.NaN);
  return {
    kind: 'response',
    status,
    statusText: STATUS_CODES[status] ?? '',
    rawHeaders: headersAt(item, spec),
    wireBody: body,
    body,
    wireBytes: body.length,
    cost: Number.isFinite(told) && told >= 0 ? told : cost,
  };
}

/** Without those that speak of how the body was sent to the API. Text in JSON is UTF-8 by now, whatever it was before. */
function headersAt(item: unknown, spec: BatchApiSpec): string[] {
  const found = valueAt(item, spec.headers);
  if (typeof found !== 'object' || found === null) return [];
  const list: string[] = [];
  let bytes = 0;
  for (const [name, given] of Object.entries(found)) {
    if (!/^[\w-]{1,100}$/.test(name) || /^(content-(encoding|length)|transfer-encoding)$/i.test(name))
      continue;
    for (const value of Array.isArray(given) ? given : [given]) {
      let text = String(value).replace(/[^\t\x20-\x7e\x80-\xff]/g, ' ');
      if (!spec.base64 && name.toLowerCase() === 'content-type')
        text = `${text.split(';')[0]}; charset=utf-8`;
      bytes += name.length + text.length;
      if (bytes > LIMITS.headerBytesMax) return list;
      list.push(name, text);
    }
  }
  return list;
}
