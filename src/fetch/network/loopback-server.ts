import type net from 'node:net';
import type { Duplex } from 'node:stream';

/** A server for this process alone: on the loopback address, at a free port. */
export class LoopbackServer {
  readonly #server: net.Server;
  readonly #sockets = new Set<Duplex>();

  constructor(server: net.Server) {
    this.#server = server;
  }

  async listen(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      this.#server.once('error', reject);
      this.#server.listen(0, '127.0.0.1', resolve);
    });
    // It must not keep a worker alive that has nothing else to do.
    this.#server.unref();
  }

  get port(): number {
    return (this.#server.address() as net.AddressInfo).port;
  }

  /** Remembers a socket, to destroy it when the server closes. */
  keep(socket: Duplex): void {
    this.#sockets.add(socket);
    socket.once('close', () => this.#sockets.delete(socket));
    socket.on('error', () => socket.destroy());
  }

  async close(): Promise<void> {
    for (const socket of this.#sockets) socket.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

/** An end is passed on as an end, and a reset as a reset: one is a complete answer, the other is not. */
export function joinSockets(socket: net.Socket, upstream: net.Socket): void {
  upstream.on('error', () => socket.resetAndDestroy());
  socket.on('error', () => upstream.destroy());
  upstream.once('close', () => socket.end());
  socket.once('close', () => upstream.destroy());
  upstream.pipe(socket);
  socket.pipe(upstream);
}
