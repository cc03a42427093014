import { spawn } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ShopSite, startShopSite } from '../../../src/sites/shop/shop-site.ts';
import { seine } from '../../support/seine-in-process.ts';
import { type Finished, jsonLines, lastJson, temporaryFolder } from '../../support/seine-process.ts';

/** Every example is run as its first lines say, against the bundled shop. */

const ROOT = fileURLToPath(new URL('../../..', import.meta.url));
/** Eight shelves of thirteen: a listing shows twelve, so that each has a second page. */
const PRODUCTS = 104;
const folder = temporaryFolder();
let shop: ShopSite;

beforeAll(async () => {
  shop = await startShopSite({ products: PRODUCTS, delayScale: 0 });
});

afterAll(async () => {
  await shop.close();
  folder.remove();
});

const at = (name: string) => join(folder.path, name);
const environment = (dir: string) => ({ JOB_SHOP_URL: shop.url, SEINE_DIR: at(dir), SEINE_WORKERS: '1' });
const example = (name: string) => join(ROOT, 'examples', name);

interface Product {
  url: string;
  route: string;
  data: { title: string; price: string; sku: string; image: string; related: string[] };
}

interface TypedProduct {
  name: string;
  sku: string;
  price: { amount: number; currency: string };
  stock: number;
}

async function recordsOf<T>(dir: string): Promise<T[]> {
  const { stdout, code } = await seine(['export'], { env: environment(dir) });
  expect(code).toBe(0);
  return jsonLines<T>(stdout);
}

/** The shop has dead product links, so success is exit code 3 here. */
async function runShop(path: string, dir: string): Promise<Product[]> {
  const run = await seine(['run', path, '--json'], { env: environment(dir) });
  expect(run.code, run.stderr).toBe(3);
  const dead = shop.expected.deadPaths.filter((path) => path.startsWith('/product/')).length;
  expect(lastJson(run)).toMatchObject({ job: 'shop', state: 'done', records: PRODUCTS, dead });
  const listings = shop.expected.categoryPages + 1;
  expect(lastJson(run).done).toBe(PRODUCTS + listings);
  return recordsOf<Product>(dir);
}

