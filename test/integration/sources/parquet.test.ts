import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { RemoteFiles } from '../../../src/ports/remote-files.ts';
import { openLocalFiles } from '../../../src/sources/files/local-files.ts';
import { openParquetReader } from '../../../src/sources/parquet/parquet-source.ts';
import { collect } from '../../support/fixtures.ts';
import { parquetOf, textColumn, urlsUpTo, writeWithDuckDb } from '../../support/sources/parquet-files.ts';
import {
  continuesAnywhere,
  openSourceSetup,
  type SourceSetup,
  urlsOf,
} from '../../support/sources/source-files.ts';

const A = 'https://a.example';
/** Bytes that were read, over all files. */
let bytesRead = 0;
let setup: SourceSetup;

beforeAll(async () => {
  const local = openLocalFiles();
  const counted: RemoteFiles = {
    ...local,
    read(url, offset, length) {
      bytesRead += length;
      return local.read(url, offset, length);
    },
  };
  setup = await openSourceSetup({ files: async () => counted });
});
afterAll(() => setup.close());

const at = (name: string) => join(setup.dir, name);

/** Two row groups, the second of them short: DuckDB writes none under 2,048 rows but the last. */
const TYPED_ROWS = 2_300;
const EVERY_TYPE = `
  SELECT '${A}/' || i AS url, i AS id, (9007199254740993 + i)::BIGINT AS large, i % 2 = 0 AS even, i / 4 AS ratio,
    (i * 19.99)::DECIMAL(12, 2) AS price, DATE '2024-02-28' + i::INT AS day,
    TIMESTAMP '2024-02-28 23:59:59.5' + INTERVAL (i) SECOND AS moment,
    CASE WHEN i % 3 = 1 THEN NULL ELSE 'name ' || i || ' ü€' END AS name,
    [i, NULL, i + 1] AS list, CASE WHEN i % 2 = 1 THEN NULL ELSE ['a', 'b'] END AS tags,
    {'a': i, 'b': {'c': 'x' || i}} AS pair, [{'p': i, 'q': [i]}, NULL] AS deep, MAP {'k' || i: i} AS map,
    'plain'::BLOB AS text_bytes, '\\xFF\\x00\\xFE'::BLOB AS raw_bytes, '{"j": 1}'::JSON AS json
  FROM range(${TYPED_ROWS}) t(i)`;

describe.each(['uncompressed', 'snappy', 'gzip', 'zstd', 'brotli', 'lz4_raw'])('%s', (codec) => {
  test.each(['V1', 'V2'])('values of every type arrive as JSON (%s)', async (version) => {
    const file = at(`types-${codec}-${version}.parquet`);
    await writeWithDuckDb(
      file,
      EVERY_TYPE,
      `, CODEC '${codec}', ROW_GROUP_SIZE 2048, PARQUET_VERSION ${version}`,
    );
    const rows = await setup.rows(file);
    expect(urlsOf(rows)).toEqual(urlsUpTo(TYPED_ROWS));
    expect(rows.at(-1)).toMatchObject({ place: `row ${TYPED_ROWS}` });
    const expected = (i: number) => ({
      id: i,
      large: String(9007199254740993n + BigInt(i)),
      even: i % 2 === 0,
      ratio: i / 4,
      price: Math.round(i * 1_999) / 100,
      day: new Date(Date.UTC(2024, 1, 28 + i)).toISOString().slice(0, 10),
      moment: new Date(Date.UTC(2024, 1, 28, 23, 59, 59 + i, 500)).toISOString(),
      name: i % 3 === 1 ? null : `name ${i} ü€`,
      list: [i, null, i + 1],
      tags: i % 2 === 1 ? null : ['a', 'b'],
      pair: { a: i, b: { c: `x${i}` } },
      deep: [{ p: i, q: [i] }, null],
      map: { [`k${i}`]: i },
      text_bytes: 'plain',
      raw_bytes: '/wD+',
      json: { j: 1 },
    });
    for (const i of [0, 1, 2, 3, 2_047, 2_048, 2_222, TYPED_ROWS - 1]) {
      const meta = 'meta' in rows[i]!.row ? rows[i]!.row.meta : null;
      expect(meta, `row ${i}`).toEqual(expected(i));
      expect(JSON.parse(JSON.stringify(meta))).toEqual(meta);
    }
  });
});

test('every encoding of texts and numbers', async () => {
  const urls = urlsUpTo(9_000);
  const columns = {
    url: { data: urls, type: 'STRING', encoding: 'DELTA_BYTE_ARRAY' },
    lengths: { data: urls, type: 'STRING', encoding: 'DELTA_LENGTH_BYTE_ARRAY' },
    plain: { data: urls, type: 'STRING', encoding: 'PLAIN' },
    words: { data: urls.map((_, i) => (i % 3 ? `w${i % 40}` : null)), type: 'STRING', nullable: true },
    steps: { data: urls.map((_, i) => i * 7 - 3), type: 'INT32', encoding: 'DELTA_BINARY_PACKED' },
    split: { data: urls.map((_, i) => i / 7), type: 'DOUBLE', encoding: 'BYTE_STREAM_SPLIT' },
    runs: { data: urls.map((_, i) => i % 5 < 2), type: 'BOOLEAN', encoding: 'RLE' },
    same: { data: urls.map(() => 'same'), type: 'STRING' },
  } as const;
  const file = await setup.write(
    'encodings.parquet',
    parquetOf(columns as Parameters<typeof parquetOf>[0], {
      rowGroupSize: 4_000,
      pageSize: 4_096,
    }),
  );
  const rows = await setup.rows(file);
  expect(urlsOf(rows)).toEqual(urls);
  const metas = rows.map(({ row }) => ('meta' in row ? row.meta : null));
  for (const name of Object.keys(columns).slice(1) as Exclude<keyof typeof columns, 'url'>[])
    expect(
      metas.map((meta) => meta?.[name]),
      name,
    ).toEqual([...columns[name].data]);
});

