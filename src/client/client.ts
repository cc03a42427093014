/** A client of the API of `seine serve`: `fetch` and nothing else, so that it runs wherever that does. */

export interface ConnectOptions {
  /** Such as `http://127.0.0.1:7420`. */
  url: string;
  /** An API key; not needed on the machine of a server without keys. */
  key?: string;
  /** Instead of the global one. */
  fetch?: typeof fetch;
}

export type Format = 'html' | 'text' | 'markdown' | 'links' | 'records' | 'screenshot' | 'pdf';

export interface PageOptions {
  use_js_render?: boolean;
  formats?: Format[];
  select?: Record<string, unknown>;
  schema?: Record<string, unknown>;
  wait_for?: string | number;
  headers?: Record<string, string>;
  timeout?: number;
  priority?: number;
  robots?: boolean;
  rate?: number | 'max';
  meta?: Record<string, unknown>;
}

export interface BatchOptions extends PageOptions {
  callback_url?: string;
  webhook?: { url: string; events?: string[]; metadata?: unknown };
  on_invalid?: 'skip' | 'fail';
  append_to?: string;
  deadline?: number;
}

export interface Result {
  url: string;
  status: 'succeeded' | 'failed' | 'skipped' | 'pending';
  http_status: number | null;
  code: string | null;
  retryable: boolean | null;
  content_type: string | null;
  bytes: number | null;
  fetched_at: string | null;
  meta: Record<string, unknown> | null;
  html?: string;
  text?: string;
  markdown?: string;
  links?: string[];
  records?: Record<string, unknown>[];
}

export interface Job<T = Record<string, unknown>> {
  job_id: string;
  status: 'queued' | 'running' | 'completed' | 'failed' | 'stopped' | 'cancelled';
  result?: T;
  error?: { code: string; detail?: string | null };
}

export interface Batch {
  batch_id: string;
  accepted: number;
  duplicates: number;
  rejected: { index: number; url: string | null; reason: string }[];
  rejected_count: number;
  status_url: string;
}

export interface ResultFilter {
  status?: Result['status'];
  host?: string;
  code?: string;
  q?: string;
  formats?: Format[];
}

/** Shares of the time of slots in percent, by state. */
export interface Explanation {
  shares: Record<string, number>;
  limiting: string | null;
  criticalHost: string | null;
  gains: { change: string; gainPercent: number; etaSeconds: number | null }[];
  sentence: string;
  wanted: { slots: number; workers: number; reason: string; limit?: 'refusals' | 'gain' } | null;
  /** What was decided about threads and batches at once, and why; the newest last. Absent in answers of older servers. */
  decisions?: { at: number; text: string }[];
}

/** As in docs/cost.md. */
export interface Forecast {
  requests: number;
  pages: number;
  seconds: { p50: number; p90: number };
  bytes: number;
  dollars: { p50: number; p90: number; items: { item: string; quantity: number; dollars: number }[] };
  criticalHost: string | null;
  sample: { from: 'sample' | 'earlier runs' | 'assumptions'; requests: number; pages: number };
}

export interface Attempt {
  url: string;
  outcome: string;
  http_status: number | null;
  code: string | null;
  detail: string | null;
  started_at: string;
  duration_ms: number;
  bytes: number;
}

/** `attempt`: a request that was sent. `end`: the job has ended, and nothing more comes. */
export type JobEvent = { type: 'attempt'; id: string; data: Attempt } | { type: 'end'; id: null; data: Job };

/** An answer that is a problem; `code` is stable. */
export class ApiError extends Error {
  readonly status: number;
  readonly code: string;
  /** Seconds, where the server says when to try again. */
  readonly retryAfter: number | null;

  constructor(status: number, problem: { code?: string; detail?: string }, retryAfter: string | null) {
    super(problem.detail ?? `the server answered ${status}`);
    this.name = 'ApiError';
    this.status = status;
    this.code = problem.code ?? 'unknown';
    this.retryAfter = retryAfter === null ? null : Number(retryAfter);
  }
}

