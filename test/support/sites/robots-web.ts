import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type Arrival, Arrivals, mostMsBetween } from '../servers/arrivals.ts';

/** Many hosts on one port, by their loopback addresses; each remembers what it was asked for. */
export interface RobotsWeb {
  url(address: string, path?: string): string;
  /** Paths in the order in which they were asked for. */
  asked(address: string): string[];
  /** The most that can have passed from one request of an address to its last, in milliseconds. */
  lastedMs(address: string, from?: number): number;
  close(): Promise<void>;
}

export type Answer = (response: ServerResponse, request: IncomingMessage, web: RobotsWeb) => void;

/** `answers`: by address and path. Pages are there, whatever they are called; a robots.txt that is not named is not. */
export async function openRobotsWeb(answers: Record<string, Answer>): Promise<RobotsWeb> {
  const log: { address: string; path: string; arrival: Arrival }[] = [];
  const server = createServer((request, response) => {
    const arrival = arrivals.note(request.socket);
    const address = request.headers.host!.split(':')[0]!;
    const path = request.url!;
    log.push({ address, path, arrival });
    const answer = answers[`${address}${path}`] ?? answers[`*${path}`];
    if (answer) answer(response, request, web);
    else if (path === '/robots.txt') response.writeHead(404).end();
    else response.writeHead(200, { 'content-type': 'text/html' }).end(`<title>${path}</title>`);
  });
  const arrivals = new Arrivals(server);
  server.listen(0, '0.0.0.0');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const web: RobotsWeb = {
    url: (address, path = '') => `http://${address}:${port}${path}`,
    asked: (address) => log.filter((entry) => entry.address === address).map(({ path }) => path),
    lastedMs(address, from = 0) {
      const own = log.filter((entry) => entry.address === address);
      return mostMsBetween(own[from]!.arrival, own.at(-1)!.arrival);
    },
    async close() {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
  return web;
}

export const sendTo =
  (address: string, path = '/robots.txt'): Answer =>
  (response, _, web) =>
    response.writeHead(301, { location: web.url(address, path) }).end();

export const text =
  (body: string): Answer =>
  (response) =>
    response.writeHead(200, { 'content-type': 'text/plain' }).end(body);

export const status =
  (code: number): Answer =>
  (response) =>
    response.writeHead(code).end();
