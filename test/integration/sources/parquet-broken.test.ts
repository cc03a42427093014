import { rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { SourceRow } from '../../../src/ports/source.ts';
import { openLocalFiles } from '../../../src/sources/files/local-files.ts';
import { openParquetReader } from '../../../src/sources/parquet/parquet-source.ts';
import { BrokenFileError } from '../../../src/sources/rows/raw-row.ts';
import { collect } from '../../support/fixtures.ts';
import { parquetOf, textColumn, urlsUpTo, writeWithDuckDb } from '../../support/sources/parquet-files.ts';
import { openSourceSetup, type SourceSetup, urlsOf } from '../../support/sources/source-files.ts';

let setup: SourceSetup;
/** Three files, of which the middle one is damaged in every test. */
let pattern: string;
let middle: string;
let whole: Buffer;
const unhandled: unknown[] = [];
const note = (error: unknown) => unhandled.push(error);

beforeAll(async () => {
  process.on('unhandledRejection', note);
  setup = await openSourceSetup();
  pattern = join(setup.dir, 'three', '*.parquet');
  await setup.write('three/1.parquet', parquetOf({ url: textColumn(urlsUpTo(30, 'one')) }));
  await setup.write('three/3.parquet', parquetOf({ url: textColumn(urlsUpTo(30, 'three')) }));
  middle = join(setup.dir, 'three', '2.parquet');
  const columns = { url: textColumn(urlsUpTo(3_000, 'two')), note: textColumn(urlsUpTo(3_000)) };
  whole = parquetOf(columns, { rowGroupSize: 1_000, pageSize: 8_192 });
});
afterAll(async () => {
  process.off('unhandledRejection', note);
  await setup.close();
});
afterEach(() => expect(unhandled).toEqual([]));

const hostsOf = (rows: SourceRow[]) =>
  Object.fromEntries(
    [
      ...Map.groupBy(rows, ({ row }) =>
        'url' in row ? new URL(row.url).hostname.split('.')[0]! : 'rejected',
      ),
    ].map(([host, of]) => [host, of.length]),
  );

/** Both others are read wholly, and the damaged one is a single entry after what could be read of it. */
async function readAround(bytes: Buffer, reason: RegExp): Promise<SourceRow[]> {
  await writeFile(middle, bytes);
  const rows = await setup.rows(pattern);
  const { two = 0, ...rest } = hostsOf(rows);
  expect(rest).toEqual({ one: 30, three: 30, rejected: 1 });
  const index = rows.findIndex(({ row }) => 'reason' in row);
  expect(rows[index]).toMatchObject({
    place: two === 0 ? '2.parquet' : `2.parquet, after row ${two}`,
    row: { reason: expect.stringMatching(reason) },
  });
  expect(index).toBe(30 + two);
  expect(urlsOf(await setup.rows(pattern, rows[index]!.position))).toEqual(urlsUpTo(30, 'three'));
  return rows;
}

describe('one damaged file is one entry, and the others are read', () => {
  test('whole, it is read', async () => {
    await writeFile(middle, whole);
    expect(hostsOf(await setup.rows(pattern))).toEqual({ one: 30, two: 3_000, three: 30 });
  });

  test.each([
    ['no bytes', () => Buffer.alloc(0), /too short/],
    ['a few bytes', () => Buffer.from('PAR1PAR1'), /too short/],
    ['something else', () => Buffer.from('url\nhttps://a.example/\n'.repeat(50)), /it is incomplete/],
    ['bad magic at the end', () => patched(whole, -4, 'PARX'), /it is incomplete/],
    ['an encrypted footer', () => patched(whole, -4, 'PARE'), /encrypted/],
    ['a footer longer than the file', () => patched(whole, -8, '\xff\xff\xff\x0f'), /longer than the file/],
    [
      'a footer of zeros',
      () => patched(whole, -8 - footerBytes(), '\0'.repeat(footerBytes())),
      /cannot read it as Parquet/,
    ],
    ['cut in the footer', () => whole.subarray(0, whole.length - 100), /it is incomplete/],
    ['cut in the middle', () => whole.subarray(0, whole.length >> 1), /it is incomplete/],
    ['the first half missing', () => whole.subarray(whole.length >> 1), /cannot read it as Parquet/],
    ['no column of URLs', () => parquetOf({ href: textColumn(['x']) }), /no column 'url'/],
  ])('%s', async (_, bytes, reason) => {
    const rows = await readAround(bytes(), reason);
    expect(hostsOf(rows)).not.toHaveProperty('two');
    await expect(setup.check(middle)).rejects.toThrow(reason);
  });

  test('a page in the middle: rows before it are read, and it is said once', async () => {
    const { length } = whole;
    const broken = Buffer.from(whole);
    broken.fill(0xff, length >> 1, (length >> 1) + 2_000);
    const rows = await readAround(broken, /cannot read it as Parquet/);
    const { two } = hostsOf(rows);
    expect(two).toBeGreaterThan(500);
    expect(two).toBeLessThan(3_000);
  });

  test('a file that vanishes while it is read, or before it is continued', async () => {
    await writeFile(middle, whole);
    const seen: SourceRow[] = [];
    for await (const row of setup.open(pattern).rows(null)) {
      seen.push(row);
      if (seen.length === 20) await rm(middle);
    }
    // It was listed, so that its absence is an entry.
    expect(hostsOf(seen)).toMatchObject({ one: 30, three: 30 });
    await writeFile(middle, whole);
    const all = await setup.rows(pattern);
    await rm(middle);
    const rest = await setup.rows(pattern, all[100]!.position);
    expect(urlsOf(rest)).toEqual([expect.stringMatching(/^! it was removed/), ...urlsUpTo(30, 'three')]);
    expect(urlsOf(await setup.rows(pattern, rest[0]!.position))).toEqual(urlsUpTo(30, 'three'));
  });
});

test.each(['uncompressed', 'snappy', 'zstd'])(
  'bytes changed anywhere never do worse than end that file (%s)',
  async (codec) => {
    const file = join(setup.dir, `soil-${codec}.parquet`);
    const select = `SELECT 'https://a.example/' || i AS url, CASE WHEN i % 5 = 0 THEN NULL ELSE 'n' || (i % 7) END AS name, [i, i + 1] AS list FROM range(300) t(i)`;
    await writeWithDuckDb(file, select, `, CODEC '${codec}', ROW_GROUP_SIZE 150, PARQUET_VERSION V2`);
    const files = openLocalFiles();
    const good = await files.read(file, 0, await files.size(file));
    const reader = openParquetReader(files, {});
    let broken = 0;
    for (let at = 4; at < good.length; at += Math.ceil(good.length / 60)) {
      const bytes = Buffer.from(good);
      bytes.fill(at % 2 === 0 ? 0xff : 0x80, at, at + 5);
      await writeFile(file, bytes);
      const rows = await collect(reader.rows(file, null)).catch((error: unknown) => error);
      if (rows instanceof BrokenFileError) broken++;
      else expect(rows, `byte ${at}`).toBeInstanceOf(Array);
    }
    expect(broken).toBeGreaterThan(5);
    await reader.close();
  },
);

describe('what would take the process down takes only a thread', () => {
  const read = async (file: string, limits: { heapMb: number; stallMs: number }) => {
    const reader = openParquetReader(openLocalFiles(), {}, limits);
    try {
      const bad = await collect(reader.rows(file, null)).catch((error: unknown) => error);
      // The next file gets a new thread.
      await writeFile(middle, whole);
      return { bad, good: (await collect(reader.rows(middle, null))).length };
    } finally {
      await reader.close();
    }
  };

  test('a loop that does not end', async () => {
    // A number of four million digits, each of which is added to all before it.
    const footer = Buffer.concat([Buffer.from([0x16]), Buffer.alloc(4_000_000, 0xff)]);
    const length = Buffer.alloc(4);
    length.writeUInt32LE(footer.length);
    const bytes = Buffer.concat([Buffer.from('PAR1'), footer, length, Buffer.from('PAR1')]);
    const file = await setup.write('endless.parquet', bytes);
    const { bad, good } = await read(file, { heapMb: 256, stallMs: 2_000 });
    expect(bad).toBeInstanceOf(BrokenFileError);
    expect(String(bad)).toMatch(/longer than 2 seconds/);
    expect(good).toBe(3_000);
  });

  test('more memory than it may have', async () => {
    const text = 'x'.repeat(1_000);
    const data = urlsUpTo(40_000).map((url) => url + text);
    const file = await setup.write(
      'heavy.parquet',
      parquetOf({ url: textColumn(data) }, { pageSize: 2 ** 28 }),
    );
    const { bad, good } = await read(file, { heapMb: 20, stallMs: 30_000 });
    expect(bad).toBeInstanceOf(BrokenFileError);
    expect(good).toBe(3_000);
  });
});

function footerBytes(): number {
  return whole.readUInt32LE(whole.length - 8);
}

/** From the end, as in `slice`. */
function patched(bytes: Buffer, at: number, text: string): Buffer {
  const copy = Buffer.from(bytes);
  copy.write(text, bytes.length + at, 'latin1');
  return copy;
}
