import { createHash } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

interface LoggedRequest {
  at: number;
  host: string;
  path: string;
  /** Of the answer, once it was given. */
  status: number;
  bytes: number;
}

export interface LinkedSite {
  url: string;
  port: number;
  pages: number;
  log: LoggedRequest[];
  /** Resolves when so many requests have come in since the start. */
  requests(count: number): Promise<void>;
  bodyOf(index: number): string;
  /** From now on the page has another text, and another ETag where the site has them. */
  change(index: number, text: string): void;
  /** From now on only the home page and robots.txt are answered; whoever asks for another page waits for `release`. */
  hold(): void;
  release(): void;
  close(): Promise<void>;
}

export const pathOf = (index: number) => (index === 0 ? '/' : `/page/${index}.html`);

/** Page n links to 2n+1, 2n+2, its parent, the home page and a few others: every page is reachable, most links repeat. */
function bodyOf(index: number, pages: number, news = ''): string {
  const targets = [
    0,
    2 * index + 1,
    2 * index + 2,
    Math.floor((index - 1) / 2),
    (index * 7_919 + 13) % pages,
    index,
  ];
  const links = targets
    .filter((target) => target >= 0 && target < pages)
    .map((target) => `<li><a href="${pathOf(target)}">page ${target}</a></li>`);
  const text = `Page number ${index} says something of its own. `.repeat(12);
  return `<!doctype html><html><head><title>Page ${index}</title></head><body><h1>Page ${index}</h1><p class="price">${index}.50 EUR</p><ul>${links.join('')}</ul><p>${text}</p>${news}</body></html>`;
}

/** A site of so many pages whose request log is the judge. Listens on all loopback addresses. */
export async function startLinkedSite(options: {
  pages: number;
  robots?: string;
  port?: number;
  delayMs?: number;
  /** Pages have ETags, and a request that knows the present one gets a 304. */
  etags?: boolean;
}): Promise<LinkedSite> {
  const { pages } = options;
  const log: LoggedRequest[] = [];
  const news = new Map<number, string>();
  let waiting: { count: number; resolve: () => void }[] = [];
  let held: (() => void)[] | null = null;
  const server: Server = createServer((request, response) => {
    const logged = { at: performance.now(), host: request.headers.host ?? '', path: request.url ?? '' };
    const entry: LoggedRequest = { ...logged, status: 0, bytes: 0 };
    log.push(entry);
    const respond = (status: number, headers: Record<string, string>, body: string) => {
      entry.status = status;
      entry.bytes = Buffer.byteLength(body);
      response.writeHead(status, headers).end(body);
    };
    waiting = waiting.filter(({ count, resolve }) => {
      if (log.length >= count) resolve();
      return log.length < count;
    });
    const index =
      request.url === '/' ? 0 : Number(/^\/page\/(\d+)\.html$/.exec(request.url ?? '')?.[1] ?? Number.NaN);
    const answer = () => {
      if (request.url === '/robots.txt') {
        respond(200, { 'content-type': 'text/plain' }, options.robots ?? '');
      } else if (Number.isInteger(index) && index < pages) {
        const body = bodyOf(index, pages, news.get(index));
        const etag = `"${createHash('md5').update(body).digest('hex')}"`;
        const headers = { 'content-type': 'text/html; charset=utf-8', ...(options.etags ? { etag } : {}) };
        if (options.etags && request.headers['if-none-match'] === etag) respond(304, { etag }, '');
        else respond(200, headers, body);
      } else {
        respond(404, {}, 'no such page');
      }
    };
    if (held && index > 0) held.push(answer);
    else if (options.delayMs) setTimeout(answer, options.delayMs);
    else answer();
  });
  await new Promise<void>((resolve) => server.listen(options.port ?? 0, '0.0.0.0', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/`,
    port,
    pages,
    log,
    requests: (count) =>
      new Promise((resolve) => (log.length >= count ? resolve() : waiting.push({ count, resolve }))),
    bodyOf: (index) => bodyOf(index, pages, news.get(index)),
    change: (index, text) => void news.set(index, text),
    hold() {
      held ??= [];
    },
    release() {
      for (const answer of held ?? []) answer();
      held = null;
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** How often each path was asked for. */
export function countByPath(log: readonly LoggedRequest[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const { path } of log) counts.set(path, (counts.get(path) ?? 0) + 1);
  return counts;
}
