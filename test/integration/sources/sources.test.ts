import { rm } from 'node:fs/promises';
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { SeineError } from '../../../src/core/errors.ts';
import type { Source, SourceRow } from '../../../src/ports/source.ts';
import { collect } from '../../support/fixtures.ts';
import { openSourceSetup, type SourceSetup, urlsOf } from '../../support/sources/source-files.ts';

let setup: SourceSetup;
beforeAll(async () => {
  setup = await openSourceSetup();
});
afterAll(() => setup.close());

const sourceOf = async (content: string | Buffer, ending: string): Promise<Source> =>
  setup.open(await setup.add(content, ending));
const rowsOf = (source: Source, from: string | null = null): Promise<SourceRow[]> =>
  collect(source.rows(from));
const read = async (content: string | Buffer, ending: string) => rowsOf(await sourceOf(content, ending));

const A = 'https://a.example';

describe('a URL as a source', () => {
  test('is one row, once', async () => {
    const source = setup.open(`${A}/x`);
    const rows = await rowsOf(source);
    expect(rows).toMatchObject([{ row: { url: `${A}/x`, meta: null } }]);
    expect(await rowsOf(source, rows[0]!.position)).toEqual([]);
    expect(setup.open('HTTP://A.EXAMPLE/').name).toBe('HTTP://A.EXAMPLE/');
  });
});

describe.each(['', '.gz'])('text lists%s', (gz) => {
  test('one URL a line; empty lines and comments are passed over', async () => {
    const rows = await read(`# mine\n${A}/1\n\n   \n  ${A}/2  \n#${A}/3\n${A}/4#part\n`, `.txt${gz}`);
    expect(urlsOf(rows)).toEqual([`${A}/1`, `${A}/2`, `${A}/4#part`]);
    expect(rows.map((row) => row.place)).toEqual(['line 2', 'line 5', 'line 7']);
  });

  test('line ends of all kinds, a byte order mark, no end at the end', async () => {
    expect(urlsOf(await read(`\ufeff${A}/1\r\n${A}/2\n${A}/3\r\n${A}/4`, `.txt${gz}`))).toEqual(
      [1, 2, 3, 4].map((n) => `${A}/${n}`),
    );
    expect(urlsOf(await read(`\ufeff# comment\r\n${A}/1`, `.txt${gz}`))).toEqual([`${A}/1`]);
  });

  test('an empty file has no rows', async () => {
    expect(await read('', `.txt${gz}`)).toEqual([]);
    expect(await read('\n\n\r\n', `.txt${gz}`)).toEqual([]);
  });

  test('characters of several bytes survive the borders of pieces', async () => {
    const urls = Array.from({ length: 9_000 }, (_, n) => `${A}/${'ü€😀'.repeat(n % 5)}/${n}`);
    expect(urlsOf(await read(urls.join('\n'), `.txt${gz}`))).toEqual(urls);
  });

  test('a line longer than a megabyte is rejected by its place, and the next one is read', async () => {
    const long = `${A}/${'x'.repeat(3 * 1024 * 1024)}`;
    const source = await sourceOf(`${A}/1\n${long}\n${A}/2\n${long}`, `.txt${gz}`);
    const rows = await rowsOf(source);
    expect(urlsOf(rows)).toEqual([
      `${A}/1`,
      expect.stringMatching(/^! longer than/),
      `${A}/2`,
      expect.stringMatching(/^! longer/),
    ]);
    expect(rows.map((row) => row.place)).toEqual(['line 1', 'line 2', 'line 3', 'line 4']);
    expect(urlsOf(await rowsOf(source, rows[1]!.position))).toEqual(urlsOf(rows.slice(2)));
  });
});

