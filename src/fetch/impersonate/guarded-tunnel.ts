import { randomBytes } from 'node:crypto';
import net from 'node:net';
import { BoundedMap } from '../../core/lru.ts';
import { Dial, DialError, type DialTarget } from '../network/dial.ts';
import type { DnsCache } from '../network/dns-cache.ts';
import { joinSockets, LoopbackServer } from '../network/loopback-server.ts';
import { type DialProxy, ProxyDial } from '../network/proxy-dial.ts';
import { SocksGreeting } from './socks-greeting.ts';

/**
 * A SOCKS proxy of our own on the loopback address, for libraries that connect by themselves: they give it names, and it
 * resolves, checks and dials as the HTTP fetcher does. What it refuses is not reached, whatever the library thinks of
 * the name. Only who has the password of this process may use it.
 */

/** What connections under one ticket may reach, and through what. */
interface TunnelRoute {
  isAllowed: DialTarget['isAllowed'];
  proxy: DialProxy | null;
}

interface Ticket extends TunnelRoute {
  /** By host and port: why the last connection was not made. */
  failures: BoundedMap<string, { error: DialError; at: number }>;
  /** By host and port. */
  received: BoundedMap<string, Received>;
}

/** What came from a host, as it was sent. */
interface Received {
  sockets: Set<net.Socket>;
  ofClosed: number;
}

/** Hosts that are remembered under one ticket. */
const HOSTS_MAX = 1_000;
/** The library greets at once: it is in the same process. */
const GREETING_MS = 5_000;

export class GuardedTunnel {
  readonly #names: DnsCache;
  readonly #password = randomBytes(24).toString('hex');
  readonly #tickets = new Map<string, Ticket>();
  readonly #server: LoopbackServer;
  #issued = 0;

  private constructor(names: DnsCache) {
    this.#names = names;
    this.#server = new LoopbackServer(net.createServer({ noDelay: true }, (socket) => this.#greet(socket)));
  }

  static async open(names: DnsCache): Promise<GuardedTunnel> {
    const tunnel = new GuardedTunnel(names);
    await tunnel.#server.listen();
    return tunnel;
  }

  /** A name for a route, and the URL by which a library uses it. */
  ticketFor(route: TunnelRoute): { ticket: string; url: string } {
    const ticket = `t${++this.#issued}`;
    this.#tickets.set(ticket, {
      ...route,
      failures: new BoundedMap(HOSTS_MAX),
      received: new BoundedMap(HOSTS_MAX),
    });
    return { ticket, url: `socks5h://${ticket}:${this.#password}@127.0.0.1:${this.#server.port}` };
  }

  /** Counts what comes from a host from now on, over all connections under the ticket. */
  countFrom(ticket: string, host: string, port: number): () => number {
    const known = this.#tickets.get(ticket);
    const received = known && receivedOf(known, `${host} ${port}`);
    if (!received) return () => 0;
    const total = () => {
      let bytes = received.ofClosed;
      for (const socket of received.sockets) bytes += socket.bytesRead;
      return bytes;
    };
    const before = total();
    return () => total() - before;
  }

  /** No further connection is made under it. */
  forget(ticket: string): void {
    this.#tickets.delete(ticket);
  }

  /** Why a connection that was wanted after `since` was not made; null when it was. */
  failureOf(ticket: string, host: string, port: number, since: number): DialError | null {
    const failure = this.#tickets.get(ticket)?.failures.get(`${host} ${port}`);
    return failure && failure.at >= since ? failure.error : null;
  }

  close(): Promise<void> {
    return this.#server.close();
  }

  #greet(socket: net.Socket): void {
    this.#server.keep(socket);
    socket.setTimeout(GREETING_MS, () => socket.destroy());
    const greeting = new SocksGreeting(
      (user, password) => password === this.#password && this.#tickets.has(user),
    );
    socket.on('data', function take(bytes) {
      const { answer, target } = greeting.take(bytes);
      if (answer === null) socket.destroy();
      else if (answer.length > 0) socket.write(answer);
      if (target === null) return;
      socket.off('data', take);
      socket.pause();
      socket.setTimeout(0);
      socket.emit('wanted', target);
    });
    socket.once('wanted', (target: { user: string; host: string; port: number }) =>
      this.#dial(socket, target),
    );
  }

  #dial(socket: net.Socket, { user, host, port }: { user: string; host: string; port: number }): void {
    const ticket = this.#tickets.get(user)!;
    const target = {
      hostname: host,
      port,
      secure: false,
      isAllowed: ticket.isAllowed,
      tlsSession: undefined,
    };
    const dialled = (error: Error | null, upstream: net.Socket | null) => {
      if (upstream === null) this.#refuse(socket, ticket, target, error);
      else if (socket.destroyed) upstream.destroy();
      else {
        count(upstream, receivedOf(ticket, `${host} ${port}`));
        this.#join(socket, upstream);
      }
    };
    const dial =
      ticket.proxy === null
        ? new Dial(target, this.#names, dialled)
        : new ProxyDial(target, ticket.proxy, this.#names, dialled);
    socket.once('close', () => dial.cancel());
  }

  #refuse(socket: net.Socket, ticket: Ticket, { hostname, port }: DialTarget, error: Error | null): void {
    const failure = error instanceof DialError ? error : new DialError('connect', 'the connection failed');
    ticket.failures.set(`${hostname} ${port}`, { error: failure, at: performance.now() });
    socket.end(SocksGreeting.REFUSED);
  }

  #join(socket: net.Socket, upstream: net.Socket): void {
    this.#server.keep(upstream);
    socket.write(SocksGreeting.CONNECTED);
    joinSockets(socket, upstream);
    socket.resume();
  }
}

function receivedOf({ received }: Ticket, place: string): Received {
  const known = received.get(place) ?? { sockets: new Set(), ofClosed: 0 };
  received.set(place, known);
  return known;
}

function count(socket: net.Socket, received: Received): void {
  received.sockets.add(socket);
  socket.once('close', () => {
    received.sockets.delete(socket);
    received.ofClosed += socket.bytesRead;
  });
}
