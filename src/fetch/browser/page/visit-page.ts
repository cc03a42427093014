import { hash } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { seededNumbers } from '../../../core/behaviour/human-behaviour.ts';
import { detectBlock } from '../../../core/blocking/block-detection.ts';
import type { FailureCode } from '../../../core/failures.ts';
import { type BrowserSpec, browser as browserSchema } from '../../../core/job-schema/browser.ts';
import type { FetchRequest, FetchResult } from '../../../ports/fetcher.ts';
import type { Stopwatch } from '../../body/stopwatch.ts';
import { failure } from '../../network/check-request.ts';
import { authorityOf } from './document-response.ts';
import { MainDocument } from './main-document.ts';
import { ActionError, Hand, runActions } from './page-actions.ts';
import { PageCaptures } from './page-captures.ts';
import { PageResources } from './page-resources.ts';
import { takeFailureShot, takeShots } from './page-shots.ts';
import { readHtml } from './page-world.ts';
import { headerOf } from './plan-tab.ts';
import type { Tab } from './tab.ts';

const PLAIN = browserSchema.parse({});
/** A page that never comes to rest is taken as it is after this share of the task's time. */
const REST_SHARE = 0.7;
/** What the job does must be done by then: the rest is for pictures and HTML, also of a failure. */
const ACTION_SHARE = 0.85;
/** For scripts of a page that was kept from going elsewhere. */
const KEPT_MS = 250;
const FLOOD_LOOK_MS = 250;
/** What a failed page gets for its snapshot. */
const SNAPSHOT_MS = 2_000;

/** A page that polls is never idle, and has shown what it has by then. */
const IDLE_MS_MAX = 10_000;
/** A check of the browser that passes goes on to the page by itself within seconds. */
const CHECK_MS_MAX = 8_000;
/** Checks have few words. */
const CHECK_CHARS_MAX = 1_500;

/** Run in the page. A reload that is minutes away is for readers. */
const CHECK_SIGNS = `({
  chars: (document.body?.innerText ?? '').length,
  reloads: parseInt(document.querySelector('meta[http-equiv=refresh i]')?.content ?? '99') * 1000 < ${CHECK_MS_MAX},
})`;

/** Ends a visit from wherever it is. */
class VisitEnd extends Error {
  readonly result: FetchResult;

  constructor(result: FetchResult) {
    super('the visit is over');
    this.result = result;
  }
}

/** Shows one page in a tab and takes what is wanted of it. Never rejects. */
export async function visitPage(
  tab: Tab,
  request: FetchRequest,
  watch: Stopwatch,
  url: URL,
): Promise<FetchResult> {
  const visit = new Visit(tab, request, watch, url);
  try {
    return await visit.run();
  } catch (error) {
    if (error instanceof VisitEnd) return error.result;
    return watch.ending ?? failure('browser', 'the browser command failed');
  } finally {
    visit.stop();
  }
}

class Visit {
  readonly #tab: Tab;
  readonly #request: FetchRequest;
  readonly #url: URL;
  readonly #spec: BrowserSpec;
  readonly #document: MainDocument;
  readonly #captures: PageCaptures;
  readonly #resources: PageResources | null;
  readonly #startedAt = performance.now();
  readonly #ending: Promise<never>;
  readonly #hand: Hand | null;
  readonly #floods: NodeJS.Timeout;

