import { createHash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';
import { isLoggedIn, LOGIN_PATH, logIn, ORDERS_PATH } from './account.ts';
import type { Catalogue } from './catalogue.ts';
import type { Oddities } from './oddities.ts';
import { plainPage } from './pages.ts';
import { type Content, createContent } from './site-content.ts';

interface Served extends Content {
  etag: string;
  gzip: Buffer | null;
}

interface Answer {
  status: number;
  headers: Record<string, string>;
  served: Served;
}

const GZIP_BYTES_MIN = 256;

function serve(content: Content): Served {
  const etag = `"${createHash('sha1').update(content.body).digest('hex').slice(0, 16)}"`;
  const textual = !content.type.startsWith('image/png');
  const gzip = textual && content.body.length >= GZIP_BYTES_MIN ? gzipSync(content.body) : null;
  return { ...content, etag, gzip };
}

function acceptsGzip(request: IncomingMessage): boolean {
  return /\bgzip\b(?!\s*;\s*q=0(\.0*)?\s*(,|$))/i.test(String(request.headers['accept-encoding'] ?? ''));
}

function matchesEtag(request: IncomingMessage, etag: string): boolean {
  const wanted = request.headers['if-none-match'];
  if (wanted === undefined) return false;
  return wanted.split(',').some((one) => one.trim() === '*' || one.trim().replace(/^W\//, '') === etag);
}

export function sendAnswer(request: IncomingMessage, response: ServerResponse, answer: Answer): void {
  const { served, status } = answer;
  const headers: Record<string, string> = {
    Server: 'harbour-and-pine',
    Vary: 'Accept-Encoding',
    ...answer.headers,
  };
  if (status === 200 || status === 304) headers.ETag = served.etag;
  if (status === 304) {
    response.writeHead(304, headers).end();
    return;
  }
  const zipped = served.gzip !== null && acceptsGzip(request) ? served.gzip : null;
  if (zipped !== null) headers['Content-Encoding'] = 'gzip';
  const body = zipped ?? served.body;
  headers['Content-Type'] = served.type;
  headers['Content-Length'] = String(body.length);
  response.writeHead(status, headers).end(request.method === 'HEAD' ? undefined : body);
}

/** Decides each answer; remembers which flaky and throttled pages have refused once. */
export function createAnswers(
  catalogue: Catalogue,
  oddities: Oddities,
  place: { origin: string; isScripted: boolean },
) {
  const content = createContent(catalogue, oddities, place);
  const cache = new Map<string, Served>();
  const refused = new Set<string>();
  const page = (title: string, words: string): Served =>
    serve({ type: 'text/html; charset=utf-8', body: Buffer.from(plainPage(catalogue, title, words)) });
  const trouble = page('One moment', 'Something went wrong here. Please try again.');
  const missing = page('Not found', 'This page has moved on, or never was.');
  const moved = page('Moved', 'This page lives elsewhere now.');

  const refusal = (path: string): Answer | null => {
    const status = oddities.flaky.get(path) ?? (oddities.throttled.has(path) ? 429 : null);
    if (status === null || refused.has(path)) return null;
    refused.add(path);
    return { status, headers: status === 429 ? { 'Retry-After': '1' } : {}, served: trouble };
  };
  const lookUp = (path: string): Served | null => {
    // `/cart?sku=...` comes from the form; every other query must be one that is linked.
    const key = path.startsWith('/cart?') ? '/cart' : path;
    const known = cache.get(key);
    if (known !== undefined) return known;
    const make = content.get(key);
    if (make === undefined) return null;
    const served = serve(make());
    cache.set(key, served);
    return served;
  };
  const decide = (request: IncomingMessage): Answer => {
    const path = request.url ?? '/';
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      return { status: 405, headers: { Allow: 'GET, HEAD' }, served: trouble };
    }
    if (path === ORDERS_PATH && !isLoggedIn(request)) {
      return { status: 302, headers: { Location: LOGIN_PATH }, served: moved };
    }
    const redirect = oddities.redirects.get(path);
    if (redirect !== undefined) {
      return { status: redirect.status, headers: { Location: redirect.to }, served: moved };
    }
    const no = refusal(path);
    if (no !== null) return no;
    const served = lookUp(path);
    if (served === null) return { status: 404, headers: {}, served: missing };
    return { status: matchesEtag(request, served.etag) ? 304 : 200, headers: {}, served };
  };
  return (request: IncomingMessage): Answer | Promise<Answer> => {
    if (request.method !== 'POST' || request.url !== LOGIN_PATH) return decide(request);
    return logIn(request).then((headers) => ({ status: 303, headers, served: moved }));
  };
}