const POLL_SECONDS = 30;
/** In a row, each after a second. */
const RECONNECTS_MAX = 30;
const RECONNECT_MS = 1_000;
const ENDED = ['completed', 'failed', 'stopped', 'cancelled'];

export type Client = ReturnType<typeof connect>;

/** The calls themselves: how a server is asked, and how its lists and streams are read. */
class Caller {
  readonly #base: string;
  readonly #send: typeof fetch;
  readonly #key: Record<string, string>;

  constructor({ url, key, fetch: send = fetch }: ConnectOptions) {
    this.#base = `${url.replace(/\/+$/, '')}/api/v1`;
    this.#send = send;
    this.#key = key === undefined ? {} : { 'x-api-key': key };
  }

  async call<T>(method: string, path: string, body?: unknown): Promise<T> {
    const send = this.#send;
    const answer = await send(this.#base + path, {
      method,
      headers: { ...this.#key, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    if (!answer.ok) throw problemOf(answer, text);
    return parse<T>(text) as T;
  }

  job<T>(id: string, wait: number): Promise<Job<T>> {
    return this.call('GET', `/jobs/${encodeURIComponent(id)}?wait=${wait}`);
  }

  async finished<T>(id: string): Promise<Job<T>> {
    for (;;) {
      const found = await this.job<T>(id, POLL_SECONDS);
      if (ENDED.includes(found.status)) return found;
    }
  }

  /** Row after row; the next page is fetched when it is needed. */
  async *rows<T>(path: string, name: string, query: Record<string, unknown>): AsyncGenerator<T, void> {
    let cursor: string | null = null;
    do {
      const given = Object.entries({ ...query, cursor }).filter(([, value]) => value != null);
      const search = new URLSearchParams(
        Object.fromEntries(given.map(([key, value]) => [key, String(value)])),
      );
      const page: Record<string, unknown> = await this.call('GET', `${path}?${search}`);
      yield* page[name] as T[];
      cursor = page.next_cursor as string | null;
    } while (cursor !== null);
  }

  /** Until the job has ended. A stream that breaks is continued after the last event that came. */
  async *events(id: string, after: string | null = null): AsyncGenerator<JobEvent, void> {
    const send = this.#send;
    let last = after;
    for (let failures = 0; ; ) {
      try {
        const answer = await send(`${this.#base}/jobs/${encodeURIComponent(id)}/events`, {
          headers: {
            accept: 'text/event-stream',
            ...this.#key,
            ...(last === null ? {} : { 'last-event-id': last }),
          },
        });
        if (!answer.ok || !answer.body) throw problemOf(answer, await answer.text());
        for await (const event of eventsIn(answer.body)) {
          failures = 0;
          if (event.id !== null) last = event.id;
          yield event;
          if (event.type === 'end') return;
        }
      } catch (error) {
        const isRefused = error instanceof ApiError && error.status < 500;
        if (isRefused || ++failures > RECONNECTS_MAX) throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, RECONNECT_MS));
    }
  }
}

function problemOf({ status, headers }: Response, text: string): ApiError {
  return new ApiError(status, parse(text) ?? {}, headers.get('retry-after'));
}

export function connect(options: ConnectOptions) {
  const caller = new Caller(options);
  const call = <T>(method: string, path: string, body?: unknown) => caller.call<T>(method, path, body);
  const rows = <T>(path: string, name: string, query: Record<string, unknown>) =>
    caller.rows<T>(path, name, query);
  const job = <T = Record<string, unknown>>(id: string, wait = 0) => caller.job<T>(id, wait);
  const act = (id: string, action: string, body?: object): Promise<Job> =>
    call('POST', `/jobs/${encodeURIComponent(id)}/${action}`, body);

  return {
    call,
    job,
    events: (id: string, after: string | null = null) => caller.events(id, after),
    scrape: (url: string, given: PageOptions & { max_age?: number; wait?: number } = {}) =>
      call<Job<Result>>('POST', '/scrape', { url, ...given }),
    scrapeAsync: (url: string, given: PageOptions = {}) =>
      call<Job<Result>>('POST', '/scrape/async', { url, ...given }),
    batch: (
      urls: readonly (string | { url: string; meta?: Record<string, unknown> })[],
      given: BatchOptions = {},
    ) => call<Batch>('POST', '/batch', { urls, ...given }),
    createJob: (definition: object) => call<{ job_id: string }>('POST', '/jobs', definition),
    stop: (id: string) => act(id, 'stop'),
    resume: (id: string) => act(id, 'resume'),
    cancel: (id: string) => act(id, 'cancel'),
    /** What pages or a job would take; null while the sample is still running: ask again. */
    forecast: async (asked: { urls?: string[]; job?: object; sample?: number; wait?: number }) => {
      const found = await call<Forecast | { status: 'running' }>('POST', '/forecast', asked);
      return 'seconds' in found ? found : null;
    },
    /** What a job cost, and what became of every URL. */
    receipt: (id: string) => call<Record<string, unknown>>('GET', `/jobs/${encodeURIComponent(id)}/receipt`),
    retry: (id: string, filter: { code?: string; host?: string; url?: string } = {}) =>
      call<{ retried: number }>('POST', `/jobs/${encodeURIComponent(id)}/retry`, filter),
    /** Why the job is not faster, and what changes would give: `workers=+8`, `rate:shop.example=8`. */
    explain: (id: string, whatIf: readonly string[] = []) =>
      call<Explanation>(
        'GET',
        `/jobs/${encodeURIComponent(id)}/explain?${new URLSearchParams(whatIf.map((change): [string, string] => ['what_if', change]))}`,
      ),
    /** Until the job has ended. */
    finished: <T = Record<string, unknown>>(id: string) => caller.finished<T>(id),
    results: (id: string, { formats, ...filter }: ResultFilter = {}) =>
      rows<Result>(`/jobs/${encodeURIComponent(id)}/results`, 'results', {
        ...filter,
        formats: formats?.join(','),
      }),
    attempts: (id: string, filter: { status?: string; host?: string; code?: string; q?: string } = {}) =>
      rows<Attempt>(`/jobs/${encodeURIComponent(id)}/attempts`, 'attempts', filter),
    /** With all that is stored of it; it must not run. */
    delete: (id: string) => call<null>('DELETE', `/jobs/${encodeURIComponent(id)}`),
    records: (id: string) =>
      rows<{ key: string; url: string; data: Record<string, unknown>; updated_at: string }>(
        `/jobs/${encodeURIComponent(id)}/records`,
        'records',
        {},
      ),
  };
}

function parse<T = Record<string, string>>(text: string): T | null {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** Server-sent events: fields on lines, an empty line after each event. */
async function* eventsIn(body: ReadableStream<Uint8Array>): AsyncGenerator<JobEvent, void> {
  const decoder = new TextDecoder();
  const reader = body.getReader();
  let text = '';
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      text += decoder.decode(value, { stream: true });
      const blocks = text.split('\n\n');
      text = blocks.pop()!;
      for (const block of blocks) {
        const fields = new Map(
          block.split('\n').map((line): [string, string] => {
            const at = line.indexOf(': ');
            return [line.slice(0, at), line.slice(at + 2)];
          }),
        );
        const type = fields.get('event');
        const text = fields.get('data') ?? '';
        const attempt = type === 'attempt' ? parse<Attempt>(text) : null;
        if (attempt) yield { type: 'attempt', id: fields.get('id') ?? '', data: attempt };
        const job = type === 'end' ? parse<Job>(text) : null;
        if (job) yield { type: 'end', id: null, data: job };
      }
    }
  } finally {
    await reader.cancel().catch(() => {});
  }
}
