import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { makeContext } from '../../../src/cli/context.ts';
import { buildLambdaZip, type LambdaZip, ZIP_BYTES_MAX } from '../../../src/cli/lambda/build-zip.ts';
import { lambdaCommand } from '../../../src/cli/lambda/lambda.ts';
import { parseCommandLine } from '../../../src/cli/parse-args.ts';
import type { HostProfile } from '../../../src/core/calibration/host-profile.ts';
import { type LambdaEmulator, startLambdaEmulator } from '../../../src/lambda-emulator/emulator.ts';
import { openSqliteStore } from '../../../src/store/sqlite/sqlite-store.ts';
import { batchOf, deliver, expectWhole, openSite } from '../../contract/dispatcher-contract.ts';
import { temporaryFolder } from '../../support/fixtures.ts';
import { emulatorEnv, FAKE_CREDENTIALS, openLambdaSetup } from '../../support/fleet/lambda-setup.ts';

/** `seine lambda …` in this very process; what it prints. */
async function lambda(...args: string[]): Promise<string> {
  let printed = '';
  const write = (text: string) => {
    printed += text;
  };
  const context = await makeContext(parseCommandLine(['lambda', ...args]), process);
  await lambdaCommand({ ...context, stdout: { write } as NodeJS.WriteStream });
  return printed;
}

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let zip: LambdaZip;
let zipPath: string;
const timeZone = process.env.TZ;
beforeAll(async () => {
  Object.assign(process.env, FAKE_CREDENTIALS, { AWS_REGION: 'eu-west-1' });
  folder = await temporaryFolder();
  zip = await buildLambdaZip();
  zipPath = `${folder.dir}/worker.zip`;
  await writeFile(zipPath, zip.bytes);
});
afterEach(() => {
  if (timeZone === undefined) delete process.env.TZ;
  else process.env.TZ = timeZone;
});
afterAll(() => folder.remove());

describe('the zip', () => {
  test('is small, and the same each time, wherever it is built', async () => {
    expect(zip.bytes.length).toBeLessThan(ZIP_BYTES_MAX);
    expect(zip.files).toContain('index.mjs');
    process.env.TZ = 'Pacific/Auckland';
    const path = `${folder.dir}/again.zip`;
    expect(await lambda('build', '-o', path)).toContain(zip.sha256);
    expect((await readFile(path)).equals(zip.bytes)).toBe(true);
  });

  test('works on batches, also with what it loads only when needed; what it lacks it says', async () => {
    const site = await openSite();
    const setup = await openLambdaSetup(folder.dir, { zip: zip.bytes, concurrency: 1 });
    const dispatcher = await setup.open();
    expect(dispatcher.serves?.('browser')).toBe(false);
    expect(dispatcher.refusal?.('browser')?.message).toBe(
      'pages need a browser, but the function seine has none',
    );
    const shown = await deliver(dispatcher, { ...batchOf(site, { paths: ['/1'] }), needs: 'browser' });
    expect(shown.reports).toMatchObject([
      { outcomes: [{ kind: 'deferred' }], trouble: expect.stringContaining('the function seine has none') },
    ]);
    expect(site.paths).toEqual([]);
    const select = { number: { regex: '/(\\d+)' }, text: { css: 'body', type: 'markdown' } } as const;
    const schema = { type: 'object', required: ['number'] };
    const spec = { routes: [{ name: 'p', select, schema }] };
    const batch = batchOf(site, { paths: ['/1', '/2', '/3', '/099'], spec });
    batch.cookies = [];
    const plain = { level: 0, fetcher: 'http', headers: 'full', identity: null, pool: null } as const;
    batch.tasks[1]!.fetchMethod = { ...plain, identity: 'seed' };
    batch.tasks[2]!.fetchMethod = { ...plain, fetcher: 'impersonate' };
    const { reports } = await deliver(dispatcher, batch);
    await dispatcher.close();
    await setup.close();
    await site.close();
    expectWhole(batch, reports);
    const outcomes = reports.flatMap((part) => part.outcomes).sort((a, b) => a.taskId - b.taskId);
    expect(outcomes).toMatchObject([
      { kind: 'fetched', records: [{}] },
      { kind: 'fetched', records: [{}] },
      { kind: 'failed' },
      { kind: 'failed', code: 'protocol' },
    ]);
    expect(JSON.stringify(outcomes[2])).toContain('impit is not part of the zip for Lambda');
  });
});

