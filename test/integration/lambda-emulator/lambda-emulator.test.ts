import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { strToU8, zipSync } from 'fflate';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type LoadedLambda, loadLambda } from '../../../src/aws/lambda/lambda-client.ts';
import { type LambdaEmulator, startLambdaEmulator } from '../../../src/lambda-emulator/emulator.ts';

/** The emulator is what the others are tested with, so it is tested with the real SDK and a function of a few lines. */

const CODE = `
import { existsSync } from 'node:fs';
let calls = 0;
export async function handler(event, context) {
  if (event.throws) throw new TypeError('as asked');
  if (event.exits) process.exit(7);
  while (event.until && !existsSync(event.until)) await new Promise((resolve) => setTimeout(resolve, 10));
  if (event.logs) console.log(event.logs);
  if (event.bytes) return 'x'.repeat(event.bytes);
  return { calls: ++calls, pid: process.pid, leftMs: context.getRemainingTimeInMillis(), given: process.env.GIVEN };
}`;

/** Longer than a machine stands still. */
const TIMEOUT_SECONDS = 60;

let emulator: LambdaEmulator;
let lambda: LoadedLambda;
beforeAll(async () => {
  emulator = await startLambdaEmulator({
    zip: zipSync({ 'index.mjs': strToU8(CODE) }),
    concurrency: 2,
    timeoutSeconds: TIMEOUT_SECONDS,
    idleMs: TIMEOUT_SECONDS * 1_000,
    variables: { GIVEN: 'value' },
  });
  lambda = await loadLambda(placeOf(emulator), { sockets: 8 });
});
afterAll(async () => {
  lambda.client.destroy();
  await emulator.close();
});

const placeOf = ({ url, credentialsFile }: LambdaEmulator) => ({
  endpoint: url,
  region: null,
  credentials: credentialsFile,
});

async function invoke(event: object, name = 'seine', { sdk, client } = lambda) {
  const reply = await client.send(
    new sdk.InvokeCommand({
      FunctionName: name,
      LogType: 'Tail',
      Payload: Buffer.from(JSON.stringify(event)),
    }),
  );
  const log = Buffer.from(reply.LogResult ?? '', 'base64').toString();
  return { error: reply.FunctionError, log, said: JSON.parse(Buffer.from(reply.Payload!).toString()) };
}

/** Handlers wait at it until it is open. */
function closedGate() {
  const path = `${emulator.credentialsFile}-gate`;
  rmSync(path, { force: true });
  return { path, open: () => writeFileSync(path, '') };
}

