import { randomBytes } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { CallbackSettings } from '../../ports/fetcher.ts';

/** Answer of a batch API: some fifty large pages, as text in JSON. */
export const API_ANSWER_BYTES_MAX = 64 * 1024 * 1024;
/** Answers that an API sends by itself and that are held at once. */
const API_CALLBACKS_AT_ONCE = 4;
/** Answers that may be on their way. */
const API_CALLBACK_CONNECTIONS_MAX = 64;

/** Takes what a remote scraping API sends by itself. */
export interface CallbackReceiver {
  /** A URL that cannot be guessed, good until `end`. `onBody` says whether it was meant for it. */
  expect(onBody: (value: unknown) => boolean): { url: string; end(): void };
  close(): Promise<void>;
}

/** Each worker has a port of its own: the first that is free, from the given one on. */
const PORTS_TRIED = 64;
const HEADERS_MS = 10_000;
const BODY_MS = 60_000;
const TOKEN = /\/([\w-]{32})$/;

export async function openCallbackReceiver(settings: CallbackSettings): Promise<CallbackReceiver> {
  const expected = new Map<string, (value: unknown) => boolean>();
  let bodies = 0;

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const end = (status: number) => {
      // Whatever else was on its way is not read.
      response.writeHead(status, { connection: 'close' }).end(() => request.destroy());
    };
    const token = TOKEN.exec((request.url ?? '').split('?')[0]!)?.[1];
    const onBody = token === undefined ? undefined : expected.get(token);
    if (!onBody) return end(404);
    if (request.method !== 'POST' && request.method !== 'PUT') return end(405);
    if (Number(request.headers['content-length'] ?? 0) > API_ANSWER_BYTES_MAX) return end(413);
    // The pages are asked for, should it not try again.
    if (bodies >= API_CALLBACKS_AT_ONCE) return end(503);
    bodies++;
    try {
      const text = await readBody(request);
      if (text === null) return end(413);
      end(onBody(JSON.parse(text)) ? 204 : 404);
    } catch (error) {
      end(error instanceof SyntaxError ? 400 : 408);
    } finally {
      bodies--;
    }
  }

  const server = createServer(
    { headersTimeout: HEADERS_MS, requestTimeout: BODY_MS, maxHeaderSize: 16 * 1024 },
    (request, response) => {
      request.on('error', () => {});
      response.on('error', () => {});
      void answer(request, response);
    },
  );
  server.maxConnections = API_CALLBACK_CONNECTIONS_MAX;
  server.on('clientError', (_, socket) => socket.destroy());
  const port = await listen(server, settings);
  const base = settings.url.replaceAll('{port}', String(port)).replace(/\/+$/, '');
  return {
    expect(onBody) {
      const token = randomBytes(24).toString('base64url');
      expected.set(token, onBody);
      return { url: `${base}/${token}`, end: () => void expected.delete(token) };
    },
    async close() {
      expected.clear();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function listen(server: Server, { host, port }: CallbackSettings): Promise<number> {
  for (let tried = 0; ; tried++) {
    try {
      await new Promise<void>((resolve, reject) => {
        server.once('error', reject);
        server.listen(port === 0 ? 0 : port + tried, host, () => {
          server.off('error', reject);
          resolve();
        });
      });
      // It must not keep a worker alive that has nothing else to do.
      server.unref();
      return (server.address() as AddressInfo).port;
    } catch (error) {
      const isTaken = (error as NodeJS.ErrnoException).code === 'EADDRINUSE';
      if (!isTaken || tried + 1 >= PORTS_TRIED || port + tried >= 65_535) throw error;
    }
  }
}

/** Null when it is too large. */
async function readBody(request: IncomingMessage): Promise<string | null> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  for await (const piece of request as AsyncIterable<Buffer>) {
    bytes += piece.length;
    if (bytes > API_ANSWER_BYTES_MAX) return null;
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString('utf8');
}