describe('only what is needed', () => {
  test('columns that are not asked for are not read, nor is anything else', async () => {
    const file = at('wide.parquet');
    const wide = Array.from({ length: 8 }, (_, n) => `repeat(md5((i * 10 + ${n})::VARCHAR), 4) AS wide${n}`);
    await writeWithDuckDb(
      file,
      `SELECT '${A}/' || i AS url, i AS id, ${wide.join(', ')} FROM range(40000) t(i)`,
    );
    const size = await openLocalFiles().size(file);
    bytesRead = 0;
    const rows = await setup.rows({ file, meta: ['id'] });
    expect(rows).toHaveLength(40_000);
    expect(rows[7]!.row).toEqual({ url: `${A}/7`, meta: { id: 7 } });
    expect(bytesRead).toBeLessThan(size / 10);
    bytesRead = 0;
    await setup.check(file);
    expect(bytesRead).toBeLessThan(300_000);
  });

  test('a column may be named, and an unknown one is an error that shows the others', async () => {
    const file = await setup.write(
      'named.parquet',
      parquetOf({ href: textColumn([`${A}/1`]), n: textColumn(['x']) }),
    );
    await expect(setup.check(file)).rejects.toThrow(/no column 'url'.*href, n/);
    await expect(setup.check({ file, urlColumn: 'ref' })).rejects.toThrow(/no column 'ref'/);
    await setup.check({ file, urlColumn: 'href' });
    expect((await setup.rows({ file, urlColumn: 'href' }))[0]!.row).toEqual({
      url: `${A}/1`,
      meta: { n: 'x' },
    });
  });

  test('URL in capitals is found, and rows without one are rejected by their place', async () => {
    const data = [`${A}/1`, null, '', `${A}/4`];
    const file = await setup.write(
      'capitals.parquet',
      parquetOf({ URL: textColumn(data), TEXT: textColumn(data) }),
    );
    expect(
      (await setup.rows(file)).map(({ place, row }) => [place, 'url' in row ? row.url : row.reason]),
    ).toEqual([
      ['row 1', `${A}/1`],
      ['row 2', "no text in column 'URL'"],
      ['row 3', "no text in column 'URL'"],
      ['row 4', `${A}/4`],
    ]);
  });

  test('an oversized row is rejected, and the next one is read', async () => {
    const large = 'x'.repeat(2 * 1024 * 1024);
    const columns = { url: textColumn(urlsUpTo(3)), text: textColumn(['a', large, 'c']) };
    const file = await setup.write('large.parquet', parquetOf(columns));
    expect(urlsOf(await setup.rows(file))).toEqual([
      `${A}/0`,
      expect.stringMatching(/^! .*larger than/),
      `${A}/2`,
    ]);
    expect(urlsOf(await setup.rows({ file, meta: [] }))).toEqual(urlsUpTo(3));
  });
});

describe('going on after any row', () => {
  test('in the first and last rows of pieces, pages and row groups, with nested columns', async () => {
    const file = at('resume.parquet');
    const select = `SELECT '${A}/' || i AS url, CASE WHEN i % 3 = 0 THEN NULL ELSE [i, i + 1] END AS list, {'n': i} AS s FROM range(2600) t(i)`;
    await writeWithDuckDb(file, select, ', ROW_GROUP_SIZE 2048');
    const all = await setup.rows(file);
    expect(all).toHaveLength(2_600);
    const indexes = [0, 499, 500, 2_046, 2_047, 2_598, 2_599];
    expect(await continuesAnywhere(all, (position) => setup.rows(file, position), indexes)).toBeNull();
  });

  test('every single row of a file with small pages', async () => {
    const columns = {
      url: textColumn(urlsUpTo(24)),
      tags: {
        data: urlsUpTo(24).map((_, i) => Array.from({ length: i % 4 }, (_, k) => k)),
        type: 'JSON' as const,
      },
    };
    const file = await setup.write('small.parquet', parquetOf(columns, { rowGroupSize: 10, pageSize: 200 }));
    // One reader, and so one thread, for all: starting a thread for each row took a fifth of this file's time.
    const reader = openParquetReader(openLocalFiles(), {});
    const read = (at: unknown) => collect(reader.rows(file, at));
    try {
      const all = await read(null);
      expect(all).toHaveLength(24);
      for (const [index, { at }] of all.entries()) expect(await read(at)).toEqual(all.slice(index + 1));
    } finally {
      await reader.close();
    }
  });
});

test('a row group of 300,000 rows is read with the memory of a few', async () => {
  const count = 300_000;
  const urls = Array.from({ length: count }, (_, n) => `${A}/${'long-path/'.repeat(4)}${n}`);
  const column = { data: urls, type: 'STRING', encoding: 'PLAIN' } as const;
  const bytes = parquetOf({ url: column, copy: column }, { rowGroupSize: count, codec: 'UNCOMPRESSED' });
  expect(bytes.length).toBeGreaterThan(35 * 2 ** 20);
  const file = await setup.write('large.parquet', bytes);
  const program = fileURLToPath(new URL('../../support/sources/read-source.ts', import.meta.url));
  // Its rows, held as values, take 175 MB: a process that may not have them dies of it.
  const { stdout } = await promisify(execFile)(process.execPath, ['--max-old-space-size=96', program, file]);
  expect(JSON.parse(stdout)).toEqual({ rows: count });
});