describe('the emulator of Lambda', () => {
  test('an environment is used again, one event at a time, and a second one while it is busy', async () => {
    const first = await invoke({});
    expect(first.said).toMatchObject({ calls: 1, given: 'value' });
    expect(first.said.leftMs).toBeGreaterThan(0);
    expect(first.said.leftMs).toBeLessThanOrEqual(TIMEOUT_SECONDS * 1_000);
    expect(
      (await invoke({}, 'arn:aws:lambda:us-east-1:000000000000:function:seine:live')).said,
    ).toMatchObject({
      calls: 2,
      pid: first.said.pid,
    });
    const gate = closedGate();
    const both = Promise.all([1, 2].map(() => invoke({ until: gate.path })));
    await expect.poll(() => emulator.pidsOf('seine')).toHaveLength(2);
    gate.open();
    const [one, two] = await both;
    expect(one!.said.pid).not.toBe(two!.said.pid);
  });

  test('says what was billed, with the start of a new environment, and what the function logged', async () => {
    // Log and answer come by different ways, and now and then the answer is first.
    for (let call = 1; call <= 100; call++) {
      const { log } = await invoke({ logs: `something of its own ${call}` });
      expect(log).toContain(`something of its own ${call}\n`);
      expect(log).toMatch(
        /REPORT RequestId: [\w-]+\tDuration: [\d.]+ ms\tBilled Duration: \d+ ms\tMemory Size: 1024 MB/,
      );
    }
  });

  test('more calls than its concurrency are refused', async () => {
    const gate = closedGate();
    const refusals: unknown[] = [];
    const calls = [1, 2, 3].map(() =>
      invoke({ until: gate.path }).catch((error: unknown) => void refusals.push(error)),
    );
    await expect.poll(() => refusals).toHaveLength(1);
    gate.open();
    const answers = await Promise.all(calls);
    expect(answers.filter((answer) => answer !== undefined)).toHaveLength(2);
    expect(refusals).toHaveLength(1);
    expect(refusals[0]).toMatchObject({
      name: 'TooManyRequestsException',
      $metadata: { httpStatusCode: 429, attempts: 1 },
    });
  });

  test.each([
    ['throws', { throws: true }, 'TypeError', 'as asked'],
    ['exits', { exits: true }, 'Runtime.ExitError', 'exit status 7'],
    ['answers too much', { bytes: 6_291_600 }, 'Function.ResponseSizeTooLarge', '6291556 bytes'],
  ])('a handler that %s is an error of the function', async (_, event, type, text) => {
    const { error, said } = await invoke(event);
    expect(error).toBe('Unhandled');
    expect(said).toMatchObject({ errorType: type, errorMessage: expect.stringContaining(text) });
  });

  test('a handler that takes too long is ended, and so is an environment without work', async () => {
    const hasty = await startLambdaEmulator({
      zip: zipSync({ 'index.mjs': strToU8(CODE) }),
      timeoutSeconds: 1,
      idleMs: 300,
    });
    const own = await loadLambda(placeOf(hasty), { sockets: 1 });
    const { error, said } = await invoke({ until: '/nowhere' }, 'seine', own);
    expect(error).toBe('Unhandled');
    expect(said).toMatchObject({
      errorType: 'Sandbox.Timedout',
      errorMessage: expect.stringContaining('Task timed out after 1.00 seconds'),
    });
    await invoke({}, 'seine', own);
    await expect.poll(() => hasty.pidsOf('seine')).toEqual([]);
    own.client.destroy();
    await hasty.close();
  });

  test('an answer just below the limit arrives, a request above it does not', async () => {
    expect((await invoke({ bytes: 6_291_500 })).said).toHaveLength(6_291_500);
    await expect(invoke({ noise: 'x'.repeat(6_291_456) })).rejects.toMatchObject({
      name: 'RequestTooLargeException',
      $metadata: { httpStatusCode: 413 },
    });
  });

  test('code that cannot be loaded is told as such', async () => {
    const broken = await startLambdaEmulator({ zip: zipSync({ 'index.mjs': strToU8("import 'nowhere';") }) });
    const other = await loadLambda(placeOf(broken), { sockets: 1 });
    const reply = await other.client.send(new other.sdk.InvokeCommand({ FunctionName: 'seine' }));
    other.client.destroy();
    await broken.close();
    expect(reply.FunctionError).toBe('Unhandled');
    expect(Buffer.from(reply.Payload!).toString()).toContain('Runtime.ImportModuleError');
  });

  test('its key is made at each start, only its user can read it, and it goes with the emulator', async () => {
    expect(statSync(emulator.credentialsFile).mode & 0o777).toBe(0o600);
    const other = await startLambdaEmulator({ zip: zipSync({ 'index.mjs': strToU8(CODE) }) });
    expect(other.credentials.secretAccessKey).not.toBe(emulator.credentials.secretAccessKey);
    expect(readFileSync(other.credentialsFile, 'utf8')).toContain(other.credentials.secretAccessKey);
    expect(await problemOf(() => call(other.url, emulator.credentialsFile))).toBe(
      'UnrecognizedClientException',
    );
    await other.close();
    expect(existsSync(other.credentialsFile)).toBe(false);
  });

  test('a caller with another secret, or another time, is refused', async () => {
    const forged = `${emulator.credentialsFile}-forged`;
    const { accessKeyId } = emulator.credentials;
    writeFileSync(forged, `aws_access_key_id = ${accessKeyId}\naws_secret_access_key = wrong\n`);
    expect(await problemOf(() => call(emulator.url, forged))).toBe('InvalidSignatureException');
    for (const offsetMs of [-6 * 60_000, 6 * 60_000])
      expect(await problemOf(() => call(emulator.url, emulator.credentialsFile, offsetMs))).toBe(
        'InvalidSignatureException',
      );
    expect(await problemOf(() => call(emulator.url, emulator.credentialsFile, -60_000))).toBe('');
  });

  test('a request that was changed after it was signed is refused', async () => {
    const signed = await captureUpdate();
    expect(await send(signed)).toBe(200);
    const { authorization } = signed.headers;
    const changes: [string, Partial<Captured>][] = [
      ['body', { body: signed.body.replace('11', '12') }],
      ['path', { path: signed.path.replace('/seine/', '/other/') }],
      ['query', { path: `${signed.path}?x=1` }],
      ['method', { method: 'POST' }],
      ['time', { headers: { ...signed.headers, 'x-amz-date': '20200101T000000Z' } }],
      ['hash', { headers: { ...signed.headers, 'x-amz-content-sha256': 'UNSIGNED-PAYLOAD' } }],
      ['no signature', { headers: without(signed.headers, 'authorization') }],
      ['no hash', { headers: without(signed.headers, 'x-amz-content-sha256') }],
      ['no time', { headers: without(signed.headers, 'x-amz-date') }],
      [
        'fewer headers',
        { headers: { ...signed.headers, authorization: authorization!.replace(';x-amz-date', '') } },
      ],
      ['another host', { headers: { ...signed.headers, host: 'evil.example' } }],
      [
        'only the name of a signature',
        { headers: { ...signed.headers, authorization: 'AWS4-HMAC-SHA256 Credential=x' } },
      ],
    ];
    for (const [name, change] of changes) expect(await send({ ...signed, ...change }), name).toBe(403);
  });

  test('an environment that does not exist is refused', async () => {
    const path = `/environments/${'0'.repeat(32)}/2018-06-01/runtime/invocation/next`;
    expect((await fetch(`${emulator.url}${path}`)).status).toBe(403);
  });
});

