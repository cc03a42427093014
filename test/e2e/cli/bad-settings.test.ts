import { join } from 'node:path';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type LambdaErrors, startLambdaErrors } from '../../support/fleet/lambda-errors.ts';
import { seine } from '../../support/seine-in-process.ts';
import {
  type Finished,
  lastJson,
  seine as seineProcess,
  temporaryFolder,
} from '../../support/seine-process.ts';
import { type FaultProxy, startFaultProxy } from '../../support/servers/fault-proxy.ts';
import { S3_ENV, type S3Server, startS3Server } from '../../support/servers/s3-server.ts';
import { findFreePort } from '../../support/servers/server-process.ts';
import {
  type PostgresServer,
  type RedisServer,
  startPostgres,
  startRedis,
} from '../../support/servers/services.ts';
import { type LinkedSite, startLinkedSite } from '../../support/sites/linked-site.ts';

/** Settings that lead nowhere: one sentence, what to do, exit code 2, and nobody's site is asked for anything. */

const PASSWORD = 'hunter2-right';
const WRONG = 'hunter2-wrong';
const folder = temporaryFolder();
let site: LinkedSite;
let redis: RedisServer;
let postgres: PostgresServer;
let s3: S3Server;
let denying: FaultProxy;
let aws: LambdaErrors;
/** Nothing listens there. */
let closed: number;
let folders = 0;

beforeAll(async () => {
  [site, redis, postgres, s3, aws, closed] = await Promise.all([
    startLinkedSite({ pages: 1 }),
    startRedis({ own: true, settings: { requirepass: PASSWORD, 'maxmemory-policy': 'allkeys-lru' } }),
    startPostgres({ own: true, password: PASSWORD }),
    startS3Server(),
    startLambdaErrors(),
    findFreePort(),
  ]);
  denying = await startFaultProxy(s3);
  denying.plan((request) =>
    request.includes('/elsewhere')
      ? { status: 301, code: 'PermanentRedirect' }
      : { status: 403, code: 'AccessDenied' },
  );
  await execute("CREATE ROLE guest LOGIN PASSWORD 'hunter2-right'");
});
afterAll(async () => {
  await Promise.all([site.close(), redis.stop(), postgres.stop(), denying.close()]);
  await s3.close();
  await aws.close();
  folder.remove();
});

async function execute(statement: string): Promise<void> {
  const client = new pg.Client({ connectionString: postgres.url });
  await client.connect();
  await client.query(statement);
  await client.end();
}

const freshDir = () => join(folder.path, String(folders++));
const runWith = (options: string[], env: Record<string, string> = {}) =>
  seine(['run', site.url, '--allow-private', '--dir', freshDir(), ...options], {
    env: { ...S3_ENV, ...env },
  });

/** One sentence and what to do below it; no stack, no password. What was noticed on the way may stand above. */
function expectSentence({ code, stdout, stderr }: Finished, sentence: RegExp): void {
  const lines = stderr.trimEnd().split('\n');
  const [first, second, ...more] = lines.filter((line) => !line.startsWith('warning: '));
  expect(first).toMatch(/^seine: /);
  expect(first!.slice('seine: '.length)).toMatch(sentence);
  expect(second).toMatch(/^ {2}\S/);
  expect(more).toEqual([]);
  expect(stdout).toBe('');
  expect(stderr + stdout).not.toMatch(/hunter2/);
  expect(code).toBe(2);
}

interface Case {
  name: string;
  options(): string[];
  env?(): Record<string, string>;
  sentence: RegExp;
}

const storeAt = (user: string, port: number, database = 'postgres') =>
  `postgres://${user}@127.0.0.1:${port}/${database}`;

const REDIS_CASES: Case[] = [
  {
    name: 'the wrong password',
    options: () => ['--dispatch', `bullmq://:${WRONG}@127.0.0.1:${redis.port}`],
    sentence: /^Redis at 127\.0\.0\.1:\d+ rejected the user name or password$/,
  },
  {
    name: 'no password',
    options: () => ['--dispatch', `bullmq://127.0.0.1:${redis.port}`],
    sentence: /^Redis at 127\.0\.0\.1:\d+ requires a password$/,
  },
  {
    name: 'a closed port',
    options: () => ['--dispatch', `bullmq://:${WRONG}@127.0.0.1:${closed}`],
    sentence: /^cannot reach Redis at 127\.0\.0\.1:\d+: ECONNREFUSED$/,
  },
  {
    name: 'something that is no Redis',
    options: () => ['--dispatch', `bullmq://127.0.0.1:${site.port}`],
    sentence:
      /^Redis at 127\.0\.0\.1:\d+ (does not answer|failed)|^cannot reach Redis at 127\.0\.0\.1:\d+: ECONNRESET/,
  },
];

