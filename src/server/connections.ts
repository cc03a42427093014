import type { Server as HttpServer } from 'node:http';
import type { Socket } from 'node:net';

/** An open connection takes about 20 KB and a file. */
export const CONNECTIONS_MAX = 4_000;
/** From this share on, answers close their connections, so that few are idle when it gets full. */
const CROWDED_SHARE = 0.75;

interface Address {
  /** Of all its connections. */
  open: number;
  /** Without a request under way, the longest idle first: also those that never sent a whole one. */
  idle: Set<Socket>;
}

interface Connection {
  address: Address;
  underWay: number;
}

/**
 * The connections of an HTTP server. When there is no room for one more, an idle one is closed for it: of the address that has
 * the most, and there the one that has been idle for the longest. So whoever holds thousands of them keeps nobody out. How many
 * requests may be under way is limited elsewhere (`OpenRequests`), so that there are always idle ones.
 */
export class Connections {
  readonly #max: number;
  readonly #addresses = new Map<string, Address>();
  readonly #known = new Map<Socket, Connection>();

  constructor(max = CONNECTIONS_MAX) {
    this.#max = max;
  }

  get isCrowded(): boolean {
    return this.#known.size > this.#max * CROWDED_SHARE;
  }

  watch(server: HttpServer): void {
    server.on('connection', (socket) => this.#add(socket));
    server.on('request', ({ socket }, response) => {
      this.#begin(socket);
      response.once('close', () => this.#end(socket));
    });
  }

  #add(socket: Socket): void {
    if (this.#known.size >= this.#max) {
      const oldest = this.#longestIdle();
      if (oldest) this.#close(oldest);
      else {
        socket.destroy();
        return;
      }
    }
    const name = networkOf(socket.remoteAddress ?? '');
    const address = this.#addresses.get(name) ?? { open: 0, idle: new Set() };
    this.#addresses.set(name, address);
    address.open++;
    address.idle.add(socket);
    this.#known.set(socket, { address, underWay: 0 });
    socket.once('close', () => {
      this.#forget(socket);
      if (address.open === 0 && this.#addresses.get(name) === address) this.#addresses.delete(name);
    });
  }

  #begin(socket: Socket): void {
    const connection = this.#known.get(socket);
    if (!connection) return;
    connection.underWay++;
    connection.address.idle.delete(socket);
  }

  #end(socket: Socket): void {
    const connection = this.#known.get(socket);
    if (connection && --connection.underWay === 0) connection.address.idle.add(socket);
  }

  #longestIdle(): Socket | null {
    let largest: Address | null = null;
    for (const address of this.#addresses.values())
      if (address.idle.size > 0 && address.open > (largest?.open ?? 0)) largest = address;
    const [socket] = largest?.idle ?? [];
    return socket ?? null;
  }

  #close(socket: Socket): void {
    // At once: its place is taken before it has told that it is closed.
    this.#forget(socket);
    socket.destroy();
  }

  #forget(socket: Socket): void {
    const connection = this.#known.get(socket);
    if (!connection) return;
    this.#known.delete(socket);
    connection.address.open--;
    connection.address.idle.delete(socket);
  }
}

/** Whoever has one address of IPv6 has all that begin with the same 64 bits. */
export function networkOf(address: string): string {
  const [, inside] = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(address) ?? [];
  if (inside !== undefined) return inside;
  if (!address.includes(':')) return address;
  const [head = '', tail] = address.toLowerCase().split('%')[0]!.split('::');
  const groups = head === '' ? [] : head.split(':');
  const last = tail === undefined || tail === '' ? [] : tail.split(':');
  const zeros = tail === undefined ? 0 : Math.max(0, 8 - groups.length - last.length);
  return [...groups, ...Array<string>(zeros).fill('0'), ...last].slice(0, 4).join(':');
}
