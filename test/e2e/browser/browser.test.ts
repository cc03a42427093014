import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ShopSite, startShopSite } from '../../../src/sites/shop/shop-site.ts';
import { seine } from '../../support/seine-in-process.ts';
import { jsonLines, lastJson, temporaryFolder } from '../../support/seine-process.ts';

/** Whole runs with a real Chromium, against the bundled shop and its twin that is drawn by a script. */

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
const PRODUCTS = 16;
const folder = temporaryFolder();
const at = (name: string) => join(folder.path, name);
const environment = (dir: string) => ({ SEINE_DIR: at(dir), SEINE_WORKERS: '1' });
let plain: ShopSite;
let scripted: ShopSite;

beforeAll(async () => {
  const options = { products: PRODUCTS, delayScale: 0 };
  plain = await startShopSite(options);
  scripted = await startShopSite({ ...options, isScripted: true });
});

afterAll(async () => {
  await plain.close();
  await scripted.close();
  folder.remove();
});

function example(name: string, site: ShopSite): string {
  const text = readFileSync(join(ROOT, 'examples', name), 'utf8');
  expect(text).toContain('http://127.0.0.1:8080/');
  const path = at(`${new URL(site.url).port}-${name}`);
  writeFileSync(path, text.replaceAll('http://127.0.0.1:8080/', site.url));
  return path;
}

interface Shot {
  url: string;
  kind: string;
  key: string;
  type: string;
  bytes: number;
}

const rowsOf = async <T>(dir: string, what: string): Promise<T[]> => {
  const { stdout, code, stderr } = await seine(['export', '--what', what], { env: environment(dir) });
  expect(code, stderr).toBe(0);
  return jsonLines<T>(stdout);
};

/** By path, as the twins have different origins. */
async function recordsOf(dir: string): Promise<Map<string, unknown>> {
  const records = await rowsOf<{ url: string; data: unknown }>(dir, 'records');
  return new Map(records.map(({ url, data }) => [new URL(url).pathname, data]));
}

/** Width and height of a PNG. */
function sizeOf(png: Buffer): [number, number] {
  expect(png.subarray(0, 8)).toEqual(Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]));
  return [png.readUInt32BE(16), png.readUInt32BE(20)];
}

/** Of a ZIP file whose entries are stored as they are: the last mention of a name is in the directory. */
function storedEntry(zip: Buffer, name: string): Buffer {
  const entry = zip.lastIndexOf(name) - 46;
  const [bytes, header] = [zip.readUInt32LE(entry + 20), zip.readUInt32LE(entry + 42)];
  const start = header + 30 + zip.readUInt16LE(header + 26) + zip.readUInt16LE(header + 28);
  return zip.subarray(start, start + bytes);
}

describe('a shop that is drawn by scripts', () => {
  test('gives the records of its plain twin, with few requests in vain', async () => {
    const plainRun = await seine(['run', example('shop.yaml', plain), '--json'], {
      env: environment('plain'),
    });
    expect(plainRun.code, plainRun.stderr).toBe(3);
    const run = await seine(['run', example('scripted.yaml', scripted), '--json'], {
      env: environment('scripted'),
    });
    expect(run.code, run.stderr).toBe(3);
    const records = await recordsOf('scripted');
    expect(records.size).toBe(PRODUCTS);
    expect(records).toEqual(await recordsOf('plain'));

    const attempts = await rowsOf<{ fetcher: string; failureCode: string | null }>('scripted', 'attempts');
    const shells = attempts.filter(({ failureCode }) => failureCode === 'script-only');
    expect(shells.length).toBeGreaterThan(0);
    // Four of each folder (products, categories, the root), and what was out until that was known.
    const rendered = attempts.filter(({ fetcher }) => fetcher === 'browser');
    expect(shells.length).toBeLessThan(rendered.length);
    expect(lastJson(run).retries).toBe(lastJson(plainRun).retries);
  });

  test('is shown in pictures, and on a contact sheet', async () => {
    const job = example('shots.yaml', scripted);
    writeFileSync(job, `${readFileSync(job, 'utf8')}\narchive: { subresources: true }\n`);
    const run = await seine(['run', job, '--json'], { env: environment('shots') });
    expect(run.code, run.stderr).toBe(0);
    const shots = await rowsOf<Shot>('shots', 'shots');
    expect(shots.length).toBe(scripted.expected.categoryPages);
    for (const { key, type, bytes } of shots) {
      expect(type).toBe('image/jpeg');
      const picture = readFileSync(at(`shots/${key}`));
      expect(picture.length).toBe(bytes);
      expect(picture.subarray(0, 3)).toEqual(Buffer.from([0xff, 0xd8, 0xff]));
      expect(bytes).toBeGreaterThan(5_000);
    }
    const sheet = readFileSync(String(lastJson(run).sheet), 'utf8');
    for (const { key, url } of shots) {
      expect(sheet).toContain(`src="../../${key}"`);
      expect(sheet).toContain(url);
    }

    const packed = await seine(['export', 'shots', '--what', 'wacz', '-o', at('shots.wacz')], {
      env: environment('shots'),
    });
    expect(packed.code, packed.stderr).toBe(0);
    const lines = gunzipSync(storedEntry(readFileSync(at('shots.wacz')), 'indexes/index.cdx.gz'))
      .toString()
      .trim()
      .split('\n');
    const scripts = lines
      .map((line) => JSON.parse(line.slice(line.indexOf('{'))) as { url: string; mime: string })
      .filter(({ url }) => url === new URL('/app.js', scripted.url).href);
    expect(scripts.map(({ mime }) => mime)).toContain('text/javascript');
  });
});

test('run --screenshot takes PNGs of whole pages, which every command finds', async () => {
  const url = new URL('/category/lighting', plain.url).href;
  const missing = new URL('/nowhere', plain.url).href;
  const args = ['run', url, missing, '--screenshot', '--allow-private', '--name', 'one', '--rate', 'max'];
  const run = await seine(args, { env: environment('one') });
  expect(run.code, run.stderr).toBe(3);
  expect(run.stderr).toMatch(/screenshots: .*sheets\/one-1\/index\.html/);
  const shot = (await rowsOf<Shot>('one', 'shots')).find((row) => row.url === url)!;
  const [width, height] = sizeOf(readFileSync(at(`one/${shot.key}`)));
  expect(width).toBe(1280);
  expect(height).toBeGreaterThan(200);
  const [task] = (await rowsOf<{ url: string; shots: Shot[] }>('one', 'tasks')).filter(
    (row) => row.url === url,
  );
  expect(task!.shots).toEqual([{ kind: 'screenshot', key: shot.key, type: 'image/png', bytes: shot.bytes }]);
  const page = await seine(['page', url], { env: environment('one') });
  expect(page.stdout).toContain('<h1>Lighting</h1>');
  const again = await seine(['sheet', 'one', '--json'], { env: environment('one') });
  expect(lastJson(again)).toMatchObject({ tiles: expect.any(Number), pages: 1 });
});
