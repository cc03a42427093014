import { execFile } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ShopSite, startShopSite } from '../../../src/sites/shop/shop-site.ts';
import { seine } from '../../support/seine-in-process.ts';
import { jsonLines, lastJson, startSeine, temporaryFolder } from '../../support/seine-process.ts';
import { md5, pictureOf, sha256 } from '../../support/worker/media-setup.ts';

/** Media from the command line to the export, over whole runs. */

const PICTURES = 300;
const DISTINCT = 270;
const folder = temporaryFolder();
const at = (name: string) => join(folder.path, name);
const pictures = Array.from({ length: PICTURES }, (_, index) =>
  pictureOf(index % DISTINCT, 20_000 + (index % DISTINCT)),
);
const served: string[] = [];
let server: Server;
let origin: string;

interface MediaRow {
  url: string;
  key: string;
  member: string | null;
  bytes: number;
  md5: string;
  sha256: string;
  contentType: string;
  referrers: string[];
  meta: Record<string, unknown> | null;
}

beforeAll(async () => {
  server = createServer((request, response) => {
    const path = request.url ?? '';
    served.push(`${request.headers['if-none-match'] ?? '-'} ${path}`);
    const picture = pictures[Number(/^\/(\d+)\.jpg$/.exec(path)?.[1] ?? Number.NaN)];
    if (path === '/page.jpg')
      return response.writeHead(200, { 'content-type': 'image/jpeg' }).end('<!doctype html>');
    if (!picture) return response.writeHead(404).end();
    const etag = `"${md5(picture)}"`;
    if (request.headers['if-none-match'] === etag) return response.writeHead(304, { etag }).end();
    return response.writeHead(200, { 'content-type': 'image/jpeg', etag }).end(picture);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const rows = pictures.map((_, index) => `${origin}/${index}.jpg,picture ${index}`);
  writeFileSync(at('pictures.csv'), `image_url,caption\n${rows.join('\n')}\n`);
});

afterAll(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  folder.remove();
});

const FLAGS = ['--media', '--rate', 'max', '--allow-private', '--json'];
const run = (list: string, dir: string, ...flags: string[]) =>
  seine(['run', at(list), ...FLAGS, '--dir', at(dir), ...flags]);

async function mediaOf(dir: string): Promise<MediaRow[]> {
  const { stdout, code } = await seine(['export', '--what', 'media', '--dir', at(dir)]);
  expect(code).toBe(0);
  return jsonLines<MediaRow>(stdout);
}

function filesBelow(dir: string): string[] {
  return readdirSync(at(dir), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name));
}

/** Every row leads to bytes of its hash, and every picture has its row. */
function checkStored(dir: string, rows: MediaRow[]): void {
  expect(rows).toHaveLength(PICTURES);
  for (const row of rows) {
    const index = Number(/(\d+)\.jpg$/.exec(row.url)![1]);
    const picture = pictures[index]!;
    expect(row).toMatchObject({
      bytes: picture.length,
      md5: md5(picture),
      sha256: sha256(picture),
      contentType: 'image/jpeg',
      meta: { caption: `picture ${index}` },
    });
    if (row.member === null) expect(sha256(readFileSync(join(at(dir), row.key)))).toBe(row.sha256);
  }
}