/** Reads the configuration as a client with that key and that clock. */
async function call(url: string, credentials: string, offsetMs = 0): Promise<void> {
  const { sdk, client } = await loadLambda({ endpoint: url, region: null, credentials }, { sockets: 1 });
  client.config.systemClockOffset = offsetMs;
  try {
    await client.send(new sdk.GetFunctionConfigurationCommand({ FunctionName: 'seine' }));
  } finally {
    client.destroy();
  }
}

async function problemOf(run: () => Promise<void>): Promise<string> {
  try {
    await run();
    return '';
  } catch (error) {
    const { name, $metadata } = error as { name: string; $metadata?: { httpStatusCode?: number } };
    expect($metadata?.httpStatusCode).toBe(403);
    return name;
  }
}

interface Captured {
  method: string;
  path: string;
  headers: Record<string, string>;
  body: string;
}

/** A change of the configuration as the SDK signs it. */
async function captureUpdate(): Promise<Captured> {
  const { sdk, client } = await loadLambda(placeOf(emulator), { sockets: 1 });
  let captured: Captured | null = null;
  client.middlewareStack.add(
    (next) => async (args) => {
      captured = { ...(args.request as Captured) };
      return next(args);
    },
    { step: 'deserialize', name: 'capture' },
  );
  await client.send(new sdk.UpdateFunctionConfigurationCommand({ FunctionName: 'seine', Timeout: 11 }));
  client.destroy();
  await expect.poll(async () => (await describeFunction()).LastUpdateStatus).toBe('Successful');
  return captured!;
}

async function describeFunction() {
  const { sdk, client } = lambda;
  return client.send(new sdk.GetFunctionConfigurationCommand({ FunctionName: 'seine' }));
}

function without(headers: Record<string, string>, name: string): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([key]) => key !== name));
}

function send({ method, path, headers, body }: Captured): Promise<number | undefined> {
  const { promise, resolve, reject } = Promise.withResolvers<number | undefined>();
  const request = httpRequest(`${emulator.url}${path}`, { method, headers }, (reply) => {
    reply.resume();
    resolve(reply.statusCode);
  });
  request.on('error', reject);
  request.end(body);
  return promise;
}