describe.each(['', '.gz'])('JSON lines%s', (gz) => {
  test('objects with a URL, or just URLs; the rest travels along', async () => {
    const lines = [
      '\ufeff{"url":"https://a.example/1","sku":7,"tags":["x"]}',
      '',
      '"https://a.example/2"',
      '{"url":"https://a.example/3"}',
    ];
    const rows = await read(lines.join('\r\n'), `.jsonl${gz}`);
    expect(rows.map(({ row }) => row)).toEqual([
      { url: `${A}/1`, meta: { sku: 7, tags: ['x'] } },
      { url: `${A}/2`, meta: null },
      { url: `${A}/3`, meta: null },
    ]);
  });

  test('a bad line is rejected by its place, and the rest is read', async () => {
    const lines = [
      '{"url":"https://a.example/1"}',
      '{"url":',
      '[]',
      '5',
      'null',
      '{"address":"x"}',
      '{"url":5}',
      '{"url":"https://a.example/2"}',
    ];
    const rows = await read(lines.join('\n'), `.ndjson${gz}`);
    expect(rows.filter(({ row }) => 'url' in row).map((row) => row.place)).toEqual(['line 1', 'line 8']);
    expect(rows.filter(({ row }) => 'reason' in row).map((row) => row.place)).toEqual(
      [2, 3, 4, 5, 6, 7].map((n) => `line ${n}`),
    );
  });

  test('whole numbers beyond 2^53 become text, and all others stay numbers', async () => {
    const numbers = '9007199254740991,9007199254740993,-12345678901234567890,0.1234567890123456,1e21';
    const line = `{"url":"${A}/1","n":[${numbers}],"text":"12345678901234567890"}`;
    const rows = await read(`${line}\n{"url":"${A}/2","n":5}\n{"n":12345678901234567890,\n`, `.jsonl${gz}`);
    expect(rows.map(({ row }) => row)).toEqual([
      {
        url: `${A}/1`,
        meta: {
          n: [9007199254740991, '9007199254740993', '-12345678901234567890', 0.1234567890123456, 1e21],
          text: '12345678901234567890',
        },
      },
      { url: `${A}/2`, meta: { n: 5 } },
      { reason: 'not valid JSON' },
    ]);
  });

  test('the property may have another name', async () => {
    const file = await setup.add('{"link":"https://a.example/1","url":"no"}\n', `.jsonl${gz}`);
    const rows = await rowsOf(setup.open({ file, urlColumn: 'link', priority: 4 }));
    expect(rows[0]?.row).toEqual({ url: `${A}/1`, meta: { url: 'no' } });
    expect(setup.open({ file, urlColumn: 'link', priority: 4 }).priority).toBe(4);
  });
});

