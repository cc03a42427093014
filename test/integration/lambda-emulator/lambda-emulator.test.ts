import { strToU8, zipSync } from 'fflate';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type LoadedLambda, loadLambda } from '../../../src/aws/lambda/lambda-client.ts';
import { type LambdaEmulator, startLambdaEmulator } from '../../../src/lambda-emulator/emulator.ts';
import { FAKE_CREDENTIALS } from '../../support/fleet/lambda-setup.ts';

/** The emulator is what the others are tested with, so it is tested with the real SDK and a function of a few lines. */

const CODE = `
let calls = 0;
export async function handler(event, context) {
  if (event.throws) throw new TypeError('as asked');
  if (event.exits) process.exit(7);
  if (event.sleepMs) await new Promise((resolve) => setTimeout(resolve, event.sleepMs));
  if (event.logs) console.log(event.logs);
  if (event.bytes) return 'x'.repeat(event.bytes);
  return { calls: ++calls, pid: process.pid, leftMs: context.getRemainingTimeInMillis(), given: process.env.GIVEN };
}`;

let emulator: LambdaEmulator;
let lambda: LoadedLambda;
beforeAll(async () => {
  Object.assign(process.env, FAKE_CREDENTIALS);
  emulator = await startLambdaEmulator({
    zip: zipSync({ 'index.mjs': strToU8(CODE) }),
    concurrency: 2,
    timeoutSeconds: 2,
    idleMs: 1_500,
    variables: { GIVEN: 'value' },
  });
  lambda = await loadLambda({ endpoint: emulator.url, region: null }, { sockets: 8 });
});
afterAll(async () => {
  lambda.client.destroy();
  await emulator.close();
});

async function invoke(event: object, name = 'seine') {
  const { sdk, client } = lambda;
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

describe('the emulator of Lambda', () => {
  test('an environment is used again, one event at a time, and a second one while it is busy', async () => {
    const first = await invoke({});
    expect(first.said).toMatchObject({ calls: 1, given: 'value' });
    expect(first.said.leftMs).toBeGreaterThan(0);
    expect(first.said.leftMs).toBeLessThanOrEqual(2_000);
    expect(
      (await invoke({}, 'arn:aws:lambda:us-east-1:000000000000:function:seine:live')).said,
    ).toMatchObject({
      calls: 2,
      pid: first.said.pid,
    });
    const [one, two] = await Promise.all([invoke({ sleepMs: 300 }), invoke({ sleepMs: 300 })]);
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
    const calls = await Promise.allSettled([1, 2, 3].map(() => invoke({ sleepMs: 300 })));
    const refused = calls.filter((call) => call.status === 'rejected');
    expect(refused).toHaveLength(1);
    expect(refused[0]!.reason).toMatchObject({
      name: 'TooManyRequestsException',
      $metadata: { httpStatusCode: 429, attempts: 1 },
    });
  });

  test.each([
    ['throws', { throws: true }, 'TypeError', 'as asked'],
    ['exits', { exits: true }, 'Runtime.ExitError', 'exit status 7'],
    ['takes too long', { sleepMs: 5_000 }, 'Sandbox.Timedout', 'Task timed out after 2.00 seconds'],
    ['answers too much', { bytes: 6_291_600 }, 'Function.ResponseSizeTooLarge', '6291556 bytes'],
  ])('a handler that %s is an error of the function', async (_, event, type, text) => {
    const { error, said } = await invoke(event);
    expect(error).toBe('Unhandled');
    expect(said).toMatchObject({ errorType: type, errorMessage: expect.stringContaining(text) });
  });

  test('an answer just below the limit arrives, a request above it does not', async () => {
    expect((await invoke({ bytes: 6_291_500 })).said).toHaveLength(6_291_500);
    await expect(invoke({ noise: 'x'.repeat(6_291_456) })).rejects.toMatchObject({
      name: 'RequestTooLargeException',
      $metadata: { httpStatusCode: 413 },
    });
  });

  test('environments without work are ended', async () => {
    await invoke({});
    expect(emulator.pidsOf('seine').length).toBeGreaterThan(0);
    await expect.poll(() => emulator.pidsOf('seine')).toEqual([]);
  });

  test('code that cannot be loaded is told as such', async () => {
    const broken = await startLambdaEmulator({ zip: zipSync({ 'index.mjs': strToU8("import 'nowhere';") }) });
    const other = await loadLambda({ endpoint: broken.url, region: null }, { sockets: 1 });
    const reply = await other.client.send(new other.sdk.InvokeCommand({ FunctionName: 'seine' }));
    other.client.destroy();
    await broken.close();
    expect(reply.FunctionError).toBe('Unhandled');
    expect(Buffer.from(reply.Payload!).toString()).toContain('Runtime.ImportModuleError');
  });

  test('nobody is served who has not signed, or who asks for another host', async () => {
    const path = `${emulator.url}/2015-03-31/functions/seine/configuration`;
    expect((await fetch(path)).status).toBe(403);
    const signed = { authorization: 'AWS4-HMAC-SHA256 Credential=x' };
    expect((await fetch(path, { headers: signed })).status).toBe(200);
    const { promise, resolve } = Promise.withResolvers<number | undefined>();
    const { request } = await import('node:http');
    request(path, { headers: { ...signed, host: 'evil.example' } }, (reply) => {
      reply.resume();
      resolve(reply.statusCode);
    }).end();
    expect(await promise).toBe(403);
    expect(
      (await fetch(`${emulator.url}/environments/${'0'.repeat(32)}/2018-06-01/runtime/invocation/next`))
        .status,
    ).toBe(403);
  });
});
