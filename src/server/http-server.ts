import { STATUS_CODES } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import type { Readable } from 'node:stream';
import Fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from 'fastify';
import { SeineError, StorageFullError } from '../core/errors.ts';
import { cannotListen, type ListenAddress } from '../network/listen-address.ts';
import { METRICS_TYPE, metricsText } from '../observe/metrics/text-format.ts';
import { firecrawlRoutes } from './api/firecrawl/routes.ts';
import { givenKey } from './api/keys/key-access.ts';
import { isLoopback, isOfAnotherUser, isOwnPage, isSameOrigin } from './api/keys/local-access.ts';
import { describeApi, docsPage } from './api/openapi.ts';
import type { AccessControl, ApiContext, Caller, RoutePlugin } from './api/requests/access.ts';
import { isAdmin, requireScope } from './api/requests/callers.ts';
import { decodedBody } from './api/requests/decoded-body.ts';
import { idempotency } from './api/requests/idempotency.ts';
import { countRequests, OpenRequests } from './api/requests/open-requests.ts';
import { Problem, type ProblemCode } from './api/requests/problems.ts';
import { Bodies } from './api/requests/read-body.ts';
import { CONNECTIONS_MAX, Connections } from './connections.ts';
import { addDashboardFiles } from './dashboard/dashboard-files.ts';
import { addLogin } from './dashboard/login.ts';
import { mcpRoutes } from './mcp/mcp-routes.ts';

interface HttpServerOptions {
  listen: ListenAddress;
  access: AccessControl;
  /** Whether a request has the token, which is known to whoever may read the folder. */
  hasToken(headers: FastifyRequest['headers']): boolean;
  /** What answers below `/api/v1`, and with what. */
  routes: readonly RoutePlugin[];
  context: ApiContext;
  onError(error: unknown): void;
}

export interface HttpServer {
  url: string;
  app: FastifyInstance;
  close(): Promise<void>;
}

declare module 'fastify' {
  interface FastifyRequest {
    /** Who sent it; set for everything below `/api/v1`. */
    caller: Caller;
  }
}

/** A client that sends the headers of its request slower than this is cut off. Bodies have limits of their own. */
const HEADERS_MS = 10_000;
const HEADER_BYTES_MAX = 16_384;
const KEEP_ALIVE_MS = 60_000;
/** A connection on which nothing moved for so long is closed: longer than any call waits. */
const SILENT_MS = 600_000;
/** Half of the connections, so that the others are idle and can be closed for those that come. */
const REQUESTS_MAX = CONNECTIONS_MAX / 2;
const REQUESTS_OF_KEY_MAX = REQUESTS_MAX / 4;
const API_PREFIX = '/api/v1';
const FIRECRAWL_PREFIX = '/v2';

/** Health for everyone who can connect; the API for callers with a key, or on this machine; the rest for this machine, with the token of the folder. */
export async function openHttpServer(options: HttpServerOptions): Promise<HttpServer> {
  const app = buildHttpServer(options);
  const { host, port } = options.listen;
  try {
    await app.listen({ host, port });
  } catch (error) {
    await app.close();
    throw cannotListen(options.listen, error as NodeJS.ErrnoException);
  }
  const bound = app.server.address() as AddressInfo;
  const shown = bound.family === 'IPv6' ? `[${bound.address}]` : bound.address;
  return { url: `http://${shown}:${bound.port}`, app, close: () => app.close() };
}

