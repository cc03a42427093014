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
  places: BoundedMap<string, Place>;
}

/** A host and port that connections under a ticket go to. */
interface Place {
  sockets: Set<net.Socket>;
  /** Bytes that came over those that are closed. */
  bytesOfClosed: number;
  /** How many may be open at once, and how many are being made. */
  most: number;
  dialling: number;
  /** Those that wait until another one is closed. */
  waiting: Set<() => void>;
}

/** Hosts that are remembered under one ticket. */
const HOSTS_MAX = 1_000;
/** The library greets at once: it is in the same process. */
const GREETING_MS = 5_000;
/** The library takes whichever comes first, a connection that is free again or a new one: so a new one can wait. */
const WAIT_MS = 10_000;

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
      places: new BoundedMap(HOSTS_MAX),
    });
    return { ticket, url: `socks5h://${ticket}:${this.#password}@127.0.0.1:${this.#server.port}` };
  }

  /**
   * Allows `most` connections to a host under the ticket from now on: the library opens one more when none is free at
   * that moment. Counts what comes from the host, over all of them.
   */
  open(ticket: string, host: string, port: number, most: number): () => number {
    const known = this.#tickets.get(ticket);
    const place = known && placeOf(known, host, port);
    if (!place) return () => 0;
    place.most = most;
    const total = () => {
      let bytes = place.bytesOfClosed;
      for (const socket of place.sockets) bytes += socket.bytesRead;
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
      this.#dialWhenAllowed(socket, target),
    );
  }

  #dialWhenAllowed(socket: net.Socket, target: { user: string; host: string; port: number }): void {
    const ticket = this.#tickets.get(target.user)!;
    const place = placeOf(ticket, target.host, target.port);
    const dial = () => {
      clearTimeout(timer);
      place.waiting.delete(dial);
      if (!socket.destroyed) this.#dial(socket, ticket, place, target);
    };
    const timer = setTimeout(dial, WAIT_MS);
    socket.once('close', dial);
    place.waiting.add(dial);
    dialNext(place);
  }

  #dial(
    socket: net.Socket,
    ticket: Ticket,
    place: Place,
    { host, port }: { host: string; port: number },
  ): void {
    const target = {
      hostname: host,
      port,
      secure: false,
      isAllowed: ticket.isAllowed,
      tlsSession: undefined,
    };
    place.dialling++;
    let isDialling = true;
    const ended = () => {
      if (!isDialling) return;
      isDialling = false;
      place.dialling--;
      dialNext(place);
    };
    const dialled = (error: Error | null, upstream: net.Socket | null) => {
      if (upstream === null) this.#refuse(socket, ticket, target, error);
      else if (socket.destroyed) upstream.destroy();
      else {
        keepCount(upstream, place);
        this.#join(socket, upstream);
      }
      ended();
    };
    const dial =
      ticket.proxy === null
        ? new Dial(target, this.#names, dialled)
        : new ProxyDial(target, ticket.proxy, this.#names, dialled);
    socket.once('close', () => {
      dial.cancel();
      ended();
    });
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

function placeOf({ places }: Ticket, host: string, port: number): Place {
  const key = `${host} ${port}`;
  const known = places.get(key) ?? {
    sockets: new Set(),
    bytesOfClosed: 0,
    most: Number.POSITIVE_INFINITY,
    dialling: 0,
    waiting: new Set(),
  };
  places.set(key, known);
  return known;
}

function dialNext(place: Place): void {
  for (const dial of place.waiting) {
    if (place.sockets.size + place.dialling >= place.most) return;
    dial();
  }
}

function keepCount(socket: net.Socket, place: Place): void {
  place.sockets.add(socket);
  socket.once('close', () => {
    place.sockets.delete(socket);
    place.bytesOfClosed += socket.bytesRead;
    dialNext(place);
  });
}
