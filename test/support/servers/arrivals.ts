import type { Server, Socket } from 'node:net';

/** When a request came, as far as a process can tell that may be busy, or held up for seconds. */
export interface Arrival {
  /** When it was looked at. */
  at: number;
  /**
   * It came in no earlier than this: when the server looked around the time before last. What it finds after a look may
   * have come before that one, but not before the one that preceded it: it would have been found then. Who was held up
   * for 20 ms cannot say when in that time a request came, and must not blame anybody for it.
   */
  noEarlierThan: number;
}

const LOOK_MS = 2;

/** Looks around all the time, to say how early what came to a server may have come at least. */
export class Arrivals {
  readonly #waitedSince = new WeakMap<Socket, number>();
  #lookedAt = performance.now();
  #lookedBefore = this.#lookedAt;
  /** Connections are accepted one by one: a new one may have waited, with its request, since there was none. */
  #noneWaitedAt = this.#lookedAt;
  #accepted = 0;

  constructor(server: Server) {
    const timer = setInterval(() => {
      this.#lookedBefore = this.#lookedAt;
      this.#lookedAt = performance.now();
      if (this.#accepted === 0) this.#noneWaitedAt = this.#lookedBefore;
      this.#accepted = 0;
    }, LOOK_MS);
    server.on('connection', (socket: Socket) => {
      this.#accepted++;
      this.#waitedSince.set(socket, this.#noneWaitedAt);
    });
    server.once('close', () => clearInterval(timer));
  }

  /** To be called as soon as a request is seen. */
  note(socket: Socket): Arrival {
    const at = performance.now();
    const noEarlierThan = this.#waitedSince.get(socket) ?? this.#lookedBefore;
    this.#waitedSince.delete(socket);
    return { at, noEarlierThan };
  }
}

/** The most that can have passed between two arrivals: what a sender waited is never more than this. */
export const mostMsBetween = (first: Arrival, last: Arrival): number => last.at - first.noEarlierThan;
