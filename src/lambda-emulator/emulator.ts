import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { messageOf } from '../core/errors.ts';
import { PRIVATE_FILE } from '../core/file-modes.ts';
import { RESPONSE_BYTES_MAX, type Run } from './environment.ts';
import { type CodeInput, type FunctionInput, FunctionRegistry } from './function-registry.ts';
import { ApiError, readBody, sendError, sendJson } from './http-reply.ts';
import { Roles } from './roles.ts';
import { type Credentials, checkBody, checkSignature, makeCredentials } from './signature.ts';

export interface EmulatorOptions {
  port?: number;
  /** The function that is there from the start. */
  name?: string;
  memoryMb?: number;
  timeoutSeconds?: number;
  variables?: Record<string, string>;
  /** Its code; this installation's own when absent. */
  zip?: Uint8Array;
  /** Its image instead: a folder of `seine lambda build --kind browser`. Functions made later with an image have it, too. */
  image?: string;
  concurrency?: number;
  idleMs?: number;
  /** The process of an environment was started: here it can be given less of the machine. */
  onStart?(pid: number): void;
  onLog?(text: string): void;
}

export interface LambdaEmulator {
  url: string;
  /** What calls must be signed with. */
  credentials: Credentials;
  /** A file with them in AWS's own format, which only this user can read. It is deleted with the emulator. */
  credentialsFile: string;
  roles: Roles;
  /** Processes of a function. */
  pidsOf(name: string): number[];
  close(): Promise<void>;
}

/** Lambda's own limit of a synchronous call. */
const REQUEST_BYTES_MAX = 6_291_456;
/** A zip of 50 MB in base64, and what is said about it. */
const CODE_BYTES_MAX = 70 * 1024 ** 2;

/** Lambda on this machine: its API for the AWS SDK, and processes for environments. Listens on loopback only. */
export async function startLambdaEmulator(options: EmulatorOptions = {}): Promise<LambdaEmulator> {
  const dir = mkdtempSync(join(tmpdir(), 'seine-lambda-'));
  const roles = new Roles();
  const credentials = makeCredentials();
  const credentialsFile = join(dir, 'credentials');
  writeFileSync(credentialsFile, fileOf(credentials), { mode: PRIVATE_FILE });
  let address = '';
  const ending = import.meta.url.endsWith('.ts') ? 'ts' : 'js';
  const functions = new FunctionRegistry({
    concurrency: options.concurrency ?? 10,
    idleMs: options.idleMs ?? 300_000,
    runtime: fileURLToPath(new URL(`../entry/lambda-runtime.${ending}`, import.meta.url)),
    dir,
    image: options.image ?? null,
    api: () => address,
    roles,
    onStart: options.onStart ?? (() => {}),
    onLog: options.onLog ?? (() => {}),
  });
  const server = createServer((request, reply) => void serve(request, reply, functions, roles, credentials));
  // The next event may come in an hour.
  server.requestTimeout = 0;
  // A connection that is closed while its environment is busy for long would break under the answer.
  server.keepAliveTimeout = 0;
  await listen(server, options.port ?? 0);
  address = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  const close = async () => {
    for (const fleet of functions.fleets) fleet.close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
    rmSync(dir, { recursive: true, force: true });
  };
  const creating = functions.create(
    {
      FunctionName: options.name ?? 'seine',
      MemorySize: options.memoryMb ?? 1_024,
      Timeout: options.timeoutSeconds ?? 120,
      Environment: { Variables: { SEINE_ALLOW_PRIVATE: 'job', ...options.variables } },
      ...codeOf(options),
    },
    { checked: false },
  );
  await creating.catch(async (error: unknown) => {
    await close();
    throw error;
  });
  return {
    url: `http://${address}`,
    credentials,
    credentialsFile,
    roles,
    pidsOf: (name) => functions.fleet(name).pids,
    close,
  };
}

function fileOf({ accessKeyId, secretAccessKey }: Credentials): string {
  return `[default]\naws_access_key_id = ${accessKeyId}\naws_secret_access_key = ${secretAccessKey}\n`;
}

function codeOf({ zip, image }: EmulatorOptions): FunctionInput {
  if (image !== undefined) return { PackageType: 'Image', Code: { ImageUri: image } };
  const runs = { Runtime: 'nodejs24.x', Handler: 'index.handler' };
  return zip ? { ...runs, Code: { ZipFile: Buffer.from(zip).toString('base64') } } : runs;
}

function listen(server: Server, port: number): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  server.once('error', reject);
  server.listen(port, '127.0.0.1', () => resolve());
  return promise;
}

type Reply = ServerResponse;

async function serve(
  request: IncomingMessage,
  reply: Reply,
  functions: FunctionRegistry,
  roles: Roles,
  credentials: Credentials,
): Promise<void> {
  try {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost');
    const inside = /^\/environments\/([0-9a-f]{32})\/2018-06-01\/runtime\/(.*)$/.exec(pathname);
    if (inside) return await serveRuntime(request, reply, inside[1]!, inside[2]!, functions);
    checkHost(request);
    const { method = '', url = '/', headers } = request;
    checkSignature({ method, url, headers }, credentials, Date.now());
    if (pathname === '/' && request.method === 'POST') return await serveIam(request, reply, roles);
    await serveApi(request, reply, pathname, functions);
  } catch (error) {
    if (reply.headersSent) reply.destroy();
    else if (error instanceof ApiError) sendError(reply, error);
    else sendError(reply, new ApiError(500, 'ServiceException', messageOf(error)));
  }
}

