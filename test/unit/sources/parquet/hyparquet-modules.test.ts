import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parquetSchema, type SchemaElement } from 'hyparquet';
import { assembleLists, assembleNested } from 'hyparquet/src/assemble.js';
import { parquetHeader } from 'hyparquet/src/column.js';
import { convert, DEFAULT_PARSERS } from 'hyparquet/src/convert.js';
import { decompressPage } from 'hyparquet/src/datapage.js';
import { deltaBinaryUnpack } from 'hyparquet/src/delta.js';
import { byteStreamSplit } from 'hyparquet/src/encoding.js';
import { readPlain } from 'hyparquet/src/plain.js';
import { getMaxDefinitionLevel, getMaxRepetitionLevel, getTreePath } from 'hyparquet/src/schema.js';
import type { ColumnDecoder } from 'hyparquet/src/types.js';
import { describe, expect, test } from 'vitest';

/**
 * Seine reads Parquet with functions of hyparquet that its versions do not promise to keep (ADR 12 has the reasons).
 * Here is everything that is relied on, so that an update that changes one of them fails here, by name.
 */

/** The version that the vectors below were written for. */
const VERSION = '1.31.5';
const REMEDY =
  'hyparquet was updated: compare the modules below with the last version, run this file and ' +
  'test/integration/sources-parquet*.test.ts, repair src/**/parquet-*.ts where they differ, then change VERSION here';

const ROOT = fileURLToPath(new URL('../../../..', import.meta.url));

test('the version is the one that was checked, installed and pinned', () => {
  const { version } = createRequire(import.meta.url)(join(ROOT, 'node_modules/hyparquet/package.json')) as {
    version: string;
  };
  const own = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
    dependencies: Record<string, string>;
  };
  expect(version, REMEDY).toBe(VERSION);
  expect(own.dependencies.hyparquet, 'pin hyparquet exactly: its private modules are used').toBe(VERSION);
});

