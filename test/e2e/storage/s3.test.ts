import { existsSync, readdirSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openS3Blobs } from '../../../src/blobs/s3-blobs.ts';
import { checkFolder } from '../../support/crash/check-folder.ts';
import { seine } from '../../support/seine-in-process.ts';
import { lastJson, temporaryFolder } from '../../support/seine-process.ts';
import { type Fault, type FaultProxy, startFaultProxy } from '../../support/servers/fault-proxy.ts';
import { S3_ENV, type S3Server, startS3Server } from '../../support/servers/s3-server.ts';
import { type LinkedSite, pathOf, startLinkedSite } from '../../support/sites/linked-site.ts';

const PAGES = 60;
let server: S3Server;
let proxy: FaultProxy;
let site: LinkedSite;
const folders: ReturnType<typeof temporaryFolder>[] = [];

beforeAll(async () => {
  Object.assign(process.env, S3_ENV);
  server = await startS3Server();
  proxy = await startFaultProxy(server);
  site = await startLinkedSite({ pages: PAGES });
});
afterAll(async () => {
  await site.close();
  await proxy.close();
  await server.close();
  for (const folder of folders) folder.remove();
});

function freshDir(): string {
  const folder = temporaryFolder();
  folders.push(folder);
  return folder.path;
}

const envOf = (endpoint: string) => ({ ...S3_ENV, SEINE_S3_ENDPOINT: endpoint });
const runArgs = (dir: string, blobs: string) => [
  ...['run', site.url, '--follow', '--rate', 'max', '--allow-private', '--name', 'site', '--json'],
  ...['--batch-size', '20', '--dir', dir, '--blobs', blobs],
];

/** Nothing arrives, from the first archive on. */
function outage(ms: number): (request: string) => Fault {
  let since: number | null = null;
  return (request) => {
    if (request.includes('.warc.gz')) since ??= performance.now();
    return since !== null && performance.now() - since < ms ? 'reset-request' : 'none';
  };
}

const BROKEN: Fault[] = ['reset-request', 'lose-reply', 'none'];

/** Past the proxy: every page of a done task is there and is the one that was fetched. */
async function expectWhole(dir: string, blobs: string, pages: number): Promise<void> {
  const at = { endpoint: server.endpoint, region: null, pathStyle: null };
  const facts = await checkFolder(dir, 'site', 1, openS3Blobs(blobs, at));
  expect(facts.unreadable).toEqual([]);
  expect(facts.pagesRead).toBe(pages);
}

describe('a crawl into S3', () => {
  test('keeps its pages there and reads them from there', async () => {
    const dir = freshDir();
    const blobs = `s3://${server.bucket}/crawl`;
    const env = envOf(server.endpoint);
    const run = await seine(runArgs(dir, blobs), { env });
    expect(run.stderr).toBe('');
    expect(run.code).toBe(0);
    expect(lastJson(run)).toMatchObject({ state: 'done', done: PAGES, dead: 0 });
    await expectWhole(dir, blobs, PAGES);
    expect(readdirSync(dir).filter((name) => !name.endsWith('.db'))).toEqual([]);
    expect((await server.keys()).filter((key) => key.includes('.tmp'))).toEqual([]);

    const url = new URL(pathOf(7), site.url).href;
    const page = await seine(['page', url, '--dir', dir, '--blobs', blobs], { env });
    expect(page.stderr).toBe('');
    expect(page.stdout).toBe(site.bodyOf(7));
    const byVariable = await seine(['page', url, '--dir', dir], { env: { ...env, SEINE_BLOBS: blobs } });
    expect(byVariable.stdout).toBe(site.bodyOf(7));
    const elsewhere = await seine(['page', url, '--dir', dir], { env });
    expect(elsewhere.code).not.toBe(0);

    const doctor = await seine(['doctor', '--dir', dir, '--blobs', blobs], { env });
    expect(doctor.code).toBe(0);
  });

  test.each<[string, (request: string, earlier: number, count: number) => Fault, string[]]>([
    [
      '30 % of 503',
      (_, earlier, count) => (earlier < 3 && count % 10 < 3 ? { status: 503, code: 'SlowDown' } : 'none'),
      [],
    ],
    [
      'broken and lost replies',
      (_, earlier, count) => (earlier < 3 ? BROKEN[count % BROKEN.length]! : 'none'),
      [],
    ],
    [
      '5 s of latency in every archive',
      (request) => (request.includes('.warc.gz') ? { delayMs: 5_000 } : 'none'),
      ['--depth', '1'],
    ],
    ['an outage of 4 s', outage(4_000), []],
  ])('loses nothing by %s', async (name, fault, more) => {
    const dir = freshDir();
    const blobs = `s3://${server.bucket}/${name.replace(/\W+/g, '-')}`;
    let count = 0;
    proxy.plan((request, earlier) => fault(request, earlier, count++));
    const run = await seine([...runArgs(dir, blobs), ...more], { env: envOf(proxy.endpoint) });
    const { accepted } = lastJson(run);
    expect(lastJson(run)).toMatchObject({ state: 'done', done: accepted, dead: 0 });
    expect(run.code).toBe(0);
    expect(proxy.log.some(({ fault }) => fault !== 'none')).toBe(true);
    await expectWhole(dir, blobs, accepted as number);
  });

  test('that cannot begin says why in one sentence, and asks the site for nothing', async () => {
    const dir = freshDir();
    const before = site.log.length;
    const env = envOf(server.endpoint);
    const missing = await seine(runArgs(dir, 's3://no-such-bucket/x'), { env });
    expect(missing.code).toBe(2);
    expect(missing.stderr).toMatch(/no bucket no-such-bucket at http/);
    const unknown = await seine(runArgs(dir, blobsOf()), { env: { ...env, AWS_ACCESS_KEY_ID: 'NOBODY' } });
    expect(unknown.code).toBe(2);
    expect(unknown.stderr).toMatch(/rejected the credentials/);
    const scheme = await seine(runArgs(dir, 'ftp://host/x'), { env });
    expect(scheme.code).toBe(2);
    expect(scheme.stderr).toMatch(/--blobs does not support ftp:/);
    expect(site.log.length).toBe(before);
    const doctor = await seine(['doctor', '--dir', dir, '--blobs', 's3://no-such-bucket/x'], { env });
    expect(doctor.code).toBe(2);
    expect(doctor.stdout).toMatch(/FAIL .*no bucket no-such-bucket/);
  });
});

const blobsOf = () => `s3://${server.bucket}/errors`;

test('blobs may be in another folder', async () => {
  const dir = freshDir();
  const other = freshDir();
  const run = await seine(runArgs(dir, `file://${other}/blobs`));
  expect(run.code).toBe(0);
  expect(existsSync(`${other}/blobs`)).toBe(true);
  expect(readdirSync(dir).filter((name) => !name.endsWith('.db'))).toEqual([]);
  const page = await seine(['page', site.url, '--dir', dir, '--blobs', `${other}/blobs`]);
  expect(page.stderr).toBe('');
  expect(page.stdout).toBe(site.bodyOf(0));
});