/** Without a port, for tests: Fastify can be called without a connection. */
function buildHttpServer(options: HttpServerOptions): FastifyInstance {
  const app: FastifyInstance = Fastify({
    logger: false,
    http: { headersTimeout: HEADERS_MS, maxHeaderSize: HEADER_BYTES_MAX },
    requestTimeout: 0,
    connectionTimeout: SILENT_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    forceCloseConnections: true,
    exposeHeadRoutes: true,
    routerOptions: { ignoreTrailingSlash: true },
    clientErrorHandler: answerBrokenHttp,
    frameworkErrors: (_error, _request, reply) => void sendProblem(reply, new Problem('bad-request')),
  });
  const methods = new Map<string, Set<string>>();
  app.addHook('onRoute', ({ method, url }) => {
    const known = methods.get(url) ?? new Set();
    for (const name of [method].flat()) known.add(name);
    methods.set(url, known);
  });
  const connections = new Connections();
  connections.watch(app.server);
  app.addHook('onRequest', async (_request, reply) => {
    reply.headers({ 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' });
    if (connections.isCrowded) reply.header('connection', 'close');
  });
  addBodies(app);
  app.setErrorHandler((error, _request, reply) => sendProblem(reply, problemOf(error, options.onError)));
  app.setNotFoundHandler((request, reply) => sendProblem(reply, notFound(request, methods)));
  addHealth(app, options);
  addInternal(app, options);
  const isShown: IsShown = async ({ socket }) =>
    isLoopback(socket.remoteAddress) || (await options.context.reads.keys.hasSome());
  addDescription(app, isShown);
  addDashboardFiles(app, isShown);
  addLogin(app, options.access);
  addMetrics(app, options);
  const requests = new OpenRequests({
    what: 'requests',
    max: REQUESTS_MAX,
    keyMax: REQUESTS_OF_KEY_MAX,
  });
  void app.register(
    async (api) => {
      addApi(api, { ...options, requests });
      // A handler of its own, so that the hooks above run first.
      api.setNotFoundHandler((request, reply) => sendProblem(reply, notFound(request, methods)));
    },
    { prefix: API_PREFIX },
  );
  void app.register(
    async (api) => {
      addApi(api, { ...options, requests, routes: [idempotency, firecrawlRoutes] });
      api.setNotFoundHandler((request, reply) => sendProblem(reply, notFound(request, methods)));
    },
    { prefix: FIRECRAWL_PREFIX },
  );
  void app.register(async (api) =>
    addApi(api, { ...options, requests, routes: [mcpRoutes], asksOnly: true }),
  );
  return app;
}

function addBodies(app: FastifyInstance): void {
  const bodies = new Bodies();
  app.decorateRequest('bodyBytes', 0);
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', bodies.json);
  app.addContentTypeParser('application/yaml', bodies.yaml);
  app.addHook('preParsing', async (request, _reply, payload) => decodedBody(request, payload as Readable));
  app.addHook('onSend', async (request) => bodies.free(request));
}

function addHealth(app: FastifyInstance, { context }: HttpServerOptions): void {
  app.get('/healthz', async () => ({ status: 'ok' }));
  app.get('/readyz', async (_request, reply) => {
    const ready = await context.server.isReady().catch(() => false);
    return reply.code(ready ? 200 : 503).send({ status: ready ? 'ready' : 'not ready' });
  });
}

/** Elsewhere than on this machine, nothing but health is shown until there is a key. */
type IsShown = (request: FastifyRequest) => Promise<boolean>;

/** What the API is, for programs and people. */
function addDescription(app: FastifyInstance, isShown: IsShown): void {
  const description = JSON.stringify(describeApi());
  const page = docsPage();
  app.get('/openapi.json', async (request, reply) => {
    if (!(await isShown(request))) throw new Problem('not-found');
    return reply.header('content-type', 'application/json; charset=utf-8').send(description);
  });
  app.get('/docs', async (request, reply) => {
    if (!(await isShown(request))) throw new Problem('not-found');
    return reply
      .headers({
        'content-type': 'text/html; charset=utf-8',
        'content-security-policy': "default-src 'none'",
      })
      .send(page);
  });
}

/**
 * For Prometheus, with a key once there is one: of its own jobs, or of all with admin scope. Prometheus has a user of its
 * own on most machines.
 */
function addMetrics(app: FastifyInstance, { access, context }: HttpServerOptions): void {
  app.get('/metrics', async (request, reply) => {
    const caller = await callerOf(request, access, { isForAllUsers: true });
    requireScope(caller, 'read');
    const metrics = await context.server.metrics(isAdmin(caller) ? null : caller.keyId);
    return reply.header('content-type', METRICS_TYPE).send(metricsText(metrics));
  });
}

/** Commands of the folder are on this machine, whatever address is listened on. */
function addInternal(app: FastifyInstance, { context, hasToken }: HttpServerOptions): void {
  app.all('/internal/*', async (request) => {
    const isCommand = isLoopback(request.socket.remoteAddress) && hasToken(request.headers);
    const { pathname } = new URL(request.url, 'http://seine');
    const found = isCommand ? await context.server.internal(request.method, pathname) : null;
    if (!found) throw new Problem('not-found');
    return found;
  });
}

const WRONG_KEY = 'this server does not know the key, or it was revoked';
const NO_KEY = { headers: { 'www-authenticate': 'Bearer' } };

/** Who sent a request, or a problem: also for what a web page or another user of the machine sends in the name of its user. */
async function callerOf(
  { headers, socket }: FastifyRequest,
  access: AccessControl,
  { isForAllUsers = false } = {},
): Promise<Caller> {
  const caller = await access.authenticate(headers, socket.remoteAddress ?? '');
  if (!caller) throw new Problem('unauthorized', givenKey(headers) === null ? undefined : WRONG_KEY, NO_KEY);
  const isOwn = caller.isByCookie ? isSameOrigin : caller.keyId === null ? isOwnPage : () => true;
  if (!isOwn(headers)) throw new Problem('foreign-origin');
  if (!isForAllUsers && caller.isByAddress && (await isOfAnotherUser(socket)))
    throw new Problem('unauthorized', 'other users of this machine need an API key', NO_KEY);
  return caller;
}

/** `asksOnly`: a POST may be a question. */
function addApi(
  app: FastifyInstance,
  {
    access,
    routes,
    context,
    requests,
    asksOnly = false,
  }: HttpServerOptions & { requests: OpenRequests; asksOnly?: boolean },
): void {
  app.decorateRequest('caller');
  app.addHook('onRequest', async (request, reply) => {
    const caller = await callerOf(request, access);
    request.caller = caller;
    if (context.readOnly && !isRead(request)) throw new Problem('read-only');
    // Before the body is read, which may be large.
    if (!asksOnly && !isReading(request)) requireScope(caller, 'write');
    const { allowed, limit, remaining, resetSeconds } = access.take(caller, context.now());
    if (Number.isFinite(limit))
      reply.headers({
        'ratelimit-policy': `"default";q=${limit};w=60`,
        ratelimit: `"default";r=${remaining};t=${resetSeconds}`,
      });
    if (!allowed)
      throw new Problem('rate-limited', undefined, { headers: { 'retry-after': String(resetSeconds) } });
  });
  app.addHook('onResponse', async (request, { statusCode }) => {
    if (!asksOnly && !isReading(request) && statusCode < 400) noteChange(context, request, statusCode);
  });
  countRequests(app, requests);
  for (const plugin of routes) plugin(app, context);
}

/** What was changed and by whom, for the log. Single scrapes change nothing that others would want to trace. */
function noteChange({ logger }: ApiContext, request: FastifyRequest, status: number): void {
  const { method, url, caller, socket } = request;
  const path = url.split('?')[0]!;
  if (/\/scrape(\/async)?$/.test(path) && !path.includes('/batch/')) return;
  const key = caller.keyId ?? 'operator';
  logger.info(`${key} changed something: ${method} ${path}`, {
    ...{ key, method, path, status },
    address: socket.remoteAddress ?? '',
  });
}

function isReading({ method }: Pick<FastifyRequest, 'method'>): boolean {
  return method === 'GET' || method === 'HEAD';
}

/** What a server that changes nothing answers: a dry run of a job is a question, too. */
function isRead({ method, query, routeOptions }: FastifyRequest): boolean {
  if (isReading({ method })) return true;
  const isNewJob = method === 'POST' && routeOptions.url === `${API_PREFIX}/jobs`;
  return isNewJob && Object.hasOwn(query as object, 'dry_run');
}

function problemOf(error: unknown, onError: (error: unknown) => void): Problem {
  if (error instanceof Problem) return error;
  if (error instanceof StorageFullError) return new Problem('no-room');
  if (error instanceof SeineError)
    return new Problem('bad-option', error.hint === null ? error.message : `${error.message}; ${error.hint}`);
  const { statusCode, code } = error as { statusCode?: number; code?: string };
  if (code === 'FST_ERR_CTP_INVALID_MEDIA_TYPE') return new Problem('wrong-media-type');
  if (code === 'FST_ERR_CTP_BODY_TOO_LARGE') return new Problem('too-large-body');
  if (statusCode !== undefined && statusCode < 500) return new Problem('bad-request');
  onError(error);
  return new Problem('internal-error');
}

function sendProblem(reply: FastifyReply, problem: Problem): FastifyReply {
  return reply
    .code(problem.status)
    .headers(problem.headers)
    .header('content-type', 'application/problem+json')
    .send(JSON.stringify(problem.body));
}

function notFound({ method, url }: FastifyRequest, methods: ReadonlyMap<string, Set<string>>): Problem {
  const path = url.split('?')[0]!.split('/');
  for (const [pattern, allowed] of methods) {
    const parts = pattern.split('/');
    const fits =
      parts.length === path.length && parts.every((part, at) => part[0] === ':' || part === path[at]);
    if (fits && !allowed.has(method))
      return new Problem('wrong-method', undefined, { headers: { allow: [...allowed].sort().join(', ') } });
  }
  return new Problem('not-found');
}

/** What is not HTTP, or came too slowly. */
function answerBrokenHttp({ code }: NodeJS.ErrnoException, socket: Socket): void {
  if (!socket.writable || code === 'ECONNRESET') {
    socket.destroy();
    return;
  }
  const problem = new Problem(BROKEN_HTTP.get(code ?? '') ?? 'bad-request');
  const body = JSON.stringify(problem.body);
  const head = [
    `HTTP/1.1 ${problem.status} ${STATUS_CODES[problem.status]}`,
    'Content-Type: application/problem+json',
    'Connection: close',
    `Content-Length: ${Buffer.byteLength(body)}`,
  ];
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`);
}

const BROKEN_HTTP: ReadonlyMap<string, ProblemCode> = new Map([
  ['HPE_HEADER_OVERFLOW', 'too-large-headers'],
  ['ERR_HTTP_REQUEST_TIMEOUT', 'too-slow'],
]);