describe('a list of pictures', () => {
  test('is stored, each picture once, with the columns of the list', async () => {
    const result = await run('pictures.csv', 'loose');
    expect(result.code, result.stderr).toBe(0);
    expect(lastJson(result)).toMatchObject({ state: 'done', accepted: PICTURES, done: PICTURES });
    checkStored('loose', await mediaOf('loose'));
    expect(filesBelow('loose/media')).toHaveLength(DISTINCT);
    expect(filesBelow('loose').filter((path) => path.endsWith('.warc.gz'))).toEqual([]);
  });

  test('is visited again without a body where nothing changed', async () => {
    served.length = 0;
    const result = await run('pictures.csv', 'loose', '--refresh');
    expect(result.code, result.stderr).toBe(0);
    expect(lastJson(result)).toMatchObject({ unchanged: PICTURES });
    expect(served.filter((line) => line.startsWith('- ') && !line.endsWith('/robots.txt'))).toEqual([]);
    checkStored('loose', await mediaOf('loose'));
  });

  test('goes into shards that tar reads', async () => {
    const result = await run('pictures.csv', 'packed', '--pack', 'webdataset');
    expect(result.code, result.stderr).toBe(0);
    const rows = await mediaOf('packed');
    checkStored('packed', rows);
    const members = new Set<string>();
    for (const key of new Set(rows.map((row) => row.key))) {
      const { stdout } = await promisify(execFile)('tar', ['tf', join(at('packed'), key)]);
      for (const name of stdout.trimEnd().split('\n')) members.add(`${key} ${name}`);
    }
    for (const { key, member } of rows) {
      expect(members).toContain(`${key} ${member}`);
      expect(members).toContain(`${key} ${member!.replace('.jpg', '.json')}`);
    }
  });

  test('may hold what is no picture: a dead letter that says so', async () => {
    writeFileSync(at('mixed.txt'), `${origin}/0.jpg\n${origin}/page.jpg\n${origin}/missing.jpg\n`);
    const result = await run('mixed.txt', 'mixed', '--media-types', 'image/*');
    expect(lastJson(result)).toMatchObject({ done: 1, dead: 2 });
    const { stdout } = await seine(['dead', '--json', '--dir', at('mixed')]);
    expect(stdout).toContain('media-type');
    expect(stdout).toContain('the media type is text/html');
    expect(filesBelow('mixed/media')).toHaveLength(1);
    // A data set says of each URL what became of it; the bytes of the first are noise.
    const exported = await seine([
      'export',
      '--what',
      'dataset',
      '-o',
      at('set'),
      '--json',
      '--dir',
      at('mixed'),
    ]);
    expect(lastJson(exported), exported.stderr).toMatchObject({ samples: 0, failed: 3 });
  });

  test('is complete after kill -9 and resume, with no half picture', async () => {
    const flags = ['run', at('pictures.csv'), '--media', '--rate', '150', '--allow-private', '--json'];
    const before = served.length;
    const started = startSeine([...flags, '--dir', at('killed')]);
    await expect.poll(() => served.length - before).toBeGreaterThan(60);
    await started.killTree();
    for (const path of filesBelow('killed').filter((name) => name.includes('/media/')))
      expect(path).toContain(sha256(readFileSync(path)));
    const result = await seine(['resume', '--json', '--dir', at('killed')]);
    expect(lastJson(result)).toMatchObject({ state: 'done', done: PICTURES });
    checkStored('killed', await mediaOf('killed'));
    expect(filesBelow('killed/media')).toHaveLength(DISTINCT);
  });

  test.each([[['--pack', 'zip'], /--pack must be one of none, webdataset, got 'zip'/]])(
    '%j is a mistake that is said',
    async (flags, message) => {
      const result = await run('pictures.csv', 'wrong', ...flags);
      expect([result.code, result.stderr]).toEqual([2, expect.stringMatching(message)]);
    },
  );
});

describe('pictures of pages', () => {
  const EXAMPLE = fileURLToPath(new URL('../../../examples/images.yaml', import.meta.url));
  let shop: ShopSite;
  beforeAll(async () => {
    shop = await startShopSite({ products: 40, delayScale: 0 });
  });
  afterAll(() => shop.close());

  test('examples/images.yaml stores the picture of each product and the mark of the shop', async () => {
    const yaml = readFileSync(EXAMPLE, 'utf8');
    expect(yaml).toContain('http://127.0.0.1:8080/');
    writeFileSync(at('images.yaml'), yaml.replace('http://127.0.0.1:8080/', shop.url));
    const result = await seine(['run', at('images.yaml'), '--json', '--dir', at('shop')]);
    expect(lastJson(result), result.stderr).toMatchObject({ state: 'done', records: 40 });
    const rows = await mediaOf('shop');
    const drawings = rows.filter((row) => row.contentType === 'image/svg+xml');
    expect(drawings).toHaveLength(40);
    for (const { referrers, meta, key } of drawings) {
      expect(referrers).toHaveLength(1);
      expect(referrers[0]).toMatch(/\/product\//);
      expect(meta).toEqual({ referrer: referrers[0] });
      expect(key).toMatch(/^media\/.*\.svg$/);
    }
    const [mark, ...others] = rows.filter((row) => row.contentType !== 'image/svg+xml');
    expect(others).toEqual([]);
    // On every listing, and each is kept.
    expect(mark!.referrers.length).toBeGreaterThan(5);
    expect(filesBelow('shop/media').length).toBe(new Set(rows.map((row) => row.sha256)).size);
  });
});
