import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { buildLambdaImage } from '../../../src/cli/lambda/build-image.ts';
import { type ShopSite, startShopSite } from '../../../src/sites/shop/shop-site.ts';
import { emulatorEnv, openLambdaSetup } from '../../support/fleet/lambda-setup.ts';
import { seine } from '../../support/seine-in-process.ts';
import {
  jsonLines,
  lastJson,
  type Started,
  startSeine,
  temporaryFolder,
} from '../../support/seine-process.ts';
import { type RedisServer, startRedis } from '../../support/servers/services.ts';

/** One job whose shelves are asked for over HTTP and whose products are shown in Chromium, wherever that is. */

const PRODUCTS = 8;
const BROWSER = { SEINE_BROWSER: 'bundled' };
const folder = temporaryFolder();
const at = (...parts: string[]) => join(folder.path, ...parts);
const started: Started[] = [];
let shop: ShopSite;
let wanted: Result & { done: number; dead: number };

interface Result {
  records: Map<string, unknown>;
  /** Null is the plain way, over HTTP. */
  attempts: { fetcher: string | null; worker: string }[];
}

beforeAll(async () => {
  shop = await startShopSite({ products: PRODUCTS, delayScale: 0 });
  mkdirSync(at('blobs'));
  const product = { css: 'h1', required: true };
  const job = {
    name: 'mixed',
    sources: shop.url,
    routes: [
      { name: 'product', match: '/product/*', fetcher: 'browser', select: { title: product, sku: '.sku' } },
      { name: 'shelf', match: ['/', '/category/*'] },
    ],
    follow: [
      { match: '/product/*', route: 'product' },
      { match: '/category/*', route: 'shelf' },
    ],
    batchSize: 4,
    retry: { baseMs: 50, maxMs: 200 },
    politeness: { rate: 'max' },
    allowPrivate: true,
  };
  writeFileSync(at('mixed.json'), JSON.stringify(job));
  const run = await seine([...runArgs('threads'), '--workers', '1'], { env: BROWSER });
  const { done, dead } = lastJson(run) as { done: number; dead: number };
  wanted = { ...(await resultOf('threads')), done, dead };
  expect(wanted.records.size).toBe(PRODUCTS);
});
afterEach(async () => {
  for (const { killTree } of started.splice(0)) await killTree();
});
afterAll(async () => {
  await shop.close();
  folder.remove();
});

const placesOf = (dir: string) => ['--dir', at(dir), '--blobs', at('blobs')];
const runArgs = (dir: string) => ['run', at('mixed.json'), '--json', ...placesOf(dir)];

async function resultOf(dir: string): Promise<Result> {
  const rows = async <T>(what: string) => {
    const { stdout, stderr } = await seine(['export', 'mixed', '--what', what, ...placesOf(dir)]);
    expect(stderr).toBe('');
    return jsonLines<T>(stdout);
  };
  const records = await rows<{ url: string; data: unknown }>('records');
  return {
    records: new Map(records.map(({ url, data }) => [url, data])),
    attempts: await rows<Result['attempts'][0]>('attempts'),
  };
}

/** Starts it, and collects what it says to people. */
function start(args: string[], env: Record<string, string> = {}): Started & { said(): string } {
  const one = startSeine(args, { env });
  started.push(one);
  let text = '';
  one.child.stderr!.on('data', (chunk) => {
    text += chunk;
  });
  return { ...one, said: () => text };
}

async function expectDone({ finished }: Started): Promise<void> {
  const result = await finished;
  expect(lastJson(result), result.stderr).toMatchObject({
    state: 'done',
    done: wanted.done,
    dead: wanted.dead,
  });
}

test('over Redis, pages wait for a worker with a browser, and the run says why; each worker does what it can', async () => {
  const redis: RedisServer = await startRedis();
  const queue = `${redis.url.replace('redis:', 'bullmq:')}?prefix=browser`;
  const worker = async (kind: string) => {
    const args = ['worker', '--kind', kind, '--allow-private', '--workers', '1', '--dispatch', queue];
    const { said } = start([...args, '--blobs', at('blobs')], BROWSER);
    await vi.waitFor(() => expect(said()).toContain(`takes ${kind} batches`), {
      timeout: 60_000,
      interval: 20,
    });
    return /worker (\S+) takes/.exec(said())![1]!;
  };
  const http = await worker('http');
  const run = start([...runArgs('bullmq'), '--dispatch', queue]);
  await vi.waitFor(
    () =>
      expect(run.said()).toMatch(
        /pages need a browser, but no worker has one: start some with `seine worker --kind browser`/,
      ),
    { timeout: 60_000, interval: 50 },
  );
  const browser = await worker('browser');
  await expectDone(run);
  const { records, attempts } = await resultOf('bullmq');
  expect(records).toEqual(wanted.records);
  const namesOf = (fetcher: string | null) =>
    new Set(attempts.filter((each) => each.fetcher === fetcher).map((each) => each.worker.split('/')[0]));
  expect(namesOf('browser')).toEqual(new Set([browser]));
  expect(namesOf(null)).toContain(http);
  await redis.stop();
});

test('in Lambda, they go to the function of the image; one that is killed loses nothing', async () => {
  const image = await buildLambdaImage(at('image'));
  const setup = await openLambdaSetup(at('blobs'), { image: image.folder, name: 'shows', memoryMb: 2_048 });
  const env = {
    ...emulatorEnv(setup.emulator),
    SEINE_LAMBDA_CONCURRENCY: '2',
  };
  const deploy = ['lambda', 'deploy', '--blobs', at('blobs'), '--env', 'SEINE_ALLOW_PRIVATE=job'];
  expect((await seine(deploy, { env })).stdout).toContain('use it with --dispatch lambda://seine');
  const args = [...runArgs('lambda'), '--dispatch', 'lambda://seine'];

  const refused = await seine(args, { env });
  expect(refused.code).toBe(2);
  expect(refused.stderr).toMatch(
    /^seine: pages need a browser, but the function seine has none\n {2}build .+\n$/,
  );

  shop.log.length = 0;
  const run = start(args, { ...env, SEINE_LAMBDA_BROWSER_FUNCTION: 'shows' });
  const isShown = () => shop.log.some(({ path }) => path.startsWith('/product/'));
  await vi.waitFor(() => expect(isShown()).toBe(true), { timeout: 60_000, interval: 20 });
  const killed = setup.emulator.pidsOf('shows');
  expect(killed.length).toBeGreaterThan(0);
  for (const pid of killed) process.kill(pid, 'SIGKILL');
  await expectDone(run);
  const { records, attempts } = await resultOf('lambda');
  expect(records).toEqual(wanted.records);
  expect(new Set(attempts.map(({ fetcher }) => fetcher))).toEqual(new Set([null, 'browser']));
  await setup.close();
});
