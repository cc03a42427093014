import { rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openLocalFiles } from '../../../src/sources/files/local-files.ts';
import { collect } from '../../support/fixtures.ts';
import { parquetOf, textColumn } from '../../support/sources/parquet-files.ts';
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
const at = (...names: string[]) => join(setup.dir, ...names);

describe('several files', () => {
  test('are read in the order of their names, and rows say which', async () => {
    await setup.write('order/b.txt', `${A}/3\n`);
    await setup.write('order/a.txt', `# first\n${A}/1\n${A}/2`);
    await setup.write('order/c.csv', 'url\nno');
    await setup.write('order/.hidden.txt', 'no');
    await setup.write('order/deep/d.txt', 'no');
    await setup.write('order/ü.txt', `${A}/4\n`);
    const rows = await setup.rows(at('order', '*.txt'));
    expect(rows.map(({ place, row }) => [place, 'url' in row && row.url])).toEqual([
      ['a.txt, line 2', `${A}/1`],
      ['a.txt, line 3', `${A}/2`],
      ['b.txt, line 1', `${A}/3`],
      ['ü.txt, line 1', `${A}/4`],
    ]);
    expect(urlsOf(await setup.rows(at('order', '.h*.txt')))).toEqual(['no']);
  });

  test('folders may be named by a star too, and two stars stand for any depth', async () => {
    for (const name of ['x/1/a.txt', 'x/2/a.txt', 'x/2/b.txt', 'x/2/3/a.txt', 'x/.no/a.txt', 'x/4/a.txt.bak'])
      await setup.write(name, `${A}/${name}\n`);
    await symlink(at('x'), at('x', '2', 'loop'));
    await symlink(at('x', '2'), at('x', '5'));
    const found = async (pattern: string) =>
      urlsOf(await setup.rows(at(pattern))).map((url) => url.slice(A.length + 3));
    expect(await found('x/*/a.txt')).toEqual(['1/a.txt', '2/a.txt', '2/a.txt']);
    expect(await found('x/*/*.txt')).toEqual(['1/a.txt', '2/a.txt', '2/b.txt', '2/a.txt', '2/b.txt']);
    expect(await found('x/**/a.txt')).toEqual(['1/a.txt', '2/3/a.txt', '2/a.txt']);
    expect(await found('x/2/*/*.txt')).toContain('2/3/a.txt');
  });

  test('a name with a star that is there is that file', async () => {
    await setup.write('star/*.txt', `${A}/star\n`);
    await setup.write('star/a.txt', `${A}/a\n`);
    expect(urlsOf(await setup.rows(at('star', '*.txt')))).toEqual([`${A}/star`]);
  });

  test('a format that is given holds for all, and one file without the column is one entry', async () => {
    await setup.write('mixed/1', `url,n\n${A}/1,x\n`);
    await setup.write('mixed/2', `href\n${A}/2\n`);
    await setup.write('mixed/3', `n;url\nx;${A}/3\n`);
    await setup.write('mixed/4', `n\turl\nx\t${A}/4\n`);
    const rows = await setup.rows({ file: at('mixed', '*'), format: 'csv', meta: ['n'] });
    expect(rows.map(({ place, row }) => [place, row])).toEqual([
      ['1, row 1', { url: `${A}/1`, meta: { n: 'x' } }],
      ['2', { reason: expect.stringMatching(/no column 'url'.*href/) }],
      ['3, row 1', { url: `${A}/3`, meta: { n: 'x' } }],
      ['4, row 1', { url: `${A}/4`, meta: { n: 'x' } }],
    ]);
  });

  test('stopping after any row and going on gives the same rows', () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(fc.array(fc.integer({ min: 0, max: 2 }), { maxLength: 4 }), { minLength: 1, maxLength: 4 }),
        fc.constantFrom('.txt', '.csv', '.jsonl', '.txt.gz', '.csv.gz'),
        async (lists, ending) => {
          const lines = (list: number[], index: number) =>
            list.map((kind, row) => {
              const url = `${A}/${index}/${row}`;
              if (ending.startsWith('.jsonl')) return kind === 0 ? '{"broken' : JSON.stringify({ url });
              return kind === 0 && ending.startsWith('.csv') ? '""' : url;
            });
          for (const [index, list] of lists.entries()) {
            const head = ending.startsWith('.csv') ? ['url'] : [];
            await setup.write(`any/${index}${ending}`, [...head, ...lines(list, index)].join('\n'));
          }
          const pattern = at('any', `*${ending}`);
          const all = await setup.rows(pattern);
          expect(all).toHaveLength(lists.flat().length);
          expect(await continuesAnywhere(all, (position) => setup.rows(pattern, position))).toBeNull();
          await rm(at('any'), { recursive: true });
        },
      ),
      { numRuns: 25 },
    ));
});