const STORE_CASES: Case[] = [
  {
    name: 'the wrong password',
    options: () => ['--store', storeAt(`postgres:${WRONG}`, postgres.port)],
    sentence: /^the database at postgres:\/\/\S+@127\.0\.0\.1:\d+\/postgres rejected the login$/,
  },
  {
    name: 'no password',
    options: () => ['--store', storeAt('postgres', postgres.port)],
    sentence: /^the database at .* requires a password$/,
  },
  {
    name: 'a database that does not exist',
    options: () => ['--store', storeAt(`postgres:${PASSWORD}`, postgres.port, 'nowhere')],
    sentence: /^no such database: .*\/nowhere$/,
  },
  {
    name: 'a user without permission',
    options: () => ['--store', storeAt(`guest:${PASSWORD}`, postgres.port)],
    sentence: /^the user lacks a permission in the database at .*: permission denied/,
  },
  {
    name: 'a closed port',
    options: () => ['--store', storeAt(`postgres:${WRONG}`, closed)],
    sentence: /^cannot reach the database at /,
  },
];

const BLOBS_CASES: Case[] = [
  {
    name: 'a missing bucket',
    options: () => ['--blobs', 's3://no-such-bucket/x'],
    env: () => ({ SEINE_S3_ENDPOINT: s3.endpoint }),
    sentence: /^no bucket no-such-bucket at http:\S+$/,
  },
  {
    name: 'the wrong key',
    options: () => ['--blobs', `s3://${s3.bucket}/x`],
    env: () => ({ SEINE_S3_ENDPOINT: s3.endpoint, AWS_ACCESS_KEY_ID: 'NOBODY' }),
    sentence: /^http:\S+ rejected the credentials$/,
  },
  {
    name: 'no permission',
    options: () => ['--blobs', `s3://${s3.bucket}/x`],
    env: () => ({ SEINE_S3_ENDPOINT: denying.endpoint }),
    sentence: /^access to the bucket seine-test at http:\S+ is denied$/,
  },
  {
    name: 'the wrong region',
    options: () => ['--blobs', `s3://${s3.bucket}/elsewhere`],
    env: () => ({ SEINE_S3_ENDPOINT: denying.endpoint }),
    sentence: /^the bucket seine-test is in another region/,
  },
];

const LAMBDA_CASES: Case[] = [
  {
    name: 'an unknown function',
    options: () => ['--dispatch', 'lambda://missing'],
    env: () => ({ SEINE_LAMBDA_ENDPOINT: aws.endpoint }),
    sentence: /^the function missing does not exist at http:\S+$/,
  },
  {
    name: 'no permission',
    options: () => ['--dispatch', 'lambda://denied'],
    env: () => ({ SEINE_LAMBDA_ENDPOINT: aws.endpoint }),
    sentence: /^access to the function denied is denied$/,
  },
  {
    name: 'the wrong key',
    options: () => ['--dispatch', 'lambda://unsigned'],
    env: () => ({ SEINE_LAMBDA_ENDPOINT: aws.endpoint }),
    sentence: /rejected the credentials$/,
  },
  {
    name: 'a closed port',
    options: () => ['--dispatch', 'lambda://seine'],
    env: () => ({ SEINE_LAMBDA_ENDPOINT: `http://127.0.0.1:${closed}` }),
    sentence: /^cannot reach http:\S+: ECONNREFUSED$/,
  },
];

describe('seine run', () => {
  test.each([
    ['Redis', REDIS_CASES],
    ['PostgreSQL', STORE_CASES],
    ['S3', BLOBS_CASES],
    ['Lambda', LAMBDA_CASES],
  ])('with a bad %s says what is wrong and what to do, whatever it is', async (_, cases) => {
    await Promise.all(
      cases.map(async ({ options, env, sentence }) =>
        expectSentence(await runWith(options(), env?.()), sentence),
      ),
    );
    expect(site.log).toEqual([]);
  });

  test('with several places to work in says which one cannot be used, and leaves no job behind', async () => {
    const dispatch = `threads,bullmq://:${WRONG}@127.0.0.1:${redis.port}`;
    const dir = freshDir();
    expectSentence(
      await runWith(['--dir', dir, '--dispatch', dispatch]),
      /^Redis at .* rejected the user name or password/,
    );
    expect((await seine(['jobs', '--json', '--dir', dir])).stdout).toBe('[]\n');
  });
});