describe('deploying', () => {
  let emulator: LambdaEmulator;
  beforeAll(async () => {
    emulator = await startLambdaEmulator({ concurrency: 3 });
    Object.assign(process.env, emulatorEnv(emulator));
  });
  afterAll(async () => {
    for (const name of Object.keys(emulatorEnv(emulator))) delete process.env[name];
    await emulator.close();
  });

  const deploy = async (...args: string[]) => {
    const base = ['deploy', '--name', 'other', '--zip', zipPath, '--blobs', 's3://bucket/crawl', '--json'];
    return JSON.parse(await lambda(...base, ...args)).changes;
  };

  test('does everything once, then nothing, then only what differs; secrets are not shown', async () => {
    const all = [
      'create the role other-lambda',
      'let the role other-lambda write its log, read and write s3://bucket/crawl',
      'create the function other: 1024 MB, 120 s, /tmp 512 MB, nodejs24.x, x86_64',
    ];
    expect(await deploy('--dry-run')).toEqual(all);
    expect(await deploy()).toEqual(all);
    expect(await deploy()).toEqual([]);
    const more = ['--memory', '512', '--env', 'TOKEN=very-secret'];
    expect(await deploy(...more)).toEqual(['change other: memory 1024 → 512; variables TOKEN']);
    expect(await deploy(...more)).toEqual([]);
    const dir = `${folder.dir}/calibrated`;
    await mkdir(dir);
    const store = openSqliteStore(`${dir}/seine.db`, { sync: 'normal', checkpointThread: false });
    const auto = [...more, '--timeout', 'auto', '--dir', dir];
    await expect(deploy(...auto)).rejects.toThrow('needs a host that was calibrated');
    for (const [host, batchTimeoutMs] of [
      ['a.example', 41_100],
      ['b.example', 12_000],
    ] as const) {
      const profile = { host, batchTimeoutMs, measuredAt: Date.now(), expiresAt: Date.now() + 3_600_000 };
      await store.hosts.saveProfile(profile as HostProfile, null);
    }
    expect(await deploy(...auto, '--dry-run')).toEqual(['change other: timeout 120 → 42']);
    await store.close();
    const [policy] = emulator.roles.policiesOf('other-lambda').values();
    expect(policy).toContain('arn:aws:s3:::bucket/crawl/*');
    const base = ['deploy', '--name', 'other', '--zip', zipPath, '--blobs', 's3://bucket/new'];
    const elsewhere = await lambda(...base, ...more);
    expect(elsewhere.split('\n').slice(1, 4)).toEqual([
      'plan for other in eu-west-1:',
      '  let the role other-lambda write its log, read and write s3://bucket/new',
      '  change other: variables SEINE_BLOBS',
    ]);
    expect(elsewhere).not.toContain('very-secret');
  });

  test('gives the fleet key to the function, and does not show it', async () => {
    const key = 'k'.repeat(43);
    process.env.SEINE_FLEET_KEY = key;
    try {
      const base = ['deploy', '--name', 'other', '--zip', zipPath, '--blobs', 's3://bucket/new', '--dry-run'];
      const plan = await lambda(...base, '--memory', '512', '--env', 'TOKEN=very-secret');
      expect(plan).toContain('change other: variables SEINE_FLEET_KEY\n');
      expect(plan).not.toContain(key);
    } finally {
      delete process.env.SEINE_FLEET_KEY;
    }
  });

  test('of an image has more room by default, and takes another image, but never a zip', async () => {
    await mkdir(`${folder.dir}/image`);
    await writeFile(`${folder.dir}/image/Dockerfile`, 'CMD ["index.handler"]\n');
    const other = await startLambdaEmulator({ image: `${folder.dir}/image` });
    Object.assign(process.env, emulatorEnv(other));
    try {
      const uri = '123456789012.dkr.ecr.eu-west-1.amazonaws.com/seine-browser';
      const base = ['deploy', '--blobs', 's3://bucket/crawl', '--json', '--kind'];
      const ofImage = async (tag: string, ...more: string[]) =>
        JSON.parse(await lambda(...base, 'browser', '--image', `${uri}:${tag}`, ...more)).changes;
      const all = await ofImage('1');
      expect(all.at(-1)).toBe(
        'create the function seine-browser: 2048 MB, 120 s, /tmp 2048 MB, an image, x86_64',
      );
      expect(await ofImage('1')).toEqual([]);
      expect(await ofImage('2', '--memory', '3000')).toEqual([
        'update the code of seine-browser (x86_64)',
        'change seine-browser: memory 2048 → 3000',
      ]);
      expect(await ofImage('2', '--memory', '3000')).toEqual([]);
      await expect(lambda(...base, 'http', '--name', 'seine-browser', '--zip', zipPath)).rejects.toThrow(
        'the function seine-browser uses an image, and Lambda cannot change it to a zip',
      );
    } finally {
      Object.assign(process.env, emulatorEnv(emulator));
      await other.close();
    }
  });

  test('what was deployed can be warmed, as far as Lambda has room', async () => {
    expect(JSON.parse(await lambda('warm', '--name', 'other', '--count', '5', '--json'))).toEqual({
      function: 'other',
      warm: 3,
      made: 3,
      refused: 2,
    });
    expect(await lambda('warm', '--name', 'other', '--count', '2')).toBe(
      '2 environments of other are warm, 0 of them new\n',
    );
  });
});

