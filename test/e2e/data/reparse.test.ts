import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { seine } from '../../support/seine-in-process.ts';
import { jsonLines, lastJson, temporaryFolder } from '../../support/seine-process.ts';
import { type LinkedSite, pathOf, startLinkedSite } from '../../support/sites/linked-site.ts';

/** A parser is wrong about a third of the pages; it is put right, and no page is asked for again. */

const PAGES = 60;
const folder = temporaryFolder();
const file = join(folder.path, 'shop.ts');
const dir = join(folder.path, 'data');
let site: LinkedSite;
let requests = 0;

/** A job whose handler is the given code; `n` is the number of the page. */
function writeJob(code: string): void {
  const urls = Array.from({ length: PAGES }, (_, n) => new URL(pathOf(n), site.url).href);
  writeFileSync(
    file,
    `import { defineJob, type Page } from 'seine';
    function read(page: Page) {
      const n = Number(page.textOf('h1')!.replace('Page ', ''));
      const price = page.textOf('.price')!;
      ${code}
    }
    export default defineJob({
      name: 'shop', sources: ${JSON.stringify(urls)}, allowPrivate: true, politeness: { rate: 'max' },
      records: { history: true },
      routes: [{ name: 'any', handler: read }],
    });`,
  );
}

const run = (...args: string[]) => seine([...args, '--dir', dir]);
const status = async () => lastJson(await run('status', 'shop', '--json'));
const records = async (what = 'records') =>
  jsonLines<{ key: string; data: Record<string, unknown> }>(
    (await run('export', 'shop', '--what', what)).stdout,
  );

const WRONG = `if (n % 3 === 0) throw new Error('three at page ' + n); return { n, price, old: 'x' };`;
const RIGHT = `return { n, price: Number.parseFloat(price), even: n % 2 === 0 ? true : null };`;

beforeAll(async () => {
  site = await startLinkedSite({ pages: PAGES });
  writeJob(WRONG);
  const result = await run('run', file, '--json');
  expect(result.code, result.stderr).toBe(3);
  expect(lastJson(result)).toMatchObject({ accepted: 60, done: 40, dead: 20, records: 40 });
  requests = site.log.length;
});

afterAll(async () => {
  await site.close();
  folder.remove();
});

test('the same code changes nothing', async () => {
  const again = await run('reparse', 'shop', '--json');
  expect(again.code, again.stderr).toBe(3);
  expect(lastJson(again)).toMatchObject({
    id: 'shop-1',
    pages: 60,
    failed: 20,
    lifted: 0,
    records: { same: 40, changed: 0, new: 0, gone: 0 },
    fields: [],
  });
  expect(await status()).toMatchObject({ done: 40, dead: 20, records: 40 });
});

test('a dry run shows what would change by field, and writes nothing', async () => {
  writeJob(RIGHT);
  const dry = await run('reparse', 'shop', '--dry-run', '--json');
  expect(dry.code, dry.stderr).toBe(0);
  const result = lastJson(dry) as {
    fields: { field: string; added: number; removed: number; changed: number; samples: unknown[] }[];
  };
  expect(result).toMatchObject({
    dryRun: true,
    pages: 60,
    failed: 0,
    lifted: 20,
    records: { same: 0, changed: 40, new: 20, gone: 0 },
  });
  const byField = Object.fromEntries(
    result.fields.map(({ field, added, removed, changed }) => [field, { added, removed, changed }]),
  );
  expect(byField).toEqual({
    n: { added: 20, removed: 0, changed: 0 },
    price: { added: 20, removed: 0, changed: 40 },
    old: { added: 0, removed: 40, changed: 0 },
    even: { added: 30, removed: 0, changed: 0 },
  });
  const price = result.fields.find(({ field }) => field === 'price')!;
  expect(price.samples).toHaveLength(3);
  expect(price.samples).toContainEqual({ url: `${site.url}page/1.html`, before: '1.50 EUR', after: 1.5 });
  expect(await status()).toMatchObject({ done: 40, dead: 20, records: 40 });
  expect((await records()).every(({ data }) => data.old === 'x')).toBe(true);
});

test('--limit reads only so many pages', async () => {
  const few = lastJson(await run('reparse', 'shop', '--dry-run', '--limit', '7', '--json'));
  expect(few.pages).toBe(7);
});

