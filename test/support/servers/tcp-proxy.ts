import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

/** Stands between a client and a server, and breaks what passes in the ways in which networks do. */
export interface TcpProxy {
  port: number;
  /** Connections that were made through it. */
  connections(): number;
  /** Breaks all connections, and refuses new ones for so long. */
  cut(ms: number): Promise<void>;
  /** Bytes of all connections are held back, in both directions, for so long or until then; then they go on. */
  freeze(time: number | Promise<void>): Promise<void>;
  /**
   * The next request that contains the text reaches the server, whose answer does not come back: the connection
   * breaks instead. Resolves when that has happened.
   */
  loseReplyTo(text: string): Promise<void>;
  /** The next request that contains the text never arrives: the connection breaks instead. */
  loseRequest(text: string): Promise<void>;
  /**
   * The next request that contains the text is held back with all that follows in its connection, which stays open.
   * `release` lets it go, if anybody is there to get it.
   */
  hold(text: string): Promise<{ release(): void }>;
  close(): Promise<void>;
}

interface Pair {
  client: Socket;
  server: Socket;
  held: Buffer[] | null;
}

type Plan =
  | { kind: 'lose-reply' | 'lose-request'; text: string; done(): void }
  | { kind: 'hold'; text: string; done(pair: Pair): void };

export async function startTcpProxy(target: { port: number; host?: string }): Promise<TcpProxy> {
  const pairs = new Set<Pair>();
  let count = 0;
  let isRefusing = false;
  let plan: Plan | null = null;

  const onRequest = (pair: Pair, bytes: Buffer): void => {
    if (pair.held) {
      pair.held.push(bytes);
      return;
    }
    if (!plan || !bytes.includes(plan.text)) {
      pair.server.write(bytes);
      return;
    }
    const current = plan;
    plan = null;
    if (current.kind === 'hold') {
      pair.held = [bytes];
      current.done(pair);
      return;
    }
    if (current.kind === 'lose-request') {
      breakPair(pair);
      current.done();
      return;
    }
    pair.server.removeAllListeners('data');
    // The first byte of the answer shows that it was done.
    pair.server.once('data', () => {
      breakPair(pair);
      current.done();
    });
    pair.server.write(bytes);
  };
  const server = createServer((client) => {
    count++;
    if (isRefusing) {
      client.on('error', () => {});
      client.resetAndDestroy();
      return;
    }
    const pair: Pair = { client, server: connect(target.port, target.host ?? '127.0.0.1'), held: null };
    pairs.add(pair);
    client.on('data', (bytes) => onRequest(pair, bytes));
    pair.server.on('data', (bytes) => client.write(bytes));
    for (const [one, other] of [
      [client, pair.server],
      [pair.server, client],
    ] as const) {
      one.on('error', () => {});
      one.on('close', () => {
        // A server that still waits for what is held back does not see that its client is gone.
        if (one === client && pair.held) return;
        pairs.delete(pair);
        other.destroy();
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));

  return {
    port: (server.address() as AddressInfo).port,
    connections: () => count,
    async cut(ms) {
      isRefusing = true;
      for (const pair of pairs) breakPair(pair);
      await delay(ms);
      isRefusing = false;
    },
    async freeze(time) {
      const frozen = [...pairs];
      for (const { client, server: remote } of frozen) {
        client.pause();
        remote.pause();
      }
      await (typeof time === 'number' ? delay(time) : time);
      for (const { client, server: remote } of frozen) {
        client.resume();
        remote.resume();
      }
    },
    loseReplyTo: (text) =>
      new Promise((done) => {
        plan = { kind: 'lose-reply', text, done };
      }),
    loseRequest: (text) =>
      new Promise((done) => {
        plan = { kind: 'lose-request', text, done };
      }),
    hold: (text) =>
      new Promise((resolve) => {
        const done = (pair: Pair) =>
          resolve({
            release() {
              for (const bytes of pair.held ?? []) pair.server.write(bytes);
              pair.held = null;
            },
          });
        plan = { kind: 'hold', text, done };
      }),
    async close() {
      for (const pair of pairs) breakPair(pair);
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function breakPair({ client, server }: Pair): void {
  client.resetAndDestroy();
  server.destroy();
}

function delay(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
