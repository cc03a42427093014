import { randomBytes, timingSafeEqual } from 'node:crypto';
import http from 'node:http';
import type net from 'node:net';
import type { Duplex } from 'node:stream';
import { LIMITS } from '../../../core/limits.ts';
import { DialError, literalOf } from '../../network/dial.ts';
import type { DnsCache } from '../../network/dns-cache.ts';
import { joinSockets, LoopbackServer } from '../../network/loopback-server.ts';
import { forwardPlain } from './forward-plain.ts';
import { ProxyTicket, type TicketRoute } from './proxy-ticket.ts';

/** As in browsers. */
const BROWSER_SOCKETS_PER_HOST = 6;

/**
 * An HTTP proxy of our own on the loopback address, which carries everything that the browser sends and receives: it
 * resolves names, checks addresses and dials as the HTTP fetcher does. Only who has a ticket and the password of this
 * process may use it; the browser gets them with the first question of each tab.
 */
export class FilterProxy {
  readonly #names: DnsCache;
  readonly #password = randomBytes(24).toString('hex');
  readonly #tickets = new Map<string, { ticket: ProxyTicket; agent: http.Agent }>();
  readonly #server: LoopbackServer;
  #issued = 0;

  private constructor(names: DnsCache) {
    this.#names = names;
    const server = http.createServer({ maxHeaderSize: LIMITS.headerBytesMax, keepAliveTimeout: 60_000 });
    this.#server = new LoopbackServer(server);
    server.on('connection', (socket) => this.#server.keep(socket));
    server.on('clientError', (_error, socket) => socket.destroy());
    server.on('request', (request, response) => this.#request(request, response));
    server.on('connect', (request, socket, head) => this.#connect(request, socket, head));
  }

  static async open(names: DnsCache): Promise<FilterProxy> {
    const proxy = new FilterProxy(names);
    await proxy.#server.listen();
    return proxy;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#server.port}`;
  }

  issue(route: TicketRoute): ProxyTicket {
    const ticket = new ProxyTicket(`t${++this.#issued}`, route, this.#names);
    this.#tickets.set(ticket.name, { ticket, agent: agentOf(ticket) });
    return ticket;
  }

  credentialsOf(ticket: ProxyTicket): { username: string; password: string } {
    return { username: ticket.name, password: this.#password };
  }

  /** No further connection is made under it, and those there are end. */
  revoke(ticket: ProxyTicket): void {
    this.#tickets.get(ticket.name)?.agent.destroy();
    this.#tickets.delete(ticket.name);
    ticket.close();
  }

  async close(): Promise<void> {
    for (const { ticket } of this.#tickets.values()) this.revoke(ticket);
    await this.#server.close();
  }

  #entryOf(request: http.IncomingMessage): { ticket: ProxyTicket; agent: http.Agent } | null {
    const [scheme, encoded = ''] = (request.headers['proxy-authorization'] ?? '').split(' ');
    if (scheme?.toLowerCase() !== 'basic') return null;
    const text = Buffer.from(encoded, 'base64').toString('latin1');
    const colon = text.indexOf(':');
    const given = Buffer.from(text.slice(colon + 1));
    const wanted = Buffer.from(this.#password);
    if (given.length !== wanted.length || !timingSafeEqual(given, wanted)) return null;
    return this.#tickets.get(text.slice(0, colon)) ?? null;
  }

  #request(request: http.IncomingMessage, response: http.ServerResponse): void {
    request.on('error', () => response.destroy());
    response.on('error', () => request.destroy());
    const entry = this.#entryOf(request);
    if (entry === null) {
      response.writeHead(407, { 'Proxy-Authenticate': 'Basic realm="seine"', 'Content-Length': '0' }).end();
      return;
    }
    const url = URL.parse(request.url ?? '');
    if (url === null || url.protocol !== 'http:') response.writeHead(400, { 'Content-Length': '0' }).end();
    else forwardPlain(request, response, url, entry.ticket, entry.agent);
  }

  #connect(request: http.IncomingMessage, socket: Duplex, head: Buffer): void {
    const entry = this.#entryOf(request);
    if (entry === null) {
      const challenge = 'Proxy-Authenticate: Basic realm="seine"\r\nContent-Length: 0\r\nConnection: close';
      socket.end(`HTTP/1.1 407 Proxy Authentication Required\r\n${challenge}\r\n\r\n`);
      return;
    }
    const place = URL.parse(`http://${request.url ?? ''}`);
    const port = Number(/:(\d{1,5})$/.exec(request.url ?? '')?.[1] ?? 0);
    if (place === null || port < 1 || port > 65_535) {
      socket.destroy();
      return;
    }
    const cancel = entry.ticket.dial(
      literalOf(place.hostname) ?? place.hostname,
      port,
      (_error, upstream) => {
        if (upstream === null) socket.end('HTTP/1.1 502 Bad Gateway\r\nContent-Length: 0\r\n\r\n');
        else if (socket.destroyed) upstream.destroy();
        else openTunnel(socket as net.Socket, upstream, head);
      },
    );
    socket.once('close', cancel);
  }
}

function openTunnel(socket: net.Socket, upstream: net.Socket, head: Buffer): void {
  socket.write('HTTP/1.1 200 Connection established\r\n\r\n');
  if (head.length > 0) upstream.write(head);
  joinSockets(socket, upstream);
}

/** Connections for plain http that stay open between requests of the same tab. */
function agentOf(ticket: ProxyTicket): http.Agent {
  const agent = new http.Agent({
    keepAlive: true,
    maxSockets: BROWSER_SOCKETS_PER_HOST,
    timeout: 60_000,
  });
  agent.createConnection = (options, callback) => {
    const { host, port } = options as { host: string; port: number | string };
    ticket.dial(literalOf(host) ?? host, Number(port), (error, socket) => {
      if (socket === null)
        callback?.(error ?? new DialError('connect', 'the connection failed'), null as never);
      else callback?.(null, socket);
    });
    return null;
  };
  return agent;
}
