import { timingSafeEqual } from 'node:crypto';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { SeineError } from '../core/errors.ts';

export interface ListenAddress {
  host: string;
  port: number;
}

interface HttpServerOptions {
  listen: ListenAddress;
  /** Known to whoever may read the folder. */
  token: string;
  /** Whether work can be done now. */
  isReady(): Promise<boolean>;
  /** Answers of calls with the token, by path; null when there is nothing at it. */
  internal(method: string, path: string): Promise<object | null>;
}

export interface HttpServer {
  url: string;
  close(): Promise<void>;
}

/** A client that sends its request slower than this is cut off. */
const REQUEST_MS = 10_000;
const HEADER_BYTES_MAX = 16_384;
const CONNECTIONS_MAX = 1_000;

/** Health for everyone who can connect; the rest is for this machine, with the token of the folder. */
export async function openHttpServer(options: HttpServerOptions): Promise<HttpServer> {
  const server = createServer(
    { requestTimeout: REQUEST_MS, headersTimeout: REQUEST_MS, maxHeaderSize: HEADER_BYTES_MAX },
    (request, response) => {
      answer(request, options).then(
        ({ status, body }) => send(response, status, body),
        () => send(response, 500, { error: 'internal error' }),
      );
    },
  );
  server.maxConnections = CONNECTIONS_MAX;
  const { host, port } = options.listen;
  await new Promise<void>((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => reject(cannotListen(options.listen, error)));
    server.listen(port, host, resolve);
  });
  const bound = server.address() as AddressInfo;
  const shown = bound.family === 'IPv6' ? `[${bound.address}]` : bound.address;
  return {
    url: `http://${shown}:${bound.port}`,
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

function cannotListen({ host, port }: ListenAddress, error: NodeJS.ErrnoException): SeineError {
  const reason =
    error.code === 'EADDRINUSE' ? 'another program listens there' : (error.code ?? error.message);
  return new SeineError(`cannot listen on ${host}:${port}: ${reason}`, {
    hint: 'choose another address with --listen; port 0 takes a free one',
    cause: error,
  });
}

interface Answer {
  status: number;
  body: object;
}

async function answer(request: IncomingMessage, options: HttpServerOptions): Promise<Answer> {
  const { pathname } = new URL(request.url ?? '/', 'http://seine');
  const method = request.method ?? 'GET';
  if (pathname === '/healthz' || pathname === '/readyz') {
    if (method !== 'GET' && method !== 'HEAD') return { status: 405, body: { error: 'only GET' } };
    if (pathname === '/healthz') return { status: 200, body: { status: 'ok' } };
    const isReady = await options.isReady().catch(() => false);
    return { status: isReady ? 200 : 503, body: { status: isReady ? 'ready' : 'not ready' } };
  }
  const isCommand = isLocal(request) && hasToken(request, options.token);
  const found = isCommand ? await options.internal(method, pathname) : null;
  return found ? { status: 200, body: found } : { status: 404, body: { error: 'nothing here' } };
}

/** Commands of the folder are on this machine, whatever address is listened on. */
function isLocal({ socket }: IncomingMessage): boolean {
  return /^(::ffff:)?127\.|^::1$/.test(socket.remoteAddress ?? '');
}

function hasToken({ headers }: IncomingMessage, token: string): boolean {
  const given = Buffer.from(headers.authorization ?? '');
  const wanted = Buffer.from(`Bearer ${token}`);
  return given.length === wanted.length && timingSafeEqual(given, wanted);
}

function send(response: ServerResponse, status: number, body: object): void {
  const text = `${JSON.stringify(body)}\n`;
  response.writeHead(status, {
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(text),
    'cache-control': 'no-store',
    'x-content-type-options': 'nosniff',
  });
  response.end(response.req.method === 'HEAD' ? undefined : text);
}