describe('what is wrong is said in one sentence', () => {
  test.each([
    [[], 'seine lambda needs one of build, deploy, warm and local'],
    [['fly'], "got 'fly'"],
    [['deploy', '--blobs', './here'], 'Lambda workers need S3 storage for pages'],
    [['deploy', '--blobs', 's3://x'], 's3://x has no valid bucket name'],
    [['deploy', '--blobs', 's3://bucket/x', '--memory', '1'], '--memory must be a number from 128 to 10240'],
    [
      ['deploy', '--blobs', 's3://bucket/x', '--architecture', 'mips'],
      '--architecture must be x86_64 or arm64',
    ],
    [['deploy', '--blobs', 's3://bucket/x', '--env', 'x'], '--env needs NAME=value'],
    [['deploy', '--blobs', 's3://bucket/x', '--kind', 'odd'], "invalid value for --kind: 'odd'"],
    [['deploy', '--blobs', 's3://bucket/x', '--kind', 'browser'], 'needs an image'],
    [
      ['deploy', '--blobs', 's3://bucket/x', '--kind', 'browser', '--image', 'x y'],
      "'x y' is not an image URI",
    ],
    [
      ['deploy', '--blobs', 's3://bucket/x', '--kind', 'browser', '--architecture', 'arm64'],
      'the Chromium of the image runs only on x86_64',
    ],
    [['deploy', '--blobs', 's3://bucket/x', '--image', 'x:1'], '--image needs --kind browser'],
    [['local', '--image', '/nowhere'], 'cannot read the image'],
    [['local', '--zip', '/nowhere.zip'], 'cannot read the zip'],
    [['local', '--port', '99999'], '--port must be a number from 0 to 65535'],
    [['warm', '--name', 'a b'], "'a b' is not a valid function name"],
  ])('%j', async (args, sentence) => {
    await expect(lambda(...args)).rejects.toThrow(sentence);
  });

  test('the port of another', async () => {
    const emulator = await startLambdaEmulator();
    const port = new URL(emulator.url).port;
    await expect(lambda('local', '--port', port)).rejects.toThrow(
      `cannot listen on port ${port} (EADDRINUSE)`,
    );
    await emulator.close();
  });

  test('Lambda that is not there', async () => {
    process.env.SEINE_LAMBDA_ENDPOINT = 'http://127.0.0.1:9';
    await expect(lambda('warm')).rejects.toThrow('cannot reach http://127.0.0.1:9: ECONNREFUSED');
    delete process.env.SEINE_LAMBDA_ENDPOINT;
  });
});
