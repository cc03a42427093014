import { describe, expect, test } from 'vitest';
import { parseSince } from '../../../../src/cli/export/export.ts';
import { formatOf } from '../../../../src/cli/export/formats.ts';
import { recordTable, tableWithMeta } from '../../../../src/cli/export/record-table.ts';
import type { JobInput } from '../../../../src/core/job-schema/job-schema.ts';
import { LIMITS } from '../../../../src/core/limits.ts';
import { jsonText } from '../../../../src/tables/table.ts';
import { collect, specOf } from '../../../support/fixtures.ts';

type Data = Record<string, unknown>;

async function tableOf(records: Data[], routes: JobInput['routes'] = [], later: Data[] = []) {
  let reads = 0;
  async function* read() {
    const all = reads++ === 0 ? records : [...records, ...later];
    yield* all.map((data, index) => ({ url: `u${index}`, key: `k${index}`, data }));
  }
  const fixed = { first: { url: 'text' }, last: { key: 'text' } } as const;
  const { columns, rows } = await recordTable(read, fixed, specOf({ routes: routes ?? [] }));
  return { columns: columns.map(({ name, type }) => `${name} ${type}`), rows: await collect(rows) };
}

describe('records as a table', () => {
  test('have a column for each field of any record, typed by its values', async () => {
    const { columns, rows } = await tableOf([
      { title: 'A', price: 1.5, ok: true, tags: ['x'] },
      { title: null, brand: 'B', mixed: 1 },
      { price: 2, mixed: 'two', nested: { a: 1 } },
    ]);
    expect(columns).toEqual([
      'url text',
      'title text',
      'price number',
      'ok boolean',
      'tags json',
      'brand text',
      'mixed text',
      'nested json',
      'key text',
      'rest json',
    ]);
    expect(rows).toEqual([
      ['u0', 'A', 1.5, true, '["x"]', null, null, null, 'k0', null],
      ['u1', null, null, null, null, 'B', '1', null, 'k1', null],
      ['u2', null, 2, null, null, null, 'two', '{"a":1}', 'k2', null],
    ]);
  });

  test('have the fields that the job names even when no record does', async () => {
    const { columns } = await tableOf(
      [],
      [{ name: 'p', select: { a: 'h1', n: { css: 'i', type: 'number' } } }],
    );
    expect(columns).toEqual(['url text', 'a text', 'n number', 'key text', 'rest json']);
  });

  test('fields whose names no file can hold are told apart', async () => {
    const { columns, rows } = await tableOf([{ '\ud800': 1, '\udc00': 2, constructor: 3 }]);
    expect(columns.slice(1, 4)).toEqual(['\ufffd number', 'data.\ufffd number', 'constructor number']);
    expect(rows[0]?.slice(1, 4)).toEqual([1, 2, 3]);
  });

  test('a field that is called like a column, in any case, is told apart', async () => {
    const { columns, rows } = await tableOf([{ URL: 1, key: 2, Price: 3, price: 4, rest: 5 }]);
    expect(columns).toEqual([
      'url text',
      'data.URL number',
      'data.key number',
      'Price number',
      'data.price number',
      'data.rest number',
      'key text',
      'rest json',
    ]);
    expect(rows).toEqual([['u0', 1, 2, 3, 4, 5, 'k0', null]]);
  });

  test('what came meanwhile and fits no column is in the last one', async () => {
    const { rows } = await tableOf(
      [{ a: 1, t: 'x' }],
      [],
      [{ a: 'no number', t: { deep: 1 }, late: true, n: null }],
    );
    expect(rows[1]!.slice(0, 3)).toEqual(['u1', null, null]);
    expect(JSON.parse(String(rows[1]!.at(-1)))).toEqual({ late: true, a: 'no number', t: { deep: 1 } });
  });

  test('the number of columns is bounded', async () => {
    const data = Object.fromEntries(
      Array.from({ length: LIMITS.tableFieldsMax + 3 }, (_, n) => [`f${n}`, n]),
    );
    const { columns, rows } = await tableOf([data]);
    expect(columns).toHaveLength(LIMITS.tableFieldsMax + 3);
    expect(Object.keys(JSON.parse(String(rows[0]!.at(-1))))).toHaveLength(3);
  });

  test('a field may be called like a member of every object', async () => {
    const { columns, rows } = await tableOf([JSON.parse('{"__proto__": 1, "constructor": "c"}'), {}]);
    expect(columns.slice(1, 3)).toEqual(['__proto__ number', 'constructor text']);
    expect(rows).toEqual([
      ['u0', 1, 'c', 'k0', null],
      ['u1', null, null, 'k1', null],
    ]);
  });
});