describe('seine worker', () => {
  const startWorker = (options: string[], env: Record<string, string> = {}) =>
    seine(['worker', ...options], { env: { ...S3_ENV, ...env } });

  test('with a bad Redis or S3 says the same', async () => {
    const dispatch = ['--dispatch', `bullmq://:${PASSWORD}@127.0.0.1:${redis.port}`];
    // The sentences are those of `seine run`: one of each kind shows that a worker ends with them, too.
    const cases = [
      { ...REDIS_CASES[0]!, more: ['--blobs', freshDir()] },
      { ...BLOBS_CASES[0]!, more: dispatch },
    ];
    await Promise.all(
      cases.map(async ({ options, env, sentence, more }) =>
        expectSentence(await startWorker([...options(), ...more], env?.()), sentence),
      ),
    );
  });

  test('without a queue, or without a place for pages, asks for it', async () => {
    expectSentence(await startWorker(['--blobs', freshDir()]), /no queue given/);
    const dispatch = ['--dispatch', `bullmq://:${PASSWORD}@127.0.0.1:${redis.port}`];
    expectSentence(await startWorker(dispatch), /needs a location for pages/);
  });
});

describe('seine doctor', () => {
  const doctor = (options: string[], env: Record<string, string> = {}) =>
    seine(['doctor', '--json', '--dir', freshDir(), ...options], { env: { ...S3_ENV, ...env } });
  interface Check {
    name: string;
    ok: boolean;
    detail: string;
    hint?: string;
    warning?: string;
  }
  const checksOf = (finished: Finished) =>
    new Map((lastJson(finished).checks as Check[]).map((check) => [check.name, check]));

  test('says of every part what is wrong with it, all at once', async () => {
    const examine = async (index: number) => {
      const cases = {
        redis: REDIS_CASES[index]!,
        store: STORE_CASES[index]!,
        blobs: BLOBS_CASES[index]!,
        lambda: LAMBDA_CASES[index]!,
      };
      const all = Object.values(cases);
      const dispatch = [cases.redis, cases.lambda].map(({ options }) => options()[1]).join(',');
      const options = [...cases.store.options(), ...cases.blobs.options(), '--dispatch', dispatch];
      const env = Object.assign({}, ...all.map((each) => each.env?.() ?? {}));
      const finished = await doctor(options, env);
      expect(finished.code).toBe(2);
      expect(finished.stdout + finished.stderr).not.toMatch(/hunter2/);
      const checks = checksOf(finished);
      for (const [part, { sentence, name }] of Object.entries(cases)) {
        const check = checks.get(part);
        expect(check, `${part}: ${name}`).toMatchObject({
          ok: false,
          detail: expect.stringMatching(sentence),
        });
        expect(check!.hint, `${part}: ${name}`).toMatch(/\S/);
      }
    };
    await Promise.all([0, 1, 2, 3].map(examine));
  });

  test('says of what works that it does, and what should be looked at', async () => {
    const options = ['--store', storeAt(`postgres:${PASSWORD}`, postgres.port)];
    options.push('--dispatch', `threads,bullmq://:${PASSWORD}@127.0.0.1:${redis.port}`);
    options.push('--blobs', `s3://${s3.bucket}/doctor`);
    const finished = await doctor(options, { SEINE_S3_ENDPOINT: s3.endpoint });
    expect(finished.code).toBe(0);
    const checks = checksOf(finished);
    expect(checks.get('store')?.detail).toMatch(/can be read and written, no jobs yet$/);
    expect(checks.get('blobs')?.detail).toMatch(
      /can be written, also with multipart uploads, read and deleted from$/,
    );
    expect(checks.get('redis')?.detail).toMatch(/^Redis \d+\.\S+ at \S+ works; live workers: 0/);
    expect(checks.get('redis')?.warning).toMatch(/allkeys-lru.*noeviction.*no live workers/);
    expect(await s3.keys()).toEqual([]);
    expect(await s3.uploads()).toEqual([]);
    expect(finished.stdout + finished.stderr).not.toMatch(/hunter2/);
  });
});

test('a worker whose metrics cannot be served ends, and takes no batch', async () => {
  const queue = `bullmq://:${PASSWORD}@127.0.0.1:${redis.port}`;
  const args = ['worker', '--dispatch', queue, '--blobs', freshDir(), '--workers', '1'];
  // A process of its own: an open connection to Redis would keep it from ending.
  const { code, stderr } = await seineProcess([...args, `--metrics=127.0.0.1:${site.port}`]);
  expect(stderr).toContain(`seine: cannot listen on 127.0.0.1:${site.port}: another program listens there\n`);
  expect(code).toBe(2);
});