describe('examples', () => {
  test('shop.ts and shop.yaml find every product, and are the same job', async () => {
    const yaml = readFileSync(example('shop.yaml'), 'utf8');
    expect(yaml).toContain('http://127.0.0.1:8080/');
    writeFileSync(at('shop.yaml'), yaml.replace('http://127.0.0.1:8080/', shop.url));
    const [fromCode, fromYaml] = await Promise.all([
      runShop(example('shop.ts'), 'shop-ts'),
      runShop(at('shop.yaml'), 'shop-yaml'),
    ]);
    expect(fromCode.map(({ url }) => new URL(url).pathname).sort()).toEqual(
      [...shop.expected.productPaths].sort(),
    );
    for (const { route, data } of fromCode) {
      expect(route).toBe('product');
      expect(data).toEqual({
        title: expect.stringMatching(/^\w+ \w+ [\w ]+$/),
        price: expect.stringMatching(/^€\d+\.\d\d$/),
        sku: expect.stringMatching(/^[A-Z]{3}-\d{5}$/),
        image: expect.stringMatching(/^\/images\/\d+\.svg$/),
        related: expect.any(Array),
      });
      expect(data.related.length).toBeGreaterThan(0);
    }

    expect(fromYaml.map(({ data }) => data)).toEqual(fromCode.map(({ data }) => data));

    const specs = await Promise.all(
      [example('shop.ts'), at('shop.yaml')].map((path) =>
        seine(['run', path, '--dry-run', '--json'], { env: environment('dry') }),
      ),
    );
    expect(JSON.parse(specs[0]!.stdout)).toEqual(JSON.parse(specs[1]!.stdout));
    // The shop refuses some requests at first, which slows down everything after them.
  });

  test('shop.ts gives products a higher priority than listings', async () => {
    const { stdout } = await seine(['export', '--what', 'tasks'], { env: environment('shop-ts') });
    const tasks = jsonLines<{ url: string; priority: number; route: string | null }>(stdout);
    const products = tasks.filter(({ url }) => url.includes('/product/'));
    expect(new Set(products.map(({ priority }) => priority))).toEqual(new Set([10]));
    expect(
      new Set(tasks.filter(({ url }) => url.includes('/category/')).map((task) => task.priority)),
    ).toEqual(new Set([0]));
  });

  test('handler.ts reads two shelves by code, and meta travels from listing to product', async () => {
    const run = await seine(['run', example('handler.ts'), '--json'], { env: environment('handler') });
    expect(run.code, run.stderr).toBe(0);
    const records = await recordsOf<{ data: Record<string, unknown> }>('handler');
    const perShelf = Map.groupBy(records, ({ data }) => data.shelf);
    expect([...perShelf.keys()].sort()).toEqual(['Kitchen', 'Lighting']);
    for (const shelf of perShelf.values()) expect(shelf).toHaveLength(PRODUCTS / 8);
    for (const { data } of records) {
      expect(data.priceCents).toBeGreaterThan(0);
      expect(typeof data.inStock).toBe('boolean');
      expect(String(data.sku).slice(0, 3)).toBe(String(data.shelf).slice(0, 3).toUpperCase());
    }
  });

  test('products.ts reads typed fields, from markup and from structured data', async () => {
    const run = await seine(['run', example('products.ts'), '--json'], { env: environment('products') });
    expect(run.code, run.stderr).toBe(0);
    const records = await recordsOf<{ data: TypedProduct }>('products');
    expect(records).toHaveLength(PRODUCTS / 8);
    for (const { data } of records) {
      expect(data).toEqual({
        name: expect.stringMatching(/^\w+ \w+ [\w ]+$/),
        sku: expect.stringMatching(/^LIG-\d{5}$/),
        price: { amount: expect.any(Number), currency: 'EUR' },
        shownPrice: data.price,
        availability: data.stock > 0 ? 'InStock' : 'OutOfStock',
        stock: expect.any(Number),
        rating: expect.any(Number),
        reviews: expect.any(Number),
        image: expect.stringMatching(`^${shop.url}images/\\d+\\.svg$`),
        description: expect.stringContaining(', this '),
      });
    }
  });

  test('catalogue.ts makes one record of what listings and product pages say', async () => {
    const run = await seine(['run', example('catalogue.ts'), '--json'], { env: environment('catalogue') });
    expect(run.code, run.stderr).toBe(0);
    const records = await recordsOf<{ key: string; data: Record<string, unknown> }>('catalogue');
    expect(records).toHaveLength(PRODUCTS / 8);
    for (const { key, data } of records) {
      expect(data).toEqual({
        url: key,
        name: expect.any(String),
        price: { amount: expect.any(Number), currency: 'EUR' },
        sku: expect.stringMatching(/^LIG-/),
        brand: expect.any(String),
        details: [
          { name: 'SKU', value: data.sku },
          { name: 'Brand', value: data.brand },
          { name: 'Stock', value: expect.any(String) },
        ],
      });
    }
  });

  test('schema.ts refuses records that do not fit, and says why', async () => {
    const run = await seine(['run', example('schema.ts'), '--json'], { env: environment('schema') });
    expect(run.code, run.stderr).toBe(3);
    const records = await recordsOf<{ data: Record<string, unknown> }>('schema');
    const { stdout } = await seine(['export', '--what', 'tasks'], { env: environment('schema') });
    const dead = jsonLines<{ state: string; failureCode: string; failureDetail: string }>(stdout).filter(
      ({ state }) => state === 'dead',
    );
    expect(dead.length).toBeGreaterThan(0);
    expect(records.length + dead.length).toBe(PRODUCTS / 8);
    for (const task of dead)
      expect(task).toMatchObject({ failureCode: 'validation', failureDetail: 'brand: is not wanted' });
    for (const { data } of records)
      expect(Object.keys(data)).toEqual(['title', 'sku', 'brand', 'priceCents', 'inStock']);
  });

  test('steps.ts drops, names and splits records', async () => {
    const run = await seine(['run', example('steps.ts'), '--json'], { env: environment('steps') });
    expect(run.code, run.stderr).toBe(0);
    const products = await recordsOf<{ data: TypedProduct }>('products');
    const offers = products.filter(({ data }) => data.stock >= 20).map(({ data }) => data);
    expect(offers.length).toBeLessThan(products.length);
    const records = await recordsOf<{ key: string; data: object }>('steps');
    const expected = offers.flatMap(({ name: title, sku: code, price }) => {
      const sku = code.toLowerCase();
      return [
        { key: `sku:${sku}#0`, data: { kind: 'name', sku, title } },
        { key: `sku:${sku}#1`, data: { kind: 'price', sku, price: price.amount } },
      ];
    });
    const byKey = (a: { key: string }, b: { key: string }) => a.key.localeCompare(b.key);
    expect(records.map(({ key, data }) => ({ key, data })).sort(byKey)).toEqual(expected.sort(byKey));
  });

  test('list.sh keeps the columns of the list, and reports the row that is no URL', async () => {
    const { code, stdout, stderr } = await run('sh', [example('list.sh')], environment('list'));
    expect(code, stderr).toBe(0);
    expect(stderr).toMatch(/row 3: not an http\(s\) URL: "not a URL"/);
    const tasks = jsonLines<{ url: string; state: string; meta: unknown }>(stdout);
    expect(tasks.map(({ url, state, meta }) => ({ path: new URL(url).pathname, state, meta }))).toEqual([
      { path: '/about', state: 'done', meta: { owner: 'Ana' } },
      { path: '/help/shipping', state: 'done', meta: { owner: 'Ben' } },
    ]);
    const records = await recordsOf<{ data: { title: string } }>('list');
    expect(records.map(({ data }) => data.title)).toEqual(['About us', 'Shipping']);
  });

  test('library.ts runs a job, reads its records, and says what is dead', async () => {
    const { code, stdout, stderr } = await run(
      process.execPath,
      [example('library.ts')],
      environment('library'),
    );
    expect(code, stderr).toBe(0);
    expect(stdout.trimEnd().split('\n')).toEqual([
      'help-1 is done: 3 done, 1 dead, 3 records',
      '/help Help',
      '/help/returns Returns',
      '/help/shipping Shipping',
      '/help/gift-cards is dead: not-found',
    ]);
  });

  test('the first job of the README finds every product', async () => {
    const code = /```ts\n([\s\S]*?)```/.exec(readFileSync(join(ROOT, 'README.md'), 'utf8'))![1]!;
    expect(code.trim().split('\n').length).toBeLessThanOrEqual(10);
    const path = at('first.ts');
    writeFileSync(path, code.replace('https://shop.example/', shop.url));
    const flags = ['--allow-private', '--rate', '100', '--json'];
    const run = await seine(['run', path, ...flags], { env: environment('first') });
    expect(lastJson(run)).toMatchObject({ job: 'first', state: 'done', records: PRODUCTS });
    const [first] = await recordsOf<{ data: object }>('first');
    expect(first!.data).toEqual({
      title: expect.any(String),
      price: expect.stringMatching(/^€\d+\.\d\d$/),
    });
  });

  test('pagination.yaml goes through every page of every shelf, and writes products as Markdown', async () => {
    const yaml = readFileSync(example('pagination.yaml'), 'utf8');
    expect(yaml).toContain('http://127.0.0.1:8080/');
    writeFileSync(at('pagination.yaml'), yaml.replace('http://127.0.0.1:8080/', shop.url));
    const run = await seine(['run', at('pagination.yaml'), '--json'], { env: environment('pagination') });
    expect(run.code, run.stderr).toBe(0);
    expect(lastJson(run)).toMatchObject({
      done: PRODUCTS + shop.expected.categoryPages + 1,
      records: PRODUCTS,
    });
    for (const { data } of await recordsOf<{ data: Record<string, string> }>('pagination')) {
      expect(data.markdown).toContain(`# ${data.title}\n`);
      expect(data.markdown).toContain(`SKU\n: ${data.sku}\n`);
      expect(data.markdown).not.toContain('You may also like');
    }
  });

  test('README.md lists them all', () => {
    const readme = readFileSync(example('README.md'), 'utf8');
    for (const name of readdirSync(join(ROOT, 'examples')).filter((name) => /\.(ts|yaml|sh)$/.test(name)))
      expect(readme).toContain(`[${name}](${name})`);
  });
});

/** In the root of the repository, where `npx seine` is this Seine. */
function run(
  command: string,
  args: string[],
  env: Record<string, string>,
): Promise<Omit<Finished, 'signal'>> {
  const child = spawn(command, args, {
    cwd: ROOT,
    env: { ...process.env, NO_COLOR: '1', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const output = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'] as const) {
    child[name].on('data', (chunk) => {
      output[name] += chunk;
    });
  }
  return new Promise((resolve) => child.once('close', (code) => resolve({ code, ...output })));
}