describe.each([
  ['.csv', ','],
  ['.tsv', '\t'],
  ['.csv.gz', ','],
  ['.tsv.gz', '\t'],
])('tables: %s', (ending, delimiter) => {
  const table = (...rows: string[][]) => rows.map((row) => row.join(delimiter)).join('\n');

  test('columns can name the proxy pool and the country of their row', async () => {
    const text = table(
      ['url', 'via', 'land', 'sku'],
      [`${A}/1`, 'home', 'de', 'x'],
      [`${A}/2`, '', 'FR', 'y'],
      [`${A}/3`, ' ', '', 'z'],
    );
    const file = await setup.add(text, ending);
    const rows = await rowsOf(setup.open({ file, poolColumn: 'via', countryColumn: 'land' }));
    expect(rows.map(({ row }) => row)).toEqual([
      { url: `${A}/1`, meta: { sku: 'x' }, proxy: { pool: 'home', country: 'DE' } },
      { url: `${A}/2`, meta: { sku: 'y' }, proxy: { country: 'FR' } },
      { url: `${A}/3`, meta: { sku: 'z' } },
    ]);
    await expect(setup.check({ file, countryColumn: 'lan' })).rejects.toThrow(/no column 'lan' among/);
  });

  test('columns can name the route and the priority of their row', async () => {
    const text = table(
      ['url', 'kind', 'rank', 'sku'],
      [`${A}/1`, 'product', '7', 'x'],
      [`${A}/2`, '', ' ', 'y'],
      [`${A}/3`, 'product', 'high', 'z'],
      [`${A}/4`, '', '1001', 'z'],
    );
    const file = await setup.add(text, ending);
    const rows = await rowsOf(setup.open({ file, routeColumn: 'kind', priorityColumn: 'rank', priority: 2 }));
    expect(rows.map(({ row }) => row)).toEqual([
      { url: `${A}/1`, meta: { sku: 'x' }, route: 'product', priority: 7 },
      { url: `${A}/2`, meta: { sku: 'y' } },
      { reason: "the priority must be a whole number from -1000 to 1000, got 'high'" },
      { reason: "the priority must be a whole number from -1000 to 1000, got '1001'" },
    ]);
    await expect(setup.check({ file, routeColumn: 'kin' })).rejects.toThrow(/no column 'kin' among/);
  });

  test('a column of URLs; the others travel along', async () => {
    const rows = await read(table(['sku', 'url', 'name'], ['1', `${A}/1`, 'one'], ['2', `${A}/2`]), ending);
    expect(rows.map(({ row }) => row)).toEqual([
      { url: `${A}/1`, meta: { sku: '1', name: 'one' } },
      { url: `${A}/2`, meta: { sku: '2', name: null } },
    ]);
    expect(rows.map((row) => row.place)).toEqual(['row 1', 'row 2']);
    expect((await read(`url\n${A}/1`, ending)).map(({ row }) => row)).toEqual([
      { url: `${A}/1`, meta: null },
    ]);
  });

  test('byte order mark, line ends, empty lines, quotes, and line breaks within them', async () => {
    const d = delimiter;
    const text = `\ufeffurl${d}note\r\n\r\n"${A}/1"${d}"a ""b"" ${d}\r\nsecond line"\r\n${A}/2${d}ü€\r\n`;
    expect((await read(text, ending)).map(({ row }) => row)).toEqual([
      { url: `${A}/1`, meta: { note: `a "b" ${d}\r\nsecond line` } },
      { url: `${A}/2`, meta: { note: 'ü€' } },
    ]);
  });

  test('what a column has in quotes says nothing about delimiters and line ends', async () => {
    const d = ending.startsWith('.tsv') ? '\t' : ';';
    const text = `"a,\rb"${d}url\nx${d}${A}/1\ny${d}${A}/2\n`;
    expect((await read(text, ending)).map(({ row }) => row)).toEqual([
      { url: `${A}/1`, meta: { 'a,\rb': 'x' } },
      { url: `${A}/2`, meta: { 'a,\rb': 'y' } },
    ]);
  });

  test('a row without a URL is rejected by its place', async () => {
    const rows = await read(
      table(['note', 'url'], ['x', ''], ['short'], ['y', '  '], ['z', `${A}/1`]),
      ending,
    );
    expect(rows.map(({ place, row }) => [place, 'reason' in row])).toEqual([
      ['row 1', true],
      ['row 2', true],
      ['row 3', true],
      ['row 4', false],
    ]);
  });

  test('a header without the column is an operator error that shows the header, before anything is read', async () => {
    const file = await setup.add(table(['address', 'name'], [`${A}/1`, 'x']), ending);
    await expect(setup.check(file)).rejects.toThrow(SeineError);
    await expect(setup.check(file)).rejects.toThrow(/'url'.*'link'.*address, name/);
    await expect(setup.check({ file, urlColumn: 'adress' })).rejects.toThrow(/'adress'.*address, name/);
    await expect(setup.check({ file, urlColumn: 'address', meta: ['nmae'] })).rejects.toThrow(/'nmae'/);
    await setup.check({ file, urlColumn: 'address', meta: ['name'] });
    expect(urlsOf(await setup.rows(file))).toEqual([expect.stringMatching(/^! no column/)]);
  });

  test('a header alone, and nothing at all', async () => {
    expect(await read(`url${delimiter}x\n`, ending)).toEqual([]);
    expect(await read('', ending)).toEqual([]);
  });

  test('a stray quote costs no row', async () => {
    const rows = await read(`url${delimiter}n\n${A}/1${delimiter}5" disk\n${A}/2${delimiter}x\n`, ending);
    expect(urlsOf(rows)).toEqual([`${A}/1`, `${A}/2`]);
  });
});

