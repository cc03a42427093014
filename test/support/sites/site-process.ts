import { fork } from 'node:child_process';
import { type AddressInfo, createServer } from 'node:net';
import { constants, setPriority } from 'node:os';

/**
 * An origin that judges gaps, in a process of its own: it answers every path with the same few bytes, looks
 * at the clock first and makes next to no garbage, so that its own pauses do not make gaps seem shorter.
 * Listens on all loopback addresses.
 */
export interface JudgedRequest {
  host: string;
  path: string;
  /** When it was looked at. */
  at: number;
  /**
   * It came in no earlier than this: when the judge looked around the time before last. What it finds after a look may
   * have come before that one, but not before the one that preceded it: it would have been found then. A judge that
   * was held up for 20 ms cannot say when in that time a request came, and must not blame anybody for it.
   */
  noEarlierThan: number;
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
  let lookedAt = 0;
  let lookedBefore = 0;
  let accepted = 0;
  let noneWaitedAt = 0;
  setInterval(() => {
    lookedBefore = lookedAt;
    lookedAt = performance.now();
    if (accepted === 0) noneWaitedAt = lookedBefore;
    accepted = 0;
  }, 2);
  const server = createServer((socket) => {
    socket.setNoDelay(true);
    // Connections are accepted one by one: a new one may have waited, with its request, since there was none.
    accepted++;
    let waitedSince: number | null = noneWaitedAt;
    socket.on('error', () => socket.destroy());
    socket.on('data', (bytes) => {
      const at = performance.now();
      const text = bytes.toString('latin1');
      const host = text.slice(text.indexOf('host: ') + 6, text.indexOf('\r\n', text.indexOf('host: ')));
      log.push({
        at,
        noEarlierThan: waitedSince ?? lookedBefore,
        host,
        path: text.slice(4, text.indexOf(' ', 4)),
      });
      waitedSince = null;
      if (text.includes('onnection: close')) socket.end(ANSWER);
      else socket.write(ANSWER);
      if (waiting.length === 0) return;
      waiting = waiting.filter(({ count, resolve }) => {
        if (log.length >= count) resolve();
        return log.length < count;
      });
    });
  });
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
