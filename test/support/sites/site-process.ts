import { fork } from 'node:child_process';
import { type AddressInfo, createServer } from 'node:net';
import { constants, setPriority } from 'node:os';
import { type Arrival, Arrivals } from '../servers/arrivals.ts';

/**
 * An origin that judges gaps, in a process of its own: it answers every path with the same few bytes, looks
 * at the clock first and makes next to no garbage, so that its own pauses do not make gaps seem shorter.
 * Listens on all loopback addresses.
 */
export interface JudgedRequest extends Arrival {
  host: string;
  path: string;
}

interface SiteProcess {
  port: number;
  /** Requests so far, in order. */
  log(): Promise<JudgedRequest[]>;
  count(): Promise<number>;
  /** Resolves when so many requests have come in. */
  requests(count: number): Promise<void>;
  close(): Promise<void>;
}

type Asked = { ask: 'log' | 'count' } | { ask: 'requests'; count: number };
type Question = { id: number } & Asked;

const BODY = '<html><body><h1>a page</h1></body></html>';
const ANSWER = Buffer.from(
  `HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: ${BODY.length}\r\n\r\n${BODY}`,
);

async function judge(): Promise<void> {
  const log: JudgedRequest[] = [];
  let waiting: { count: number; resolve: () => void }[] = [];
  const server = createServer((socket) => {
    socket.setNoDelay(true);
    socket.on('error', () => socket.destroy());
    socket.on('data', (bytes) => {
      const arrival = arrivals.note(socket);
      const text = bytes.toString('latin1');
      const host = text.slice(text.indexOf('host: ') + 6, text.indexOf('\r\n', text.indexOf('host: ')));
      log.push({ ...arrival, host, path: text.slice(4, text.indexOf(' ', 4)) });
      if (text.includes('onnection: close')) socket.end(ANSWER);
      else socket.write(ANSWER);
      if (waiting.length === 0) return;
      waiting = waiting.filter(({ count, resolve }) => {
        if (log.length >= count) resolve();
        return log.length < count;
      });
    });
  });
  const arrivals = new Arrivals(server);
  await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve));
  const { port } = server.address() as AddressInfo;
  // Code that runs for the first time is slow, and a late first look makes the first gap seem short:
  // both bursts of new connections and requests on old ones are rehearsed.
  for (let round = 0; round < 40; round++) {
    const fresh = { headers: { connection: 'close' } };
    await Promise.all(
      Array.from({ length: 25 }, async () => (await fetch(`http://127.0.0.1:${port}/`, fresh)).text()),
    );
    await (await fetch(`http://127.0.0.1:${port}/`)).text();
  }
  log.length = 0;
  // What the rehearsal left behind must not be collected in the middle of a measurement.
  globalThis.gc?.();
  try {
    // The judge must not wait for a core either.
    setPriority(constants.priority.PRIORITY_HIGHEST);
  } catch {
    // Only root may; the measurement is then as good as the machine is idle.
  }
  process.on('message', async (question: Question) => {
    if (question.ask === 'requests' && log.length < question.count) {
      await new Promise<void>((resolve) => waiting.push({ count: question.count, resolve }));
    }
    process.send!({ id: question.id, answer: question.ask === 'log' ? log : log.length });
  });
  process.on('disconnect', () => process.exit(0));
  process.send!({ port });
}

if (process.send && process.argv[2] === 'judge') await judge();

export async function startSiteProcess(): Promise<SiteProcess> {
  const child = fork(import.meta.filename, ['judge'], { execArgv: ['--expose-gc'] });
  const port = await new Promise<number>((resolve, reject) => {
    child.once('message', (message: { port: number }) => resolve(message.port));
    child.once('exit', (code) => reject(new Error(`the site ended with code ${code}`)));
  });
  let lastId = 0;
  const waiting = new Map<number, (answer: unknown) => void>();
  child.on('message', ({ id, answer }: { id: number; answer: unknown }) => {
    waiting.get(id)?.(answer);
    waiting.delete(id);
  });
  const ask = (question: Asked) =>
    new Promise<unknown>((resolve) => {
      const id = ++lastId;
      waiting.set(id, resolve);
      child.send({ id, ...question });
    });
  return {
    port,
    log: async () => (await ask({ ask: 'log' })) as JudgedRequest[],
    count: async () => (await ask({ ask: 'count' })) as number,
    requests: async (count) => void (await ask({ ask: 'requests', count })),
    async close() {
      const exited = new Promise((resolve) => child.once('exit', resolve));
      child.disconnect();
      await exited;
    },
  };
}
