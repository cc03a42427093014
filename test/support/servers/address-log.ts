import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Arrival, Arrivals } from './arrivals.ts';

/** A site that remembers who asked for what, and may have enough of somebody. */
export interface AddressLog {
  url: string;
  port: number;
  requests: ({ address: string; path: string } & Arrival)[];
  /** Addresses that get 403 for everything. */
  banned: Set<string>;
  close(): Promise<void>;
}

export async function openAddressLog(
  options: {
    delayMs?: number;
    answer?: (request: IncomingMessage, response: ServerResponse) => boolean;
  } = {},
): Promise<AddressLog> {
  const requests: AddressLog['requests'] = [];
  const banned = new Set<string>();
  const server = createServer((request, response) => {
    const address = request.socket.remoteAddress ?? '';
    requests.push({ address, path: request.url ?? '', ...arrivals.note(request.socket) });
    setTimeout(() => {
      if (options.answer?.(request, response)) return;
      if (banned.has(address)) response.writeHead(403).end('go away');
      else if (request.url === '/robots.txt') response.writeHead(404).end();
      else response.writeHead(200, { 'content-type': 'text/html' }).end(`<title>${request.url}</title>`);
    }, options.delayMs ?? 0);
  });
  const arrivals = new Arrivals(server);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    port,
    requests,
    banned,
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