test('JSON is well-formed Unicode, also where a page gave half a character', () => {
  expect(jsonText({ a: '\ud800x', '\udfff': ['é😀'] })).toBe('{"a":"\ufffdx","\ufffd":["é😀"]}');
  expect(jsonText({ a: '\\ud800' })).toBe('{"a":"\\\\ud800"}');
});

describe('--since', () => {
  const now = Date.parse('2026-02-10T00:00:00Z');
  test.each([
    ['7d', '2026-02-03T00:00:00.000Z'],
    ['12h', '2026-02-09T12:00:00.000Z'],
    ['30m', '2026-02-09T23:30:00.000Z'],
    ['45s', '2026-02-09T23:59:15.000Z'],
    ['2w', '2026-01-27T00:00:00.000Z'],
    ['2026-01-31', '2026-01-31T00:00:00.000Z'],
    ['2026-01-31T12:30:00Z', '2026-01-31T12:30:00.000Z'],
    ['2026-01-31T12:30:00.5+01:00', '2026-01-31T11:30:00.500Z'],
  ])('%s', (text, expected) => {
    expect(new Date(parseSince(text, now)).toISOString()).toBe(expected);
  });

  test.each(['', 'yesterday', '7', '7 d', '-7d', '2026', '2026-13-01', '1.5d', 'Jan 1 2026'])(
    'not %s',
    (text) => {
      expect(() => parseSince(text, now)).toThrow(/--since needs a date or a duration/);
    },
  );
});

test('the format is told by the ending of the name', () => {
  const named = { csv: ['a.csv', 'a.CSV', 'a.csv.gz'], parquet: ['a.parquet', 's3://b/k.parquet'] };
  for (const [format, names] of Object.entries(named))
    for (const name of names) expect(formatOf(name)).toBe(format);
  const lines = ['a.jsonl.gz', 'a.ndjson', 'a', 'a.gz', '-', 's3://b/v1.2/key', 'a.2026-01-31', undefined];
  expect(lines.map(formatOf)).toEqual(lines.map(() => 'jsonl'));
  for (const name of ['a.xlsx', 'a.json', 'a.txt.gz', 's3://b/k.orc'])
    expect(() => formatOf(name)).toThrow(/unknown file format \.(xlsx|json|txt|orc)$/);
});

test('names in meta are columns, typed by their values', async () => {
  const rows = [
    { url: 'a', meta: { sku: 1, tags: ['x'] } },
    { url: 'b', meta: null },
    { url: 'c', meta: { sku: 2, note: '=1' } },
  ];
  async function* read() {
    yield* rows;
  }
  const table = await tableWithMeta({ url: 'text', meta: 'json' }, read);
  expect(table.columns.map(({ name, type }) => `${name} ${type}`)).toEqual([
    'url text',
    'meta json',
    'meta.sku number',
    'meta.tags json',
    'meta.note text',
  ]);
  expect(await collect(table.rows)).toEqual([
    ['a', '{"sku":1,"tags":["x"]}', 1, '["x"]', null],
    ['b', null, null, null, null],
    ['c', '{"sku":2,"note":"=1"}', 2, null, '=1'],
  ]);
});
