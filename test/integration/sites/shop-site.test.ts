import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { get as httpGet } from 'node:http';
import { createInterface } from 'node:readline';
import { setImmediate as turn } from 'node:timers/promises';
import { gunzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type ShopSite, startShopSite } from '../../../src/sites/shop/shop-site.ts';
import { crawl, get, linksOf } from '../../support/servers/plain-http.ts';

describe('shop site', () => {
  let site: ShopSite;
  beforeAll(async () => {
    site = await startShopSite({ products: 300, delayScale: 0 });
  });
  afterAll(() => site.close());
  const at = (path: string) => site.url.slice(0, -1) + path;

  test('following every link finds exactly the pages, dead links and redirects it promises', async () => {
    const own = await startShopSite({ products: 300, delayScale: 0 });
    try {
      const seen = await crawl(own.url);
      const withStatus = (wanted: number) =>
        [...seen]
          .filter(([, status]) => status === wanted)
          .map(([path]) => path)
          .sort();
      expect(withStatus(200)).toEqual([...own.expected.pagePaths].sort());
      expect(withStatus(404)).toEqual([...own.expected.deadPaths].sort());
      expect(withStatus(0)).toEqual([...own.expected.disallowedPaths].sort());
      const redirects = own.expected.redirects.map((redirect) => redirect.from).sort();
      expect([...withStatus(301), ...withStatus(302)].sort()).toEqual(redirects);
      expect(own.expected.productPages).toBe(300);
      // 300 products over 8 categories: 37 or 38 each, so 4 pages of 12.
      expect(own.expected.categoryPages).toBe(32);
      expect(own.expected.deadPaths).toHaveLength(3);
      expect(own.expected.pages).toBe(300 + 32 + own.expected.infoPages);
      const refusals = own.log
        .filter((entry) => [429, 500, 503].includes(entry.status))
        .map((entry) => entry.path);
      expect(refusals.sort()).toEqual([...own.expected.flakyPaths, ...own.expected.throttledPaths].sort());
    } finally {
      await own.close();
    }
  });

  test('a product page has everything a scraper asks for', async () => {
    const plain = site.expected.productPaths.find(
      (path) => !site.expected.flakyPaths.includes(path) && !site.expected.throttledPaths.includes(path),
    )!;
    const reply = await get(at(plain));
    const html = reply.body.toString();
    expect(reply.headers['content-type']).toBe('text/html; charset=utf-8');
    const title = /<h1>([^<]+)<\/h1>/.exec(html)![1]!;
    const price = /class="price" data-currency="EUR">€(\d+\.\d\d)</.exec(html)![1]!;
    const sku = /class="sku">([A-Z]{3}-\d{5})</.exec(html)![1]!;
    expect(html).toMatch(/class="crumbs"><a href="\/">Home<\/a> \/ <a href="\/category\//);
    expect(html).toMatch(/class="rating">\d\.\d \/ 5/);
    const jsonLd = JSON.parse(/<script type="application\/ld\+json">(.+?)<\/script>/.exec(html)![1]!);
    expect(jsonLd).toMatchObject({
      '@type': 'Product',
      name: title,
      sku,
      offers: { price, priceCurrency: 'EUR' },
    });
    const related = /<section class="related">([\s\S]+)<\/section>/.exec(html)![1]!;
    expect(linksOf(related, site.url).length).toBeGreaterThan(0);

    const image = await get(at(/<article[\s\S]*?<img src="([^"]+)"/.exec(html)![1]!));
    expect(image.status).toBe(200);
    expect(image.headers['content-type']).toBe('image/svg+xml');
    expect(image.body.toString()).toMatch(/^<svg /);
    const logo = await get(at('/images/logo.png'), { 'accept-encoding': 'gzip' });
    expect(logo.headers['content-type']).toBe('image/png');
    expect(logo.headers['content-encoding']).toBeUndefined();
    expect(logo.body.subarray(1, 4).toString()).toBe('PNG');
  });

  test('categories show twelve products a page and link on', async () => {
    const first = (await get(at('/category/kitchen'))).body.toString();
    expect(first.match(/class="card"/g)).toHaveLength(12);
    expect(first).toContain('<a rel="next" href="/category/kitchen?page=2">');
    expect((await get(at('/category/kitchen?page=99'))).status).toBe(404);
  });

  test('robots.txt names the sitemap, which names every product', async () => {
    const robots = (await get(at('/robots.txt'))).body.toString();
    expect(robots).toBe(
      `User-agent: *\nDisallow: /admin/\nDisallow: /cart\n\nSitemap: ${site.url}sitemap.xml\n`,
    );
    const index = (await get(at('/sitemap.xml'))).body.toString();
    const maps = [...index.matchAll(/<loc>([^<]+)<\/loc>/g)].map((match) => match[1]!);
    const urls: string[] = [];
    for (const map of maps) {
      const reply = await get(map);
      expect(reply.headers['content-type']).toMatch(/^application\/xml/);
      urls.push(...[...reply.body.toString().matchAll(/<loc>([^<]+)<\/loc>/g)].map((match) => match[1]!));
    }
    expect(urls.sort()).toEqual(site.expected.pagePaths.map(at).sort());
  });

  test('flaky pages fail once, throttled pages refuse once with Retry-After', async () => {
    const own = await startShopSite({ products: 300, delayScale: 0 });
    try {
      const origin = own.url.slice(0, -1);
      const first = await Promise.all(
        own.expected.flakyPaths.map(async (path) => (await get(origin + path)).status),
      );
      expect(new Set(first)).toEqual(new Set([500, 503]));
      for (const path of own.expected.flakyPaths) expect((await get(origin + path)).status).toBe(200);
      expect(own.expected.throttledPaths).toHaveLength(3);
      for (const path of own.expected.throttledPaths) {
        const refused = await get(origin + path);
        expect([refused.status, refused.headers['retry-after']]).toEqual([429, '1']);
        expect((await get(origin + path)).status).toBe(200);
      }
    } finally {
      await own.close();
    }
  });

  test('no page refuses any more from the second day on, so that refreshes are as fast as the first run', async () => {
    const own = await startShopSite({ products: 300, delayScale: 0, day: 2 });
    try {
      expect([...own.expected.flakyPaths, ...own.expected.throttledPaths]).toEqual([]);
      for (const path of [...site.expected.flakyPaths, ...site.expected.throttledPaths])
        expect((await get(new URL(path, own.url).href)).status).toBe(200);
    } finally {
      await own.close();
    }
  });

  test('old addresses redirect to products that exist', async () => {
    expect(new Set(site.expected.redirects.map((redirect) => redirect.status))).toEqual(new Set([301, 302]));
    for (const { from, to, status } of site.expected.redirects) {
      const reply = await get(at(from));
      expect([reply.status, reply.headers.location]).toEqual([status, to]);
      expect(site.expected.productPaths).toContain(to);
    }
  });

  test('slow pages take their time, scaled', async () => {
    const slow = await startShopSite({ products: 40, delayScale: 0.1 });
    try {
      const path = slow.expected.slowPaths[0]!;
      // In a turn of its own: a timer is early by what its turn has taken before it.
      await turn();
      const startedAt = performance.now();
      expect((await get(slow.url.slice(0, -1) + path)).status).toBe(200);
      // 400 ms or more, times 0.1.
      expect(performance.now() - startedAt).toBeGreaterThanOrEqual(20);
    } finally {
      await slow.close();
    }
  });

  test('one page is ISO-8859-1', async () => {
    const reply = await get(at(site.expected.latin1Path));
    expect(reply.headers['content-type']).toBe('text/html; charset=iso-8859-1');
    expect(reply.body.includes(Buffer.from([0x4e, 0xe9, 0x65]))).toBe(true);
    expect(reply.body.toString('latin1')).toContain("l'âme d'un atelier");
  });

  test('gzip only when asked for, and the same bytes inside', async () => {
    const plain = await get(at('/help'));
    expect(plain.headers['content-encoding']).toBeUndefined();
    for (const accept of ['gzip', 'br, gzip;q=0.5', 'deflate, gzip']) {
      const zipped = await get(at('/help'), { 'accept-encoding': accept });
      expect(zipped.headers['content-encoding']).toBe('gzip');
      expect(gunzipSync(zipped.body).equals(plain.body)).toBe(true);
    }
    for (const accept of ['gzip;q=0', 'identity', 'br, gzip;q=0.0, deflate']) {
      expect(
        (await get(at('/help'), { 'accept-encoding': accept })).headers['content-encoding'],
      ).toBeUndefined();
    }
  });

  test('ETag and If-None-Match give 304 without a body', async () => {
    const etag = (await get(at('/about'))).headers.etag!;
    expect(etag).toMatch(/^"[0-9a-f]{16}"$/);
    for (const value of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
      const reply = await get(at('/about'), { 'if-none-match': value });
      expect([reply.status, reply.body.length, reply.headers.etag]).toEqual([304, 0, etag]);
    }
    expect((await get(at('/about'), { 'if-none-match': '"other"' })).status).toBe(200);
  });

  test('HEAD has the headers only, other methods are refused, every request is logged', async () => {
    const from = site.log.length;
    const head = await get(at('/about'), {}, 'HEAD');
    expect([head.status, head.body.length]).toEqual([200, 0]);
    expect(Number(head.headers['content-length'])).toBeGreaterThan(1_000);
    expect((await get(at('/about'), {}, 'DELETE')).status).toBe(405);
    expect((await get(at('/nowhere'))).status).toBe(404);
    const lines = site.log.slice(from).map(({ method, path, status }) => `${method} ${path} ${status}`);
    expect(lines).toEqual(['HEAD /about 200', 'DELETE /about 405', 'GET /nowhere 404']);
    expect(Math.abs(site.log.at(-1)!.at - Date.now())).toBeLessThan(60_000);
  });

  test('the same seed gives the same shop, another seed another one', async () => {
    const shops = await Promise.all(
      [1, 1, 2].map((seed) => startShopSite({ products: 60, seed, delayScale: 0 })),
    );
    try {
      const pages = await Promise.all(
        shops.map(async (shop) => (await get(`${shop.url}category/toys`)).body.toString()),
      );
      expect(pages[0]).toBe(pages[1]);
      expect(pages[0]).not.toBe(pages[2]);
      expect(shops[0]!.expected).toEqual(shops[1]!.expected);
      expect(shops[0]!.expected.flakyPaths).not.toEqual(shops[2]!.expected.flakyPaths);
    } finally {
      await Promise.all(shops.map((shop) => shop.close()));
    }
  });

  test('on the second day a fifth of the prices differs, a product is new and one is gone', async () => {
    const days = await Promise.all(
      [1, 2, 2].map((day) => startShopSite({ products: 40, day, delayScale: 0 })),
    );
    try {
      const shops = await Promise.all(
        days.map(async ({ url, expected }) => {
          const prices = new Map<string, string>();
          for (const path of expected.productPaths) {
            // A page may refuse once.
            const first = await get(url.slice(0, -1) + path);
            const reply = first.status === 200 ? first : await get(url.slice(0, -1) + path);
            prices.set(path, /class="price" data-currency="EUR">€([\d.]+)/.exec(reply.body.toString())![1]!);
          }
          return prices;
        }),
      );
      const [first, second, same] = shops as [Map<string, string>, Map<string, string>, Map<string, string>];
      expect([...second]).toEqual([...same]);
      expect([...first.keys()].filter((path) => !second.has(path))).toEqual([
        expect.stringMatching(/^\/product\/2-/),
      ]);
      expect([...second.keys()].filter((path) => !first.has(path))).toEqual([
        expect.stringMatching(/^\/product\/41-/),
      ]);
      const changed = [...second].filter(([path, price]) => first.has(path) && first.get(path) !== price);
      expect(changed).toHaveLength(7);
    } finally {
      await Promise.all(days.map((shop) => shop.close()));
    }
  });

  test('a page loads its list in parts, and a crawl finds no link to it', async () => {
    expect((await get(at('/new'))).body.toString()).toContain("fetch('/api/new?page='");
    const parts = await Promise.all(
      [1, 2, 3, 4, 5].map(async (page) =>
        JSON.parse((await get(at(`/api/new?page=${page}`))).body.toString()),
      ),
    );
    expect(parts.map(({ page, pages, total }) => [page, pages, total])).toEqual(
      [1, 2, 3, 4, 5].map((page) => [page, 5, 60]),
    );
    expect(
      new Set(parts.flatMap(({ products }) => products.map(({ sku }: { sku: string }) => sku))).size,
    ).toBe(60);
    expect((await get(at('/api/new?page=6'))).status).toBe(404);
  });

  test('orders want the cookie that the login form gives', async () => {
    const closed = await get(at('/account/orders'));
    expect([closed.status, closed.headers.location]).toEqual([302, '/account/login']);
    const send = (body: string) =>
      fetch(at('/account/login'), { method: 'POST', body: new URLSearchParams(body), redirect: 'manual' });
    const wrong = await send('user=guest&password=wrong');
    expect([wrong.status, wrong.headers.get('location'), wrong.headers.get('set-cookie')]).toEqual([
      303,
      '/account/login',
      null,
    ]);
    expect((await send(`user=guest&password=${'x'.repeat(2_000)}`)).headers.get('set-cookie')).toBeNull();
    const right = await send('user=guest&password=guest');
    expect(right.headers.get('location')).toBe('/account/orders');
    const cookie = right.headers.get('set-cookie')!.split(';')[0]!;
    const open = await get(at('/account/orders'), { cookie: `a=b; ${cookie}` });
    expect(open.status).toBe(200);
    expect(open.body.toString().match(/class="order"/g)).toHaveLength(3);
  });

  test('close() ends even while a slow page is being waited for', async () => {
    const slow = await startShopSite({ products: 40, delayScale: 1_000 });
    const request = httpGet(slow.url.slice(0, -1) + slow.expected.slowPaths[0]!);
    const failed = once(request, 'error').catch((error) => error);
    const logged = new Promise<void>((resolve) => {
      const look = () => (slow.log.length > 0 ? resolve() : setImmediate(look));
      look();
    });
    await logged;
    await slow.close();
    await failed;
  });
});

describe('shop process', () => {
  test('prints its address and ends when its standard input closes', async () => {
    const child = spawn(process.execPath, ['src/sites/shop/shop-process.ts', '--products', '10'], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    const exited = once(child, 'exit');
    const [line] = (await once(createInterface(child.stdout), 'line')) as [string];
    const { url } = JSON.parse(line) as { url: string };
    expect((await get(`${url}product/1-nothing`)).status).toBe(404);
    expect((await get(url)).body.toString()).toContain('Harbour &amp; Pine');
    child.stdin.end();
    expect(await exited).toEqual([0, null]);
  });
});
