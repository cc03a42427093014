import { existsSync } from 'node:fs';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SeineError } from '../../../src/core/errors.ts';
import { openSqliteStore } from '../../../src/store/sqlite/sqlite-store.ts';
import { collect, createJob, enqueue, taskOf } from '../../support/fixtures.ts';
import {
  continuesAnywhere,
  openSourceSetup,
  type SourceSetup,
  urlsOf,
} from '../../support/sources/source-files.ts';

const A = 'https://a.example';
let setup: SourceSetup;
beforeAll(async () => {
  setup = await openSourceSetup();
});
afterAll(() => setup.close());

describe('sitemaps of a site', () => {
  test.each([
    ['sitemap:https://shop.example', 'https://shop.example/robots.txt'],
    ['sitemap:https://shop.example/', 'https://shop.example/robots.txt'],
    ['sitemap:shop.example', 'https://shop.example/robots.txt'],
    ['sitemap:http://shop.example:81/map.xml.gz', 'http://shop.example:81/map.xml.gz'],
    ['sitemap:https://shop.example/?map=1', 'https://shop.example/?map=1'],
  ])('%s is one task', async (source, url) => {
    await setup.check(source);
    const rows = await setup.rows(source);
    const meta = { '@within': 'site', '@route': null, '@priority': 0, '@level': 0 };
    expect(rows).toMatchObject([{ row: { url, route: '@sitemap', meta } }]);
    expect(await setup.rows(source, rows[0]!.position)).toEqual([]);
  });

  test('an object says which URLs, for which route and how urgently', async () => {
    const source = {
      sitemap: 'https://shop.example/s.xml',
      within: 'host',
      route: 'product',
      priority: 7,
    } as const;
    const [row] = await setup.rows(source);
    expect(row!.row).toMatchObject({ meta: { '@within': 'host', '@route': 'product', '@priority': 7 } });
    expect(setup.open(source).priority).toBe(7);
  });
});

describe('sitemaps in files', () => {
  const MAP = `<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">${[1, 2, 3]
    .map((n) => `<url><loc>${A}/${n}</loc></url>`)
    .join('')}</urlset>`;

  test.each(['map.xml', 'map.xml.gz'])('%s is known by its name', async (name) => {
    const file = await setup.write(name, MAP);
    for (const source of [file, `sitemap:${file}`, { sitemap: file }, { file, format: 'sitemap' as const }]) {
      await setup.check(source);
      const rows = await setup.rows(source);
      expect(urlsOf(rows)).toEqual([1, 2, 3].map((n) => `${A}/${n}`));
      expect(rows.map(({ place }) => place)).toEqual(['entry 1', 'entry 2', 'entry 3']);
      expect(await continuesAnywhere(rows, (position) => setup.rows(source, position))).toBeNull();
    }
    expect((await setup.rows({ file, route: 'page' }))[0]!.row).toMatchObject({ route: 'page' });
  });

  test('one that cannot be read is one entry, and a missing one is told before', async () => {
    await setup.write('maps/1.xml', MAP);
    await writeFile(join(setup.dir, 'maps', '2.xml'), Buffer.alloc(60 * 1024 * 1024, 'x'));
    await setup.write('maps/3.xml', MAP);
    const rows = await setup.rows(join(setup.dir, 'maps', '*.xml'));
    expect(rows.filter(({ row }) => 'reason' in row)).toMatchObject([{ place: '2.xml' }]);
    expect(rows).toHaveLength(7);
    await expect(setup.check('sitemap:./absent.xml')).rejects.toThrow(/no such file/);
  });
});

describe('a query', () => {
  const openStore = async (name: string) => {
    const store = openSqliteStore(join(setup.dir, name), { sync: 'normal', checkpointThread: false });
    const job = await createJob(store, 'shop');
    const tasks = Array.from({ length: 40 }, (_, n) => taskOf(`${A}/${n}`, { depth: n }));
    await enqueue(store, job, tasks);
    return { store, job };
  };
  const query = `SELECT url, depth FROM seine_tasks WHERE depth >= 10 ORDER BY depth -- oldest`;

  test('is asked once, and what it said is read on after a stop, whatever the store says by then', async () => {
    const { store, job } = await openStore('once.db');
    let asked = 0;
    const inputs = join(setup.dir, 'once');
    const tools = {
      query: (sql: string) => {
        asked++;
        return store.views.query(sql);
      },
      spool: { dir: inputs, jobId: 3, pass: 2, source: 0 },
    };
    const own = await openSourceSetup(tools);
    const source = { query, route: 'again', priority: 5 };
    await own.check(source);
    asked = 0;
    const rows = await own.rows(source);
    expect(rows).toHaveLength(30);
    expect(rows[0]!.row).toEqual({ url: `${A}/10`, route: 'again', meta: { depth: 10 } });
    expect(own.open(source).priority).toBe(5);
    await enqueue(store, job, [taskOf(`${A}/more`, { depth: 12 })]);
    expect(await continuesAnywhere(rows, (position) => own.rows(source, position))).toBeNull();
    expect(asked).toBe(1);
    expect(await readdir(inputs)).toEqual(['query-3-2-0.jsonl']);

    const next = await openSourceSetup({ ...tools, spool: { ...tools.spool, pass: 3 } });
    expect(await next.rows(source)).toHaveLength(31);
    expect(await readdir(inputs)).toEqual(['query-3-3-0.jsonl']);
    await Promise.all([own.close(), next.close(), store.close()]);
  });

  test('what a crash left half written is written anew', async () => {
    const { store } = await openStore('half.db');
    const dir = join(setup.dir, 'half');
    const spool = { dir, jobId: 1, pass: 1, source: 4 };
    const path = join(dir, 'query-1-1-4.jsonl');
    let fail = true;
    const own = await openSourceSetup({
      spool,
      async *query(sql) {
        let count = 0;
        for await (const row of store.views.query(sql)) {
          if (fail && ++count > 20) throw new Error('killed');
          yield row;
        }
      },
    });
    await expect(own.rows({ query })).rejects.toThrow(/killed/);
    expect(existsSync(path)).toBe(false);
    await writeFile(`${path}.part`, '{"url":"https://a.example/half');
    fail = false;
    expect(await own.rows({ query })).toHaveLength(30);
    expect((await readFile(path, 'utf8')).split('\n')).toHaveLength(31);
    await Promise.all([own.close(), store.close()]);
  });

  test('mistakes show before anything starts', async () => {
    const { store } = await openStore('wrong.db');
    const own = await openSourceSetup({ query: (sql) => store.views.query(sql) });
    await expect(own.check({ query: 'SELECT nonsense' })).rejects.toThrow(SeineError);
    await expect(own.check({ query: 'DELETE FROM tasks' })).rejects.toThrow(SeineError);
    await expect(own.check({ query: 'SELECT depth FROM seine_tasks;' })).rejects.toThrow(
      /'url' among: depth/,
    );
    await own.check({ query: 'SELECT url FROM seine_tasks WHERE depth > 1000' });
    expect(await collect(own.open({ query: 'SELECT url FROM seine_tasks LIMIT 0' }).rows(null))).toEqual([]);
    await Promise.all([own.close(), store.close()]);
  });
});
