import { createReadStream } from 'node:fs';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { LIMITS } from '../../../src/core/limits.ts';
import { openCsvReader } from '../../../src/sources/formats/csv-source.ts';
import { collect } from '../../support/fixtures.ts';
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

const urls = (...numbers: number[]) => numbers.map((n) => `${A}/${n}`);

describe.each(['.csv', '.csv.gz'])('malformed rows of %s', (ending) => {
  const write = (lines: string[], end = '\n') => setup.add(lines.join(end), ending);
  const read = async (lines: string[], end = '\n') => setup.rows(await write(lines, end));

  test('a quote that is not closed costs its row alone, named with its line', async () => {
    const lines = Array.from({ length: 2_000 }, (_, n) => `${A}/${n + 1},ok`);
    lines[2] = `${A}/3,"oops`;
    const rows = await read(['url,t', ...lines, '']);
    const rejected = rows.filter(({ row }) => 'reason' in row);
    expect(rejected).toMatchObject([
      { place: 'row 3', row: { reason: 'not valid CSV, from line 4 on: a quote is not closed' } },
    ]);
    expect(rows).toHaveLength(2_000);
    expect(rows[3]).toMatchObject({ place: 'row 4', row: { url: `${A}/4`, meta: { t: 'ok' } } });
  });

  test.each(['\n', '\r\n', '\r'])('a later quote does not swallow the rows before it (%j)', async (end) => {
    const lines = ['url,t', `${A}/1,"a${end}b"`, '', `${A}/2,"oops`, `${A}/3,x`, `${A}/4,"fine"`, `${A}/5,x`];
    const rows = await read(lines, end);
    expect(urlsOf(rows)).toEqual([
      ...urls(1),
      expect.stringMatching(/^! not valid CSV, from line 5 on: a quote is not closed/),
      ...urls(3, 4, 5),
    ]);
    expect(rows[3]!.row).toMatchObject({ meta: { t: 'fine' } });
  });

  test('returns alone end lines, and line feeds within quotes do not', async () => {
    const rows = await read(['url,t', `${A}/1,"a\nb"`, `${A}/2,"oops`, `${A}/3,x`], '\r');
    expect(urlsOf(rows)).toEqual([
      ...urls(1),
      '! not valid CSV, from line 3 on: a quote is not closed',
      ...urls(3),
    ]);
    expect(rows[0]!.row).toMatchObject({ meta: { t: 'a\nb' } });
  });

  test('cells that begin with quotes and have lines are none of them', async () => {
    const cell = '"a" and\n"b"';
    const rows = await read(['url,t', `${A}/1,"${cell.replaceAll('"', '""')}"`, `${A}/2,5" disk`]);
    expect(rows.map(({ row }) => 'meta' in row && row.meta)).toEqual([{ t: cell }, { t: '5" disk' }]);
  });

  test.each([
    ['with a line end', ['']],
    ['without', []],
  ])('the last row is rejected too (%s)', async (_, last) => {
    const rows = await read(['url,t', `${A}/1,x`, `${A}/2,"oops`, ...last]);
    expect(urlsOf(rows)).toEqual([...urls(1), '! not valid CSV, from line 3 on: a quote is not closed']);
    expect(rows[1]!.place).toBe('row 2');
  });

  test.each([
    ['quoted text', `"${'x'.repeat(1_100_000)}"`],
    ['text', 'x'.repeat(1_100_000)],
    ['cells without text', ','.repeat(1_100_000)],
    ['doubled quotes', `"${'""'.repeat(600_000)}"`],
  ])('a row larger than a megabyte costs itself alone: %s', async (_, cell) => {
    const file = await write(['url,n', `${A}/1,x`, `${A}/2,${cell}`, `${A}/3,x`, `${A}/4,${cell}`]);
    const rows = await setup.rows(file);
    expect(urlsOf(rows)).toEqual([
      ...urls(1),
      expect.stringMatching(/^! not valid CSV, from line 3 on: larger than 1048576 bytes/),
      ...urls(3),
      expect.stringMatching(/^! not valid CSV, from line 5 on: larger/),
    ]);
    expect(await continuesAnywhere(rows, (position) => setup.rows(file, position))).toBeNull();
  });

  test('whoever goes on after any row gets the same rest, with the same lines', async () => {
    const broken = [`${A}/b,"oops`, `"${A}/c,x`, `${A}/d,"a\n\nb" c`, '', `${A}/e,"x\r\ny"`, `${A}/f,z`];
    const file = await write(['\ufeffurl,t', ...broken, ...broken, ...broken]);
    const rows = await setup.rows(file);
    expect(rows.filter(({ row }) => 'reason' in row).length).toBeGreaterThan(6);
    expect(await continuesAnywhere(rows, (position) => setup.rows(file, position))).toBeNull();
  });

  test('every row broken is read in one go', async () => {
    const lines = Array.from({ length: 2_000 }, (_, n) => `${A}/${n},"oops`);
    const rows = await read(['url,t', ...lines]);
    expect(rows).toHaveLength(2_000);
    expect(rows.every(({ row }) => 'reason' in row)).toBe(true);
  });

  test('a file that would be read again without end is given up with one entry', async () => {
    // Whether a quote is open before such a line or not, one is open after it.
    const lines = Array.from({ length: 40_000 }, () => '",x","c');
    const rows = await read(['url,t', `${A}/1,x`, ...lines]);
    expect(rows.length).toBeLessThan(1_000);
    expect(rows.at(-1)!.place).toBe(`after row ${rows.length - 1}`);
    expect(urlsOf(rows.slice(-1))[0]).toMatch(
      /^! too many rows are not valid CSV, the last, from line \d+ on/,
    );
  });
});

test('pieces of any size make no difference', async () => {
  const lines = ['url,t', `${A}/1,"oops`, '', `${A}/2,"x\r\ny"`, `"${A}/3,ü`, `${A}/4,"fine"`, `${A}/5,"end`];
  const path = await setup.add(`\ufeff${lines.join('\r\n')}`, '.csv');
  const read = (highWaterMark: number) => {
    const stream = async (url: string, start = 0) => createReadStream(url, { start, highWaterMark });
    return collect(openCsvReader({ stream }, {}).rows(path, null));
  };
  const whole = await read(LIMITS.sourceRowBytesMax);
  expect(whole.map(({ row }) => 'reason' in row)).toEqual([true, false, true, false, true]);
  for (const size of [1, 2, 3, 5, 7, 16]) expect(await read(size)).toEqual(whole);
});
