import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { openS3Blobs } from '../../../src/blobs/s3-blobs.ts';
import { buildLambdaZip } from '../../../src/cli/lambda/build-zip.ts';
import type { Blobs } from '../../../src/ports/blobs.ts';
import { checkFolder } from '../../support/crash/check-folder.ts';
import { emulatorEnv } from '../../support/fleet/lambda-setup.ts';
import { lastJson, type Started, seine, startSeine, temporaryFolder } from '../../support/seine-process.ts';
import { S3_ENV, startS3Server } from '../../support/servers/s3-server.ts';
import { countByPath, type LinkedSite, startLinkedSite } from '../../support/sites/linked-site.ts';

const PAGES = 120;
let site: LinkedSite;
const started: Started[] = [];
const folders: ReturnType<typeof temporaryFolder>[] = [];

beforeAll(async () => {
  site = await startLinkedSite({ pages: PAGES, delayMs: 10 });
});
afterEach(async () => {
  for (const one of started.splice(0)) await one.killTree();
  site.log.length = 0;
});
afterAll(async () => {
  await site.close();
  for (const folder of folders) folder.remove();
});

function freshDir(): string {
  const folder = temporaryFolder();
  folders.push(folder);
  return folder.path;
}

interface Local {
  pid: number;
  env: Record<string, string>;
}

/** `seine lambda local`, and the environment in which others find it. */
async function startLocal(args: string[], env: Record<string, string> = {}): Promise<Local> {
  const local = startSeine(['lambda', 'local', '--json', '--concurrency', '3', ...args], { env });
  started.push(local);
  const { promise, resolve, reject } = Promise.withResolvers<{ url: string; credentials: string }>();
  local.child.stdout!.once('data', (chunk: Buffer) => resolve(JSON.parse(chunk.toString())));
  void local.finished.then(({ stderr }) => reject(new Error(stderr)));
  const { url, credentials: credentialsFile } = await promise;
  return { pid: local.child.pid!, env: { ...env, ...emulatorEnv({ url, credentialsFile }) } };
}

const runArgs = (dir: string) => [
  ...['run', site.url, '--follow', '--rate', 'max', '--allow-private', '--name', 'site', '--json'],
  ...['--batch-size', '10', '--dir', dir, '--dispatch', 'lambda://seine'],
];

async function expectWhole(dir: string, blobs?: Promise<Blobs> | Blobs): Promise<void> {
  const facts = await checkFolder(dir, 'site', 1, ...(blobs ? [await blobs] : []));
  expect(facts.unreadable).toEqual([]);
  expect(facts.pagesRead).toBe(PAGES);
}

const childrenOf = (pid: number) =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number);

describe('a crawl in Lambda', () => {
  test('is whole, and asks for each page once', async () => {
    const dir = freshDir();
    const { env } = await startLocal(['--dir', dir]);
    const run = await seine(runArgs(dir), { env });
    expect(run.stderr).toBe('');
    const result = lastJson(run);
    expect(result).toMatchObject({ state: 'done', done: PAGES, dead: 0 });
    const { invocations, gbSeconds, usd } = result.cost as Record<string, number>;
    expect(invocations).toBeGreaterThanOrEqual(PAGES / 10);
    expect(gbSeconds).toBeGreaterThan(0);
    expect(usd).toBeGreaterThan(0);
    const asked = countByPath(site.log);
    asked.delete('/robots.txt');
    expect(asked.size).toBe(PAGES);
    expect([...asked].filter(([, count]) => count > 1)).toEqual([]);
    await expectWhole(dir);
  });

  test('by the zip, with pages in S3, loses nothing when environments are killed', async () => {
    const dir = freshDir();
    const zip = join(dir, 'worker.zip');
    writeFileSync(zip, (await buildLambdaZip()).bytes);
    const server = await startS3Server();
    const blobs = ['--blobs', `s3://${server.bucket}/crawl`];
    const s3 = { ...S3_ENV, SEINE_S3_ENDPOINT: server.endpoint };
    const { env, pid } = await startLocal(['--zip', zip, ...blobs], s3);
    const run = seine([...runArgs(dir), ...blobs], { env });
    let kills = 0;
    for (const requests of [15, 50, 90]) {
      await site.requests(requests);
      for (const child of childrenOf(pid).slice(0, 1)) {
        process.kill(child, 'SIGKILL');
        kills++;
      }
    }
    expect(lastJson(await run)).toMatchObject({ state: 'done', done: PAGES, dead: 0 });
    expect(kills).toBeGreaterThan(0);
    // A batch has 10 tasks at most: no more than those of killed environments are asked for again.
    expect(site.log.filter(({ path }) => path !== '/robots.txt').length).toBeLessThanOrEqual(
      PAGES + kills * 10,
    );
    Object.assign(process.env, S3_ENV);
    const at = { endpoint: server.endpoint, region: null, pathStyle: null };
    await expectWhole(dir, openS3Blobs(blobs[1]!, at));
    await server.close();
  });
});

describe('what is wrong is said in one sentence', () => {
  test('a function that is not there, or Lambda that is not', async () => {
    const dir = freshDir();
    const { env } = await startLocal(['--dir', dir]);
    const absent = await seine(['run', site.url, '--dir', dir, '--dispatch', 'lambda://nobody'], { env });
    expect([absent.code, absent.stderr]).toEqual([
      2,
      expect.stringContaining('the function nobody does not exist'),
    ]);
    const gone = { ...env, SEINE_LAMBDA_ENDPOINT: 'http://127.0.0.1:9' };
    const unreachable = await seine(['run', site.url, '--dir', dir, '--dispatch', 'lambda://seine'], {
      env: gone,
    });
    expect(unreachable.code).toBe(2);
    expect(unreachable.stderr).toContain('cannot reach http://127.0.0.1:9: ECONNREFUSED');
    expect(site.log).toEqual([]);
  });
});