test('the right code puts every record right without a request', async () => {
  const result = await run('reparse', 'shop');
  expect(result.code, result.stderr).toBe(0);
  expect(result.stdout).toMatch(/^shop-1: 60 pages parsed again with .*shop\.ts\n/);
  expect(result.stdout).toContain('records: 0 same, 40 changed, 20 new, 0 gone');
  expect(result.stdout).toContain('price: 20 added, 40 changed');
  expect(result.stdout).toContain('"1.50 EUR" → 1.5');
  expect(result.stdout).toContain('20 dead letters are done now');
  expect(await status()).toMatchObject({ state: 'done', done: 60, dead: 0, records: 60, tallies: [] });
  const rows = await records();
  expect(rows.map(({ data }) => data.n).sort((a, b) => Number(a) - Number(b))).toEqual(
    Array.from({ length: PAGES }, (_, n) => n),
  );
  for (const { data } of rows)
    expect(data).toEqual({
      n: data.n,
      price: Number(data.n) + 0.5,
      even: Number(data.n) % 2 === 0 ? true : null,
    });
  expect(await records('history')).toHaveLength(40);
  expect(site.log.length).toBe(requests);
});

test('once is enough', async () => {
  const again = lastJson(await run('reparse', 'shop', '--json'));
  expect(again).toMatchObject({ lifted: 0, records: { same: 60, changed: 0, new: 0, gone: 0 }, fields: [] });
  expect(await records('history')).toHaveLength(40);
});

test('its quality is that of the new records', async () => {
  expect((await status()).quality).toMatchObject([
    { route: 'any', records: 60, invalid: 0, fields: { n: 1, price: 1, even: 0.5 }, score: 83 },
  ]);
});

test('a page that does not parse any more is a dead letter and keeps its record', async () => {
  writeJob(`if (n === 7) throw new Error('seven'); ${RIGHT}`);
  const broken = await run('reparse', 'shop');
  expect(broken.code).toBe(3);
  expect(broken.stdout).toContain('1 page not parsed');
  expect(broken.stdout).toContain(`${site.url}page/7.html: parse-error: seven`);
  expect(await status()).toMatchObject({ done: 59, dead: 1, records: 60 });
  writeJob(RIGHT);
  expect(lastJson(await run('reparse', 'shop', '--json'))).toMatchObject({
    lifted: 1,
    records: { same: 60, changed: 0, new: 0, gone: 0 },
  });
});

test('records that are not made any more are gone', async () => {
  writeJob(`if (n >= 50) return null; ${RIGHT}`);
  expect(lastJson(await run('reparse', file, '--json'))).toMatchObject({
    records: { same: 50, changed: 0, new: 0, gone: 10 },
  });
  expect(await records()).toHaveLength(50);
  expect(await status()).toMatchObject({ done: 60, records: 50 });
});

test('links of a page that parses now are followed when the job goes on', async () => {
  const listing = join(folder.path, 'listing.ts');
  const writeListing = (code: string) =>
    writeFileSync(
      listing,
      `export default {
        name: 'listing', sources: '${site.url}', follow: true, allowPrivate: true, politeness: { rate: 'max' },
        routes: [{ name: 'any', handler(page) { ${code} } }],
      };`,
    );
  writeListing(`throw new Error('always');`);
  expect(lastJson(await run('run', listing, '--json'))).toMatchObject({ accepted: 1, dead: 1 });
  const before = site.log.length;
  writeListing(`return { title: page.textOf('h1') };`);
  const result = await run('reparse', 'listing');
  expect(result.stdout).toContain('1 dead letter is done now');
  expect(result.stdout).toMatch(
    /\d+ new links on these pages\n {2}next: seine resume listing( --dir \S+)?\n/,
  );
  expect(site.log.length).toBe(before);
  // The run goes on with the code of today, by resume as by run.
  expect(lastJson(await run('status', 'listing', '--json')).state).toBe('stopped');
  expect(lastJson(await run('run', listing, '--json'))).toMatchObject({
    run: 1,
    accepted: PAGES,
    done: PAGES,
    records: PAGES,
  });
  expect(site.log.length).toBe(before + PAGES - 1);
  requests = site.log.length;
});

test('a job file that is gone, wrong or says nothing of records is one sentence', async () => {
  rmSync(file);
  const gone = await run('reparse', 'shop');
  expect(gone.code).toBe(2);
  expect(gone.stderr).toMatch(/no such file: .*shop\.ts/);
  const empty = join(folder.path, 'empty.yaml');
  writeFileSync(empty, `sources: ${site.url}\n`);
  const nothing = await run('reparse', 'shop', empty);
  expect(nothing.code).toBe(2);
  expect(nothing.stderr).toMatch(/empty\.yaml extracts no records/);
  expect(await records()).toHaveLength(50);
  expect(site.log.length).toBe(requests);
});
