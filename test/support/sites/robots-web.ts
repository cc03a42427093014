import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

/** Many hosts on one port, by their loopback addresses; each remembers what it was asked for. */
export interface RobotsWeb {
  url(address: string, path?: string): string;
  /** Paths in the order in which they were asked for. */
  asked(address: string): string[];
  /** Times at which the address was asked, in milliseconds. */
  times(address: string): number[];
  close(): Promise<void>;
}

export type Answer = (response: ServerResponse, request: IncomingMessage, web: RobotsWeb) => void;

/** `answers`: by address and path. Pages are there, whatever they are called; a robots.txt that is not named is not. */
export async function openRobotsWeb(answers: Record<string, Answer>): Promise<RobotsWeb> {
  const log: { address: string; path: string; at: number }[] = [];
  const server = createServer((request, response) => {
    const address = request.headers.host!.split(':')[0]!;
    const path = request.url!;
    log.push({ address, path, at: performance.now() });
    const answer = answers[`${address}${path}`] ?? answers[`*${path}`];
    if (answer) answer(response, request, web);
    else if (path === '/robots.txt') response.writeHead(404).end();
    else response.writeHead(200, { 'content-type': 'text/html' }).end(`<title>${path}</title>`);
  });
  server.listen(0, '0.0.0.0');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const web: RobotsWeb = {
    url: (address, path = '') => `http://${address}:${port}${path}`,
    asked: (address) => log.filter((entry) => entry.address === address).map(({ path }) => path),
    times: (address) => log.filter((entry) => entry.address === address).map(({ at }) => at),
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
