import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

interface Seen {
  path: string;
  /** As on the wire: names in order and case. */
  rawHeaders: string[];
  headers: IncomingMessage['headers'];
}

/** A site whose answers depend on who asks, and which remembers what it saw. */
export interface PickySite {
  url: string;
  seen: Seen[];
  /** Pages that were asked for, without robots.txt. */
  pages(): Seen[];
  close(): Promise<void>;
}

export type Answer = (request: Seen, response: ServerResponse, count: number) => void;

export async function openPickySite(answer: Answer): Promise<PickySite> {
  const seen: Seen[] = [];
  let count = 0;
  const server: Server = createServer((request, response) => {
    const { rawHeaders, headers } = request;
    const entry = { path: request.url ?? '', rawHeaders, headers };
    seen.push(entry);
    if (entry.path === '/robots.txt') response.writeHead(404).end();
    else answer(entry, response, ++count);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen,
    pages: () => seen.filter(({ path }) => path !== '/robots.txt'),
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

const FILLER = '<p>Some words that make this page as long as pages are. '.repeat(60);

export function sendPage(response: ServerResponse, path: string, headers: Record<string, string> = {}): void {
  response.writeHead(200, { 'content-type': 'text/html', ...headers });
  response.end(`<html><head><title>Page ${path}</title></head><body><h1>${path}</h1>${FILLER}</body></html>`);
}

export const CAPTCHA_PAGE =
  '<html><head><title>Just a moment...</title></head><body><script>window._cf_chl_opt={cType:"managed"}</script></body></html>';

export function isBrowserLike({ headers }: Seen): boolean {
  return /^Mozilla\/5\.0 /.test(headers['user-agent'] ?? '');
}
