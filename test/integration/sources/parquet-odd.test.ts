import { parquetWriteBuffer } from 'hyparquet-writer';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { messageOf } from '../../../src/core/errors.ts';
import { openLocalFiles } from '../../../src/sources/files/local-files.ts';
import { openParquetReader } from '../../../src/sources/parquet/parquet-source.ts';
import { collect } from '../../support/fixtures.ts';
import { parquetOf, textColumn, urlsUpTo, writeWithDuckDb } from '../../support/sources/parquet-files.ts';
import { firstColumn, withFooter } from '../../support/sources/parquet-footer.ts';
import type { SourceSetup } from '../../support/sources/source-files.ts';
import { openSourceSetup, urlsOf } from '../../support/sources/source-files.ts';

/** Files that other readers read, and that few writers make. */

let setup: SourceSetup;
beforeAll(async () => {
  setup = await openSourceSetup();
});
afterAll(() => setup.close());

const metaOf = async (file: string) =>
  (await setup.rows(file)).map(({ row }) => ('meta' in row ? row.meta : row));

/** A file whose first column is made by a schema of its own; the other is `url`. */
function written(schema: object[], column: object): Buffer {
  const all = [
    { name: 'root', num_children: 2 },
    ...schema,
    { name: 'url', type: 'BYTE_ARRAY', converted_type: 'UTF8', repetition_type: 'REQUIRED' },
  ];
  const options = { schema: all, columnData: [column, { name: 'url', data: urlsUpTo(3) }] };
  return Buffer.from(parquetWriteBuffer(options as Parameters<typeof parquetWriteBuffer>[0]));
}

test('a column whose size leaves out the header of its dictionary', async () => {
  const urls = urlsUpTo(600).map((_, index) => `https://a.example/${index % 3}`);
  const whole = parquetOf({ url: textColumn(urls), n: textColumn(urls) }, { codec: 'UNCOMPRESSED' });
  const bytes = withFooter(whole, (footer) => {
    const { field_3: column } = firstColumn(footer);
    expect(column.field_11).toBeDefined();
    column.field_7 -= 12n;
  });
  expect(urlsOf(await setup.rows(await setup.write('dictionary.parquet', bytes)))).toEqual(urls);
});

test('lists of two levels, as old writers make them: [] is not null', async () => {
  const whole = written(
    [
      { name: 'old', num_children: 1, converted_type: 'LIST', repetition_type: 'OPTIONAL' },
      { name: 'list', num_children: 1, repetition_type: 'REPEATED' },
      { name: 'element', type: 'INT32', repetition_type: 'REQUIRED' },
    ],
    { name: 'old', data: [[4, 5], null, []] },
  );
  // Without the group in the middle the levels of the values are the same.
  const bytes = withFooter(whole, (footer) => {
    const [root, old, list, element, ...rest] = footer.field_2;
    footer.field_2 = [root, old, { ...element, field_3: list.field_3 }, ...rest];
    firstColumn(footer).field_3.field_3 = ['old', 'element'];
  });
  expect(await metaOf(await setup.write('lists.parquet', bytes))).toEqual([
    { old: [4, 5] },
    { old: null },
    { old: [] },
  ]);
});

test('times with microseconds', async () => {
  const file = `${setup.dir}/times.parquet`;
  const times = ['2024-01-02 03:04:05.123456', '1969-12-31 23:59:59.999999', '2024-01-02 03:04:05.120'];
  await writeWithDuckDb(
    file,
    `SELECT 'https://a.example/' AS url, unnest([${times.map((time) => `TIMESTAMP '${time}'`).join(', ')}]) AS at`,
  );
  expect((await metaOf(file)).map((meta) => (meta as { at: string }).at)).toEqual([
    '2024-01-02T03:04:05.123456Z',
    '1969-12-31T23:59:59.999999Z',
    '2024-01-02T03:04:05.120Z',
  ]);
});

test('INT96 has microseconds, too', async () => {
  const nanos = 11_045_123_456_000n;
  const day = 2_460_312n;
  const stamp = Buffer.alloc(12);
  stamp.writeBigInt64LE(nanos, 0);
  stamp.writeInt32LE(Number(day), 8);
  const whole = written(
    [{ name: 'at', type: 'FIXED_LEN_BYTE_ARRAY', type_length: 12, repetition_type: 'REQUIRED' }],
    { name: 'at', data: [stamp, stamp, stamp], encoding: 'PLAIN' },
  );
  const bytes = withFooter(whole, (footer) => {
    const INT96 = 3;
    footer.field_2[1].field_1 = INT96;
    delete footer.field_2[1].field_2;
    const { field_3: column } = firstColumn(footer);
    column.field_1 = INT96;
    delete column.field_12;
  });
  expect(await metaOf(await setup.write('int96.parquet', bytes))).toEqual([
    { at: '2024-01-02T03:04:05.123456Z' },
    { at: '2024-01-02T03:04:05.123456Z' },
    { at: '2024-01-02T03:04:05.123456Z' },
  ]);
});

test('an encrypted column says so, and the others can be read', async () => {
  const whole = parquetOf({ secret: textColumn(['x']), url: textColumn(urlsUpTo(1)) });
  const bytes = withFooter(whole, (footer) => {
    firstColumn(footer).field_8 = { field_1: {} };
  });
  const file = await setup.write('encrypted.parquet', bytes);
  expect(urlsOf(await setup.rows(file))).toEqual([
    "! cannot read it as Parquet: the column 'secret' is encrypted",
  ]);
  expect(urlsOf(await setup.rows({ file, meta: [] }))).toEqual(urlsUpTo(1));
});

test('no damage speaks JavaScript', async () => {
  const whole = parquetOf({ url: textColumn(urlsUpTo(60)), n: textColumn(urlsUpTo(60)) });
  const reasons = new Set<string>();
  // One reader, and so one thread, for all.
  const reader = openParquetReader(openLocalFiles(), {});
  for (let at = 4; at < whole.length - 8; at += 17) {
    const bytes = Buffer.from(whole);
    bytes.fill(at % 2 === 0 ? 0xff : 0x80, at, at + 4);
    const file = await setup.write('damaged.parquet', bytes);
    await collect(reader.rows(file, null)).catch((error: unknown) => reasons.add(messageOf(error)));
  }
  await reader.close();
  expect(reasons.size).toBeGreaterThan(3);
  for (const reason of reasons)
    expect(reason).not.toMatch(
      /undefined|not iterable|is not a function|DataView|BigInt|typed array|Invalid|Cannot (?:read prop|mix|convert)/,
    );
});