describe('files that come and go', () => {
  test('a new file that sorts after the present one is read, one that sorts before is not', async () => {
    await setup.write('new/b.txt', `${A}/b1\n${A}/b2\n`);
    const pattern = at('new', '*.txt');
    const [first] = await setup.rows(pattern);
    await setup.write('new/a.txt', `${A}/a\n`);
    await setup.write('new/c.txt', `${A}/c\n`);
    expect(urlsOf(await setup.rows(pattern, first!.position))).toEqual([`${A}/b2`, `${A}/c`]);
  });

  test('a file that is gone when it should be continued is one entry; all gone is an error', async () => {
    for (const name of ['a', 'b', 'c'])
      await setup.write(`gone/${name}.txt`, `${A}/${name}1\n${A}/${name}2\n`);
    const pattern = at('gone', '*.txt');
    const all = await setup.rows(pattern);
    await rm(at('gone', 'b.txt'));
    expect(urlsOf(await setup.rows(pattern, all[2]!.position))).toEqual([
      '! it was removed before it was read completely',
      `${A}/c1`,
      `${A}/c2`,
    ]);
    await rm(at('gone', 'c.txt'));
    const [entry, ...none] = await setup.rows(pattern, all[5]!.position);
    expect([entry!.place, none]).toEqual(['c.txt', []]);
    expect(await setup.rows(pattern, entry!.position)).toEqual([]);
    await rm(at('gone', 'a.txt'));
    await expect(setup.rows(pattern, all[2]!.position)).rejects.toThrow(/no file matches/);
  });

  test('a single file may be moved with its folder between two runs', async () => {
    await setup.write('here/a.txt', `${A}/1\n${A}/2\n`);
    const [first] = await setup.rows(at('here', 'a.txt'));
    await setup.write('there/a.txt', `${A}/1\n${A}/2\n`);
    expect(urlsOf(await setup.rows(at('there', 'a.txt'), first!.position))).toEqual([`${A}/2`]);
  });

  test('a list that grows is read on', async () => {
    const file = await setup.write('grow.txt', `${A}/1\n`);
    const [first] = await setup.rows(file);
    await writeFile(file, `${A}/1\n${A}/2\n`);
    expect(urlsOf(await setup.rows(file, first!.position))).toEqual([`${A}/2`]);
  });
});

describe('columns', () => {
  const TABLE = [
    { page_url: `${A}/p1`, image_url: `${A}/i1.jpg`, alt: 'one', __proto: 'x' },
    { page_url: `${A}/p2`, image_url: '', alt: 'two', __proto: 'x' },
    { page_url: '', image_url: '', alt: 'three', __proto: 'x' },
    { page_url: `${A}/p4`, image_url: `${A}/i4.jpg`, alt: 'four', __proto: 'x' },
  ];
  const names = Object.keys(TABLE[0]!) as (keyof (typeof TABLE)[0])[];
  const CONTENT: Record<string, Buffer> = {
    csv: Buffer.from([names, ...TABLE.map((row) => names.map((name) => row[name]))].join('\n')),
    jsonl: Buffer.from(TABLE.map((row) => JSON.stringify(row)).join('\n')),
    parquet: parquetOf(
      Object.fromEntries(names.map((name) => [name, textColumn(TABLE.map((row) => row[name]))])),
    ),
  };

  describe.each(Object.keys(CONTENT))('%s', (format) => {
    let file: string;
    beforeAll(async () => {
      file = await setup.write(`columns.${format}`, CONTENT[format]!);
    });
    const rowsOf = async (more: object) => (await setup.rows({ file, ...more })).map(({ row }) => row);

    test('the first that is there of url, page_url, image_url and link', async () => {
      const rows = await rowsOf({ route: 'page' });
      expect(rows[0]).toEqual({
        url: `${A}/p1`,
        route: 'page',
        meta: { image_url: `${A}/i1.jpg`, alt: 'one', __proto: 'x' },
      });
      expect(rows[2]).toEqual({ reason: expect.stringMatching(/^no text in (column|property) 'page_url'$/) });
    });

    test('several: one task each with its route, and each may be continued after', async () => {
      const columns = { page_url: 'page', image_url: '@media' };
      const source = { file, columns, meta: ['alt'] };
      const rows = await setup.rows(source);
      expect(rows.map(({ row }) => row)).toEqual([
        { url: `${A}/p1`, route: 'page', meta: { alt: 'one' } },
        { url: `${A}/i1.jpg`, route: '@media', meta: { alt: 'one' } },
        { url: `${A}/p2`, route: 'page', meta: { alt: 'two' } },
        { reason: expect.stringMatching(/^no text in (column|property) 'page_url' or 'image_url'$/) },
        { url: `${A}/p4`, route: 'page', meta: { alt: 'four' } },
        { url: `${A}/i4.jpg`, route: '@media', meta: { alt: 'four' } },
      ]);
      expect(await continuesAnywhere(rows, (position) => setup.rows(source, position))).toBeNull();
      expect((await rowsOf({ columns }))[1]).toMatchObject({ meta: { page_url: `${A}/p1`, alt: 'one' } });
    });

    test('meta may be empty, or keep the URL as well', async () => {
      expect((await rowsOf({ meta: [] }))[0]).toEqual({ url: `${A}/p1`, meta: null });
      expect((await rowsOf({ meta: ['page_url'] }))[0]).toEqual({
        url: `${A}/p1`,
        meta: { page_url: `${A}/p1` },
      });
    });
  });

  test('a property called __proto__ is a property', async () => {
    const file = await setup.write('proto.jsonl', `{"url":"${A}/1","__proto__":{"x":1}}`);
    const [row] = await setup.rows(file);
    expect(JSON.stringify(row!.row)).toBe(`{"url":"${A}/1","meta":{"__proto__":{"x":1}}}`);
  });
});

test('local files: exact reads, and an end that came nearer', async () => {
  const files = openLocalFiles();
  const file = await setup.write('bytes.txt', '0123456789');
  expect(await files.size(file)).toBe(10);
  expect((await files.read(file, 3, 4)).toString()).toBe('3456');
  await expect(files.read(file, 8, 4)).rejects.toThrow(/shorter/);
  expect(Buffer.concat(await collect<Buffer>(await files.stream(file, 7))).toString()).toBe('789');
  expect(await collect(files.list(file))).toEqual([{ url: file, bytes: 10 }]);
});