test('no other private function is used than those with a vector here', () => {
  const imports = readdirSync(join(ROOT, 'src'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts'))
    .flatMap((path) => [
      ...readFileSync(join(ROOT, 'src', path), 'utf8').matchAll(
        /^import (?!type )\{([^}]*)\} from 'hyparquet\/src\/([\w-]+)\.js'/gm,
      ),
    ])
    .flatMap(([, names, module]) => names!.split(',').map((name) => `${module}.${name.trim()}`));
  expect(
    [...new Set(imports)].sort(),
    'add a vector here for what is new, or remove the one that is unused',
  ).toEqual([
    'assemble.assembleLists',
    'assemble.assembleNested',
    'column.parquetHeader',
    'convert.DEFAULT_PARSERS',
    'convert.convert',
    'datapage.decompressPage',
    'delta.deltaBinaryUnpack',
    'encoding.byteStreamSplit',
    'plain.readPlain',
    'schema.getMaxDefinitionLevel',
    'schema.getMaxRepetitionLevel',
    'schema.getTreePath',
  ]);
});

test.each([
  ['assembleLists', assembleLists, 5],
  ['assembleNested', assembleNested, 3],
  ['parquetHeader', parquetHeader, 1],
  ['convert', convert, 2],
  ['decompressPage', decompressPage, 4],
  ['deltaBinaryUnpack', deltaBinaryUnpack, 3],
  ['byteStreamSplit', byteStreamSplit, 4],
  ['readPlain', readPlain, 4],
  ['getMaxDefinitionLevel', getMaxDefinitionLevel, 1],
  ['getMaxRepetitionLevel', getMaxRepetitionLevel, 1],
  ['getTreePath', getTreePath, 2],
])('%s takes what it took', (_, called, parameters) => {
  expect(called, REMEDY).toBeTypeOf('function');
  expect(called.length, REMEDY).toBe(parameters);
});

/** `list: optional list<int32>`, `pair: required { left: int32, right: int32 }`. */
const TREE = parquetSchema({
  schema: [
    { name: 'root', num_children: 2 },
    { name: 'list', repetition_type: 'OPTIONAL', num_children: 1, converted_type: 'LIST' },
    { name: 'list', repetition_type: 'REPEATED', num_children: 1 },
    { name: 'element', repetition_type: 'OPTIONAL', type: 'INT32' },
    { name: 'pair', repetition_type: 'REQUIRED', num_children: 2 },
    { name: 'left', repetition_type: 'REQUIRED', type: 'INT32' },
    { name: 'right', repetition_type: 'REQUIRED', type: 'INT32' },
  ] as SchemaElement[],
} as Parameters<typeof parquetSchema>[0]);

const readerOf = (...bytes: number[]) => ({ view: new DataView(Uint8Array.from(bytes).buffer), offset: 0 });
const decoderOf = (element: Partial<SchemaElement>, type: ColumnDecoder['type']): ColumnDecoder => ({
  ...{ type, element: { name: 'column', ...element }, codec: 'UNCOMPRESSED', parsers: DEFAULT_PARSERS },
  ...{ utf8: false, schemaPath: [], pathInSchema: [] },
});

describe('schemas', () => {
  test('a path leads from the root to a leaf, and knows its levels', () => {
    const path = getTreePath(TREE, ['list', 'list', 'element']);
    expect(path.map(({ element }) => element.name)).toEqual(['root', 'list', 'list', 'element']);
    expect(path.at(-1)!.path).toEqual(['list', 'list', 'element']);
    expect([getMaxRepetitionLevel(path), getMaxDefinitionLevel(path)]).toEqual([1, 3]);
    const left = getTreePath(TREE, ['pair', 'left']);
    expect([getMaxRepetitionLevel(left), getMaxDefinitionLevel(left)]).toEqual([0, 0]);
    expect(() => getTreePath(TREE, ['none'])).toThrow();
  });

  test('lists are put together from levels, and go on in a list that is open', () => {
    const path = getTreePath(TREE, ['list', 'list', 'element']);
    // [1, 2], null, [], [null, 3]: one array around each level that may be absent.
    const rows = assembleLists([], [3, 3, 0, 1, 2, 3], [0, 1, 0, 0, 0, 1], [1, 2, 3], path);
    expect(rows).toEqual([[[1, 2]], [], [[]], [[null, 3]]]);
    const parts = new Map([['list.list.element', rows]]);
    assembleNested(parts, getTreePath(TREE, ['list']).at(-1)!, DEFAULT_PARSERS);
    expect(parts.get('list')).toEqual([[1, 2], undefined, [], [null, 3]]);
    const open = assembleLists([], [3], [0], [1], path) as unknown[];
    expect(assembleLists(open, [3, 3], [1, 0], [2, 9], path)).toEqual([[[1, 2]], [[9]]]);
  });

  test('the parts of a struct become one value a row, in place', () => {
    const pair = getTreePath(TREE, ['pair']).at(-1)!;
    const parts = new Map<string, unknown[]>([
      ['pair.left', [1, 2]],
      ['pair.right', [3, 4]],
    ]);
    assembleNested(parts, pair, DEFAULT_PARSERS);
    expect(parts.get('pair')).toEqual([
      { left: 1, right: 3 },
      { left: 2, right: 4 },
    ]);
  });
});

describe('pages', () => {
  test('a header, and the reader stands behind it', () => {
    const bytes = [
      0x15, 0x00, 0x15, 0x14, 0x15, 0x10, 0x15, 0x0d, 0x1c, 0x15, 0x06, 0x15, 0x00, 0x15, 0x06, 0x15, 0x06,
      0x00, 0x00,
    ];
    const reader = readerOf(...bytes, 0xff);
    expect(parquetHeader(reader)).toMatchObject({
      type: 'DATA_PAGE',
      uncompressed_page_size: 10,
      compressed_page_size: 8,
      crc: -7,
      data_page_header: { num_values: 3, encoding: 'PLAIN' },
    });
    expect(reader.offset).toBe(bytes.length);
    expect(() => parquetHeader(readerOf(0x15, 0x00, 0x15))).toThrow(RangeError);
  });

  test('unpacked with the codecs given, to exactly the size claimed', () => {
    const bytes = Uint8Array.of(1, 2, 3);
    const codecs = { GZIP: () => Uint8Array.of(7, 7) };
    expect(decompressPage(bytes, 3, 'UNCOMPRESSED', codecs)).toBe(bytes);
    expect(decompressPage(bytes, 2, 'GZIP', codecs)).toEqual(Uint8Array.of(7, 7));
    expect(() => decompressPage(bytes, 5, 'GZIP', codecs)).toThrow();
    expect(() => decompressPage(bytes, 5, 'LZO', codecs)).toThrow();
  });
});

describe('values', () => {
  test('plain ones, and the reader stands behind them', () => {
    const reader = readerOf(1, 0, 0, 0, 2, 0, 0, 0, 9);
    expect([...readPlain(reader, 'INT32', 2, undefined)]).toEqual([1, 2]);
    expect(reader.offset).toBe(8);
    const texts = readerOf(1, 0, 0, 0, 0x61, 2, 0, 0, 0, 0x62, 0x63);
    expect(readPlain(texts, 'BYTE_ARRAY', 1, undefined)).toEqual([Uint8Array.of(0x61)]);
    // The next ones are taken from where the first ended: pages are read in pieces.
    expect(readPlain(texts, 'BYTE_ARRAY', 1, undefined)).toEqual([Uint8Array.of(0x62, 0x63)]);
    expect(readPlain(readerOf(1, 2, 3, 4), 'FIXED_LEN_BYTE_ARRAY', 2, 2)).toEqual([
      Uint8Array.of(1, 2),
      Uint8Array.of(3, 4),
    ]);
  });

  test('deltas', () => {
    const bytes = [0x80, 0x01, 4, 8, 0x0e, 0x03, 2, 0, 0, 0, 0xc0, 0x3f, 0, 0, 0, 0, 0, 0];
    const numbers = new Int32Array(8);
    const reader = readerOf(...bytes);
    deltaBinaryUnpack(reader, 8, numbers);
    expect([...numbers]).toEqual([7, 5, 3, 1, 2, 3, 4, 5]);
    expect(reader.offset).toBe(bytes.length);
    const large = new BigInt64Array(8);
    deltaBinaryUnpack(readerOf(...bytes), 8, large);
    expect([...large]).toEqual([7n, 5n, 3n, 1n, 2n, 3n, 4n, 5n]);
  });

  test('bytes in streams', () => {
    const bytes = readerOf(0, 0, 0, 0, 0x80, 0, 0x3f, 0x40);
    expect([...byteStreamSplit(bytes, 2, 'FLOAT', undefined)]).toEqual([1, 2]);
  });

  test('converted to texts, dates and decimals with the parsers given', () => {
    const text = convert([Uint8Array.of(0x68, 0x69)], decoderOf({ converted_type: 'UTF8' }, 'BYTE_ARRAY'));
    expect(text).toEqual(['hi']);
    const days = decoderOf({ converted_type: 'DATE' }, 'INT32');
    days.parsers = { ...DEFAULT_PARSERS, dateFromDays: (day: number) => `day ${day}` };
    expect([...convert(Int32Array.of(5), days)]).toEqual(['day 5']);
    const decimal = decoderOf({ converted_type: 'DECIMAL', scale: 2 }, 'INT32');
    expect([...convert(Int32Array.of(1_250), decimal)]).toEqual([12.5]);
  });

  test('the default parsers have the names that are replaced, and no way to say more', () => {
    expect(DEFAULT_PARSERS.stringFromBytes(Uint8Array.of(0x68, 0x69))).toBe('hi');
    expect(Object.keys(DEFAULT_PARSERS), REMEDY).toEqual(
      expect.arrayContaining(['dateFromDays', 'jsonFromBytes', 'geometryFromBytes', 'geographyFromBytes']),
    );
  });
});
