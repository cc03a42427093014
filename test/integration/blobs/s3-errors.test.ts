import { createServer } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { S3Settings } from '../../../src/aws/s3/s3-client.ts';
import { openS3Blobs, prepareS3Blobs } from '../../../src/blobs/s3-blobs.ts';
import { SeineError } from '../../../src/core/errors.ts';
import { type FaultProxy, startFaultProxy } from '../../support/servers/fault-proxy.ts';
import { S3_ENV, type S3Server, startS3Server } from '../../support/servers/s3-server.ts';

/** What is set wrong is one sentence and what to do. */

let server: S3Server;
let proxy: FaultProxy;
beforeAll(async () => {
  server = await startS3Server({ strictSignatures: true });
  proxy = await startFaultProxy(server);
});
afterAll(async () => {
  await proxy.close();
  await server.close();
});

const NAMES = [
  'AWS_ACCESS_KEY_ID',
  'AWS_SECRET_ACCESS_KEY',
  'AWS_REGION',
  'AWS_DEFAULT_REGION',
  'AWS_PROFILE',
];

/** How long it waits between attempts is shown in the tests of faults. */
const WAITS = { firstMs: 1, throttledMs: 1, longestMs: 5 };

/** What a start says in this environment, without the machine's own settings. */
async function complaint(
  env: Record<string, string>,
  settings: Partial<S3Settings> = {},
  url = `s3://${server.bucket}/errors`,
): Promise<SeineError> {
  for (const name of NAMES) delete process.env[name];
  Object.assign(process.env, {
    AWS_EC2_METADATA_DISABLED: 'true',
    AWS_CONFIG_FILE: '/nonexistent',
    AWS_SHARED_CREDENTIALS_FILE: '/nonexistent',
    ...env,
  });
  const at = { endpoint: server.endpoint, region: null, pathStyle: null, waits: WAITS, ...settings };
  const error = await prepareS3Blobs(url, at, Date.now()).then(
    () => null,
    (thrown: unknown) => thrown,
  );
  expect(error).toBeInstanceOf(SeineError);
  const said = error as SeineError;
  expect(said.message).not.toContain('\n');
  expect(said.hint).toBeTruthy();
  expect(said.exit).toBe('bad-input');
  return said;
}

describe('S3, set up wrongly', () => {
  test('no such bucket', async () => {
    const { message, hint } = await complaint(S3_ENV, {}, 's3://no-such-bucket/x');
    expect(message).toBe(`no bucket no-such-bucket at ${server.endpoint}`);
    expect(hint).toContain('SEINE_S3_ENDPOINT');
  });

  test('an unknown key, a wrong secret, and none at all', async () => {
    const unknown = await complaint({ ...S3_ENV, AWS_ACCESS_KEY_ID: 'NOBODY' });
    expect(unknown.message).toBe(`${server.endpoint} rejected the credentials`);
    const wrong = await complaint({ ...S3_ENV, AWS_SECRET_ACCESS_KEY: 'wrong' });
    expect(wrong.message).toBe(`${server.endpoint} rejected the credentials`);
    const none = await complaint({});
    expect(none.message).toBe('no credentials for S3');
    expect(none.hint).toContain('AWS_ACCESS_KEY_ID');
  });

  test.each([
    [
      { status: 403, code: 'AccessDenied' },
      /^access to the bucket seine-test at .* is denied$/,
      /s3:PutObject/,
    ],
    [{ status: 301, code: 'PermanentRedirect' }, /is in another region/, /SEINE_S3_REGION/],
    [{ status: 400, code: 'AuthorizationHeaderMalformed' }, /is in another region/, /SEINE_S3_REGION/],
    [{ status: 400, code: 'ExpiredToken' }, /have expired/, /log in/],
    [{ status: 403, code: 'RequestTimeTooSkewed' }, /the clock of this machine/, /clock/],
    [{ status: 500, code: 'InternalError' }, /keeps failing: 500/, /seine resume/],
  ])('an answer %j', async (fault, message, hint) => {
    proxy.plan(() => fault);
    const said = await complaint(S3_ENV, { endpoint: proxy.endpoint });
    expect(said.message).toMatch(message);
    expect(said.hint).toMatch(hint);
  });

  test('a HEAD that is refused, whose answer has no words', async () => {
    proxy.plan(() => ({ status: 403, code: 'AccessDenied' }));
    Object.assign(process.env, S3_ENV);
    const at = { endpoint: proxy.endpoint, region: null, pathStyle: null };
    const blobs = openS3Blobs(`s3://${server.bucket}/x`, at);
    await expect(blobs.has('key')).rejects.toThrow(/access to the bucket seine-test .* is denied/);
    await blobs.close();
  });

  test('nobody at the endpoint', async () => {
    const closed = createServer();
    await new Promise<void>((resolve) => closed.listen(0, '127.0.0.1', resolve));
    const { port } = closed.address() as { port: number };
    await new Promise((resolve) => closed.close(resolve));
    const { message } = await complaint(S3_ENV, { endpoint: `http://127.0.0.1:${port}` });
    expect(message).toBe(`cannot reach S3 at http://127.0.0.1:${port}: ECONNREFUSED`);
  });

  test('an endpoint that is none, and AWS without a region', async () => {
    expect((await complaint(S3_ENV, { endpoint: 'minio.example' })).message).toMatch(
      /is not a valid S3 endpoint/,
    );
    const { message, hint } = await complaint(S3_ENV, { endpoint: null });
    expect(message).toMatch(/no AWS region for S3/);
    expect(hint).toBe('set SEINE_S3_REGION or AWS_REGION');
  });

  test('a store that does not list uploads is swept as far as it goes', async () => {
    Object.assign(process.env, S3_ENV);
    const open = await startS3Server();
    const front = await startFaultProxy(open);
    front.plan((request) => (request.includes('uploads') ? { status: 501, code: 'NotImplemented' } : 'none'));
    const at = { endpoint: front.endpoint, region: null, pathStyle: null };
    const { removed, problem } = await prepareS3Blobs(`s3://${open.bucket}/x`, at, Date.now());
    expect(removed).toBe(0);
    expect(problem).toBeInstanceOf(Error);
    await front.close();
    await open.close();
  });
});