/** A page in a browser on this machine can send requests here under another name. */
function checkHost({ headers }: IncomingMessage): void {
  if (!/^(127\.0\.0\.1|localhost|\[::1\])(:\d+)?$/.test(headers.host ?? ''))
    throw new ApiError(403, 'AccessDeniedException', 'the host is not this machine');
}

/** Null when there is more than that. */
async function readSigned(request: IncomingMessage, bytesMax: number): Promise<Buffer | null> {
  const body = await readBody(request, bytesMax);
  if (body) checkBody(request.headers, body);
  return body;
}

/** What an environment asks: the runtime interface of Lambda. */
async function serveRuntime(
  request: IncomingMessage,
  reply: Reply,
  id: string,
  path: string,
  functions: FunctionRegistry,
): Promise<void> {
  const environment = functions.fleets.map((fleet) => fleet.environment(id)).find(Boolean);
  if (!environment) throw new ApiError(403, 'Forbidden', 'there is no such environment');
  if (path === 'invocation/next') {
    environment.onNext(reply);
    return;
  }
  const body = await readBody(request, RESPONSE_BYTES_MAX);
  if (path === 'init/error') {
    environment.onInitError(body ?? Buffer.alloc(0));
    sendJson(reply, 202, { status: 'OK' });
    return;
  }
  const [, requestId, what] = /^invocation\/([\w-]+)\/(response|error)$/.exec(path) ?? [];
  if (!requestId || !environment.onAnswer(requestId, body, what === 'error'))
    throw new ApiError(400, 'InvalidRequestID', 'there is no such event');
  sendJson(reply, body === null ? 413 : 202, { status: 'OK' });
}

async function serveIam(request: IncomingMessage, reply: Reply, roles: Roles): Promise<void> {
  const body = await readSigned(request, 1024 ** 2);
  const { status, xml } = roles.answer(new URLSearchParams(body?.toString() ?? ''));
  reply.writeHead(status, { 'content-type': 'text/xml' });
  reply.end(xml);
}

async function serveApi(
  request: IncomingMessage,
  reply: Reply,
  path: string,
  functions: FunctionRegistry,
): Promise<void> {
  const [, given, what = ''] = /^\/2015-03-31\/functions(?:\/([^/]+)(?:\/(\w+))?)?\/?$/.exec(path) ?? [];
  const name = nameOf(decodeURIComponent(given ?? ''));
  const call = `${request.method} ${given === undefined ? '' : 'function'}${what && ` ${what}`}`;
  switch (call) {
    case 'POST function invocations':
      return invoke(request, reply, name, functions);
    case 'GET function':
      return sendJson(reply, 200, { Configuration: functions.describe(name), Code: functions.codeOf(name) });
    case 'GET function configuration':
      return sendJson(reply, 200, functions.describe(name));
    case 'PUT function configuration':
      return sendJson(reply, 200, functions.updateConfiguration(name, await readInput(request)));
    case 'PUT function code':
      return sendJson(reply, 200, await functions.updateCode(name, await readInput<CodeInput>(request)));
    case 'POST ':
      return sendJson(reply, 201, await functions.create(await readInput(request)));
  }
  throw new ApiError(
    404,
    'UnknownOperationException',
    `${request.method} ${path} is not part of the emulator`,
  );
}

/** From a name, an ARN, or one of them with a version behind it. */
function nameOf(text: string): string {
  return text.replace(/^.*:function:/, '').split(':')[0]!;
}

async function readInput<T = FunctionInput>(request: IncomingMessage): Promise<T> {
  const body = await readSigned(request, CODE_BYTES_MAX);
  if (body === null) throw new ApiError(413, 'RequestTooLargeException', 'Request is too large');
  return JSON.parse(body.toString());
}

async function invoke(
  request: IncomingMessage,
  reply: Reply,
  name: string,
  functions: FunctionRegistry,
): Promise<void> {
  const fleet = functions.fleet(name);
  const payload = await readSigned(request, REQUEST_BYTES_MAX);
  if (payload === null)
    throw new ApiError(
      413,
      'RequestTooLargeException',
      `Request must be smaller than ${REQUEST_BYTES_MAX} bytes for the InvokeFunction operation`,
    );
  const run = await fleet.invoke(payload.length === 0 ? Buffer.from('{}') : payload);
  if (run === null) throw new ApiError(429, 'TooManyRequestsException', 'Rate Exceeded.');
  const tail = request.headers['x-amz-log-type'] === 'Tail';
  reply.writeHead(200, {
    'content-type': 'application/json',
    'x-amzn-requestid': run.requestId,
    'x-amz-executed-version': '$LATEST',
    ...(run.failed ? { 'x-amz-function-error': 'Unhandled' } : {}),
    ...(tail ? { 'x-amz-log-result': logOf(run, functions.memoryMb(name)).toString('base64') } : {}),
  });
  reply.end(run.payload);
}

/** The end of the log, with the line that says what is billed: since 2025 the start of an environment is, too. */
function logOf(run: Run, memoryMb: number): Buffer {
  const { requestId, durationMs, initMs, log } = run;
  const billed = Math.ceil(durationMs + initMs);
  const init = initMs > 0 ? `\tInit Duration: ${initMs.toFixed(2)} ms` : '';
  const line = `END RequestId: ${requestId}\nREPORT RequestId: ${requestId}\tDuration: ${durationMs.toFixed(2)} ms\tBilled Duration: ${billed} ms\tMemory Size: ${memoryMb} MB\tMax Memory Used: ${run.memoryMb} MB${init}\t\n`;
  return Buffer.from(`${log.slice(-3_000)}\n${line}`).subarray(-4_096);
}