  constructor(tab: Tab, request: FetchRequest, watch: Stopwatch, url: URL) {
    this.#tab = tab;
    this.#request = request;
    this.#url = url;
    this.#spec = request.render ?? PLAIN;
    // The same page is used in the same way each time.
    const seed = Number.parseInt(hash('sha256', url.href).slice(0, 8), 16);
    this.#hand = this.#spec.behaviour === 'human' ? new Hand(tab, seededNumbers(seed)) : null;
    this.#document = new MainDocument(tab, request, watch, url);
    this.#captures = new PageCaptures(tab, this.#spec.capture);
    this.#resources = request.wantsResources ? new PageResources(tab) : null;
    const { promise, reject } = Promise.withResolvers<never>();
    this.#ending = promise;
    // It is looked at only while something is waited for.
    promise.catch(() => {});
    void watch.over.then(() => reject(new VisitEnd(watch.ending ?? { kind: 'aborted' })));
    tab.onBroken = () => reject(new VisitEnd(watch.ending ?? CRASHED));
    if (tab.isCrashed) tab.onBroken();
    this.#floods = setInterval(() => {
      if (tab.ticket.isFlooded())
        reject(new VisitEnd(failure('too-large', 'the page loads more than the size limit')));
    }, FLOOD_LOOK_MS);
  }

  stop(): void {
    clearInterval(this.#floods);
    this.#tab.unlisten();
    this.#tab.ticket.onDial = null;
    this.#tab.onBroken = null;
  }

  async run(): Promise<FetchResult> {
    const { ticket, cdp } = this.#tab;
    ticket.turnPage();
    ticket.connectMs = this.#request.timeouts.connectMs;
    this.#tab.watchNetwork(this.#spec.waitUntil === 'idle');
    this.#captures.listen();
    this.#resources?.listen();
    const cookies = headerOf(this.#request, 'cookie');
    await this.#within(
      Promise.all([this.#document.listen(), this.#tab.setCookies(this.#request.url, cookies)]),
    );
    const early = await this.#within(this.#arrive());
    if (early) return early;
    // From here on only these want to know of each request.
    if (this.#spec.capture.length === 0 && !this.#resources) void cdp.send('Network.disable').catch(() => {});
    await this.#rest();
    try {
      await this.#within(
        runActions(this.#tab, this.#spec.actions, () => this.#leftMs(ACTION_SHARE), this.#hand),
      );
      return await this.#take();
    } catch (error) {
      if (error instanceof ActionError) return this.#fail(error);
      throw error;
    }
  }

  /** Null when the page is in the tab. */
  async #arrive(): Promise<FetchResult | null> {
    const { page, ticket } = this.#tab;
    const referer = headerOf(this.#request, 'referer');
    const going = page.goto(this.#url.href, {
      waitUntil: 'commit',
      timeout: 0,
      ...(referer === null ? {} : { referer }),
    });
    const refused = going.then(
      () => null,
      (error: unknown): FetchResult => {
        const known = ticket.failureOf(authorityOf(this.#url)) ?? null;
        if (known) return failure(known.failure, known.message);
        const { code, detail } = failureOfNavigation(error) ?? CRASHED;
        return failure(code, detail);
      },
    );
    const unlessFailed = refused.then((result) => result ?? this.#document.arrived);
    const arrived = await Promise.race([this.#document.arrived, unlessFailed]);
    return arrived ?? refused;
  }

  /** Where the page is a check that reloads by itself, what follows it is waited for. */
  async #outlastCheck(): Promise<void> {
    const { page } = this.#tab;
    const moved = page
      .waitForEvent('framenavigated', {
        predicate: (frame) => frame === page.mainFrame(),
        timeout: Math.max(1, Math.min(this.#leftMs(REST_SHARE), CHECK_MS_MAX)),
      })
      .then(
        () => true,
        () => false,
      );
    const isCheck = page.evaluate<{ chars: number; reloads: boolean }>(CHECK_SIGNS).then(
      async ({ chars, reloads }) =>
        reloads || (chars < CHECK_CHARS_MAX && looksBlocked(this.#url.href, await page.content())),
      () => false,
    );
    if (!(await this.#within(isCheck))) return;
    if (await this.#within(moved))
      await this.#within(page.waitForLoadState('networkidle', { timeout: IDLE_MS_MAX }).catch(() => {}));
  }

  /** The page itself must be parsed; what it loads besides may take its time, but not all of it. */
  async #rest(): Promise<void> {
    const { page } = this.#tab;
    const kept = this.#document.kept.then(() => sleep(KEPT_MS));
    const { waitUntil } = this.#spec;
    await this.#within(Promise.race([page.waitForLoadState('domcontentloaded', { timeout: 0 }), kept]));
    if (waitUntil === 'dom') return;
    const timeout = Math.max(1, this.#leftMs(REST_SHARE));
    const loaded = page.waitForLoadState('load', { timeout }).catch(() => {});
    await this.#within(Promise.race([loaded, kept]));
    if (waitUntil === 'load') return;
    const idleMs = Math.max(1, Math.min(this.#leftMs(REST_SHARE), IDLE_MS_MAX));
    const idle = page.waitForLoadState('networkidle', { timeout: idleMs }).catch(() => {});
    await this.#within(Promise.race([idle, kept]));
    await this.#outlastCheck();
  }

  async #take(): Promise<FetchResult> {
    const { bodyBytesMax } = this.#request;
    const head = this.#document.head!;
    const shots = await this.#within(takeShots(this.#tab, this.#spec, () => this.#leftMs(ACTION_SHARE)));
    const html = await this.#within(this.#html(bodyBytesMax));
    if (html === null) return failure('too-large', 'the HTML of the page is over the size limit');
    const captured = await this.#within(this.#captures.collect());
    const resources = this.#resources && (await this.#within(this.#resources.collect()));
    return {
      kind: 'response',
      ...head,
      rawHeaders: asHtml(head.rawHeaders),
      wireBody: html,
      body: html,
      wireBytes: this.#tab.ticket.bytes,
      rendered: { shots, captured, ...(resources && { resources }) },
    };
  }

  #html(bytesMax: number): Promise<Buffer | null> {
    return readHtml(this.#tab.cdp, this.#tab.frameId, { url: this.#request.url, bytesMax });
  }

  async #fail(error: ActionError): Promise<FetchResult> {
    const result = failure('render', error.message, this.#tab.ticket.bytes);
    const timer = Promise.withResolvers<null>();
    const timeout = setTimeout(() => timer.resolve(null), SNAPSHOT_MS);
    const taking = Promise.all([
      this.#html(this.#request.bodyBytesMax),
      takeFailureShot(this.#tab).catch(() => null),
    ]).catch(() => null);
    const taken = await this.#within(Promise.race([taking, timer.promise]));
    clearTimeout(timeout);
    const [html, screenshot] = taken ?? [null, null];
    return html === null ? result : { ...result, snapshot: { html, screenshot } };
  }

  #leftMs(share: number): number {
    return this.#startedAt + this.#request.timeouts.taskMs * share - performance.now();
  }

  #within<T>(promise: Promise<T>): Promise<T> {
    // What is given up may fail later.
    promise.catch(() => {});
    return Promise.race([promise, this.#ending]);
  }
}

const CRASHED = failure('browser', 'the browser or its page crashed');

/** The body is what the tab made of the page, in UTF-8. */
function asHtml(rawHeaders: readonly string[]): string[] {
  const kept: string[] = [];
  for (let at = 0; at < rawHeaders.length; at += 2)
    if (rawHeaders[at]!.toLowerCase() !== 'content-type') kept.push(rawHeaders[at]!, rawHeaders[at + 1]!);
  return ['Content-Type', 'text/html; charset=utf-8', ...kept];
}

interface NetFailure {
  code: FailureCode;
  detail: string;
}

/** Chromium's names for what went wrong, in this order: the first that fits. Only our own words are shown. */
const ERROR_PATTERNS: readonly [RegExp, FailureCode, string][] = [
  [/^NAME_|^DNS_|^ICANN_/, 'dns', 'the host name could not be resolved'],
  [/^CERT_|^SSL_|^BAD_SSL|^ECH_/, 'tls', 'the TLS handshake failed'],
  [/^(CONNECTION_TIMED_OUT|TIMED_OUT)$/, 'connect-timeout', 'the connection timed out'],
  [
    /^CONTENT_LENGTH_MISMATCH|^INCOMPLETE_CHUNKED/,
    'truncated',
    'the connection closed before the body was complete',
  ],
  [/^CONTENT_DECODING/, 'bad-encoding', 'the Content-Encoding does not match the body'],
  [
    /^(CONNECTION_RESET|CONNECTION_CLOSED|CONNECTION_ABORTED|EMPTY_RESPONSE|SOCKET_NOT_CONNECTED)$/,
    'reset',
    'the connection broke before the response was complete',
  ],
  [/^(PROXY_|TUNNEL_|SOCKS_|MANDATORY_PROXY)/, 'connect', 'the connection failed'],
  [/^(CONNECTION_|ADDRESS_|INTERNET_|NETWORK_)/, 'connect', 'the connection failed'],
  [/^UNSAFE_PORT$/, 'connect', 'browsers do not connect to this port'],
  [
    /^(INVALID_|HTTP2_|HTTP_|QUIC_|RESPONSE_HEADERS|UNEXPECTED)/,
    'protocol',
    'the response is not valid HTTP',
  ],
  [/^(ABORTED|FAILED|INSUFFICIENT_RESOURCES|OUT_OF_MEMORY)$/, 'browser', 'the browser gave up on the page'],
  [/^(BLOCKED|TOO_MANY_REDIRECTS|UNKNOWN_URL_SCHEME)/, 'protocol', 'the browser rejected the response'],
];

/** What Playwright says when a navigation fails holds `net::ERR_…`; null when it says something else. */
export function failureOfNavigation(error: unknown): NetFailure | null {
  const name = /net::ERR_([A-Z0-9_]{2,64})/.exec(error instanceof Error ? error.message : '')?.[1];
  if (name === undefined) return null;
  for (const [pattern, code, words] of ERROR_PATTERNS)
    if (pattern.test(name)) return { code, detail: `${words} (${name})` };
  return { code: 'protocol', detail: `the browser could not load the page (${name})` };
}

function looksBlocked(url: string, html: string): boolean {
  return detectBlock({ url, status: 200, rawHeaders: [], body: Buffer.from(html), isHtml: true }) !== null;
}
