import type { ColumnMetaData, RowGroup } from 'hyparquet/src/types.js';
import type { ByteSource } from './parquet-column.ts';

/** Columns this close are fetched together: asking again costs more than the bytes between. */
const GAP_BYTES_MAX = 64 * 1024;

interface Range {
  start: number;
  end: number;
}

/** Where the pages of a column in a row group are. */
export function rangeOf(meta: ColumnMetaData): Range {
  const start = Number(meta.dictionary_page_offset || meta.data_page_offset);
  return { start, end: start + Number(meta.total_compressed_size) };
}

/** A row group whose columns are small is fetched at once, in as few reads as it takes. */
export async function prefetchGroup(
  source: ByteSource,
  group: RowGroup,
  names: string[],
  bytesMax: number,
): Promise<ByteSource> {
  const ranges = mergedRanges(group, names);
  const total = ranges.reduce((sum, { start, end }) => sum + end - start, 0);
  if (total > bytesMax) return source;
  const parts = await Promise.all(
    ranges.map(async ({ start, end }) => ({ start, end, bytes: await source.read(start, end - start) })),
  );
  return {
    size: source.size,
    async read(offset, length) {
      const part = parts.find(({ start, end }) => start <= offset && offset + length <= end);
      return part
        ? part.bytes.subarray(offset - part.start, offset - part.start + length)
        : source.read(offset, length);
    },
  };
}

function mergedRanges(group: RowGroup, names: string[]): Range[] {
  const ranges = group.columns
    .flatMap(({ meta_data: meta }) => (meta && names.includes(meta.path_in_schema[0]!) ? [meta] : []))
    .map(rangeOf)
    .sort((a, b) => a.start - b.start);
  const merged: Range[] = [];
  for (const range of ranges) {
    const last = merged.at(-1);
    if (last && range.start - last.end <= GAP_BYTES_MAX) last.end = Math.max(last.end, range.end);
    else merged.push({ ...range });
  }
  return merged;
}
