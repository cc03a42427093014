import type { PageHeader } from 'hyparquet';
import { DEFAULT_PARSERS } from 'hyparquet/src/convert.js';
import type { ColumnDecoder } from 'hyparquet/src/types.js';
import { compressors } from 'hyparquet-compressors';
import { expect, test } from 'vitest';
import { readRows } from '../../../../src/sources/parquet/parquet-page.ts';

test('a v2 page of nulls has nothing to unpack, whatever it is packed with', () => {
  const element = { name: 'n', type: 'INT32', repetition_type: 'OPTIONAL' } as const;
  const leaf = { element, children: [], count: 1, path: ['n'] };
  const root = { element: { name: 'root' }, children: [leaf], count: 2, path: [] };
  for (const codec of ['SNAPPY', 'GZIP', 'ZSTD', 'LZ4_RAW'] as const) {
    const decoder: ColumnDecoder = {
      ...{ type: 'INT32', codec, compressors, parsers: DEFAULT_PARSERS },
      ...{ element, schemaPath: [root, leaf], pathInSchema: ['n'] },
    };
    // A run of three zeros: no value is there.
    const levels = Buffer.from([6, 0]);
    const header = {
      type: 'DATA_PAGE_V2',
      uncompressed_page_size: 2,
      compressed_page_size: 2,
      data_page_header_v2: {
        num_values: 3,
        num_nulls: 3,
        num_rows: 3,
        encoding: 'PLAIN',
        definition_levels_byte_length: 2,
        repetition_levels_byte_length: 0,
        is_compressed: true,
      },
    } as PageHeader;
    expect([...readRows(levels, header, decoder, undefined, undefined)], codec).toEqual([[null, null, null]]);
  }
});