describe('going on after any row', () => {
  const endings = ['.txt', '.txt.gz', '.jsonl', '.jsonl.gz', '.csv', '.csv.gz', '.tsv', '.tsv.gz'];
  const newline = fc.constantFrom('\n', '\r\n');
  const word = fc
    .string({ unit: fc.constantFrom('a', 'ü', '😀', '-', ' ', "'"), maxLength: 5 })
    .map((text) => text.trim());

  function contentOf(ending: string, words: string[], end: string, bom: boolean, last: boolean): string {
    const urls = words.map((text, index) => `${A}/${index}-${encodeURI(text)}`);
    const lines = urls.map((url, index) => {
      if (ending.startsWith('.txt')) return index % 4 === 3 ? `# ${words[index]}${end}${end}${url}` : url;
      if (ending.startsWith('.jsonl'))
        return index % 4 === 3
          ? `not json${end}${end}${JSON.stringify({ url, n: words[index] })}`
          : JSON.stringify({ url, n: words[index] });
      const delimiter = ending.startsWith('.tsv') ? '\t' : ',';
      const note = index % 3 === 0 ? `"${words[index]}${end}${delimiter}""x"""` : words[index]!;
      return index % 4 === 3 ? `${end}${url}${delimiter}${note}` : `${url}${delimiter}${note}`;
    });
    if (/^\.[ct]sv/.test(ending)) lines.unshift(`url${ending.startsWith('.tsv') ? '\t' : ','}note`);
    return `${bom ? '\ufeff' : ''}${lines.join(end)}${last ? end : ''}`;
  }

  test.each(endings)('%s: exactly the rest', (ending) =>
    fc.assert(
      fc.asyncProperty(
        fc.array(word, { maxLength: 9 }),
        newline,
        fc.boolean(),
        fc.boolean(),
        async (words, end, bom, last) => {
          const file = await setup.add(contentOf(ending, words, end, bom, last), ending);
          const source = setup.open(file);
          const all = await rowsOf(source);
          expect(all.filter(({ row }) => 'url' in row)).toHaveLength(words.length);
          for (const [index, { position }] of all.entries()) {
            expect(await rowsOf(setup.open(file), position)).toEqual(all.slice(index + 1));
          }
          await rm(file);
        },
      ),
      { numRuns: 25 },
    ),
  );

  test.each(endings)('%s: also deep in a file of many pieces', async (ending) => {
    const words = Array.from({ length: 4_000 }, (_, n) => `${'ü'.repeat(n % 40)}${n}`);
    const source = await sourceOf(contentOf(ending, words, '\r\n', true, false), ending);
    const all = await rowsOf(source);
    expect(all.filter(({ row }) => 'url' in row)).toHaveLength(4_000);
    for (const index of [0, 1_234, 2_345, all.length - 2, all.length - 1]) {
      expect(await rowsOf(source, all[index]!.position)).toEqual(all.slice(index + 1));
    }
  });

  test('a reader may leave early and another begin', async () => {
    const source = await sourceOf(
      Array.from({ length: 50_000 }, (_, n) => `${A}/${n}`).join('\n'),
      '.txt.gz',
    );
    let position: string | null = null;
    let count = 0;
    for await (const row of source.rows(null)) {
      position = row.position;
      if (++count === 20_000) break;
    }
    expect(await rowsOf(source, position)).toHaveLength(30_000);
  });
});
