import type { DecodedArray, PageHeader } from 'hyparquet';
import { assembleLists } from 'hyparquet/src/assemble.js';
import { convert } from 'hyparquet/src/convert.js';
import { decompressPage } from 'hyparquet/src/datapage.js';
import { deltaBinaryUnpack } from 'hyparquet/src/delta.js';
import { byteStreamSplit } from 'hyparquet/src/encoding.js';
import { readPlain } from 'hyparquet/src/plain.js';
import { getMaxDefinitionLevel, getMaxRepetitionLevel } from 'hyparquet/src/schema.js';
import type { ColumnDecoder, SchemaTree } from 'hyparquet/src/types.js';
import { readHybrid } from './parquet-levels.ts';

/** Pages are about 1 MB; some writers make one of a whole column, but none of this size. */
export const PARQUET_PAGE_BYTES_MAX = 256 * 1024 * 1024;
/** A column of one value for millions of rows is a single page of a few bytes. */
const PARQUET_PAGE_VALUES_MAX = 20_000_000;

/** Rows that are made at once: some writers make one page of a whole column. */
const PIECE_ROWS = 8_192;

interface Reader {
  view: DataView;
  offset: number;
}

/** A page of values, unpacked; the reader stands at the first value. */
interface Page {
  count: number;
  encoding: string;
  repetition: Int32Array;
  /** Empty when every value is there. */
  definition: Int32Array;
  reader: Reader;
}

export function readDictionary(bytes: Uint8Array, header: PageHeader, decoder: ColumnDecoder): DecodedArray {
  const page = unpacked(bytes, header.uncompressed_page_size, decoder);
  const count = header.dictionary_page_header?.num_values ?? -1;
  return convert(readPlain(readerOf(page), decoder.type, count, decoder.element.type_length), decoder);
}

/** hyparquet reads levels by their index; its types say arrays. */
const asArray = (levels: Int32Array) => levels as Int32Array & number[];

/** Rows of a page, some at a time. Rows of a repeated column are added to `open`, whose last may go on here. */
export function* readRows(
  bytes: Uint8Array,
  header: PageHeader,
  decoder: ColumnDecoder,
  dictionary: DecodedArray | undefined,
  open: unknown[] | undefined,
): Generator<ArrayLike<unknown>> {
  const page = header.data_page_header_v2 ? openV2(bytes, header, decoder) : openV1(bytes, header, decoder);
  const { definition, repetition, count } = page;
  const highest = getMaxDefinitionLevel(decoder.schemaPath);
  const take = takerOf(page, present(definition, highest, 0, count), decoder, dictionary);
  if (decoder.schemaPath.length > 2 || repetition.length > 0) {
    const values = take(present(definition, highest, 0, count));
    yield assembleLists(open ?? [], asArray(definition), asArray(repetition), values, listPath(decoder));
    return;
  }
  for (let at = 0; at < count; at += PIECE_ROWS) {
    const end = Math.min(count, at + PIECE_ROWS);
    const values = take(present(definition, highest, at, end));
    yield definition.length === 0 ? values : withNulls(values, definition.subarray(at, end), highest);
  }
}

/**
 * `assembleLists` takes a repeated leaf (a list of two levels, as old writers make them) for a single value, so that `[]`
 * becomes null. Below an element that adds no level, it is a list.
 */
function listPath({ schemaPath }: ColumnDecoder): SchemaTree[] {
  const leaf = schemaPath.at(-1)!;
  if (leaf.element.repetition_type !== 'REPEATED') return schemaPath;
  return [...schemaPath, { ...leaf, element: { ...leaf.element, repetition_type: 'REQUIRED' } }];
}

function openV1(bytes: Uint8Array, header: PageHeader, decoder: ColumnDecoder): Page {
  const { num_values: count, encoding } = header.data_page_header!;
  checkCount(count);
  const reader = readerOf(unpacked(bytes, header.uncompressed_page_size, decoder));
  const levels = (highest: number): Int32Array => {
    if (highest === 0) return new Int32Array(0);
    const start = reader.offset + 4;
    const end = start + reader.view.getUint32(reader.offset, true);
    reader.offset = end;
    return readHybrid(reader.view, { start, end }, bitsOf(highest), count);
  };
  const repetition = levels(getMaxRepetitionLevel(decoder.schemaPath));
  const definition = levels(getMaxDefinitionLevel(decoder.schemaPath));
  return { count, encoding, repetition, definition, reader };
}

/** Levels come first and are not packed. */
function openV2(bytes: Uint8Array, header: PageHeader, decoder: ColumnDecoder): Page {
  const v2 = header.data_page_header_v2!;
  checkCount(v2.num_values);
  const { view } = readerOf(bytes);
  const middle = v2.repetition_levels_byte_length;
  const end = middle + v2.definition_levels_byte_length;
  if (!(middle >= 0 && end >= middle && end <= bytes.length))
    throw new Error('levels reach beyond their page');
  const levels = (highest: number, range: { start: number; end: number }) =>
    highest === 0 ? new Int32Array(0) : readHybrid(view, range, bitsOf(highest), v2.num_values);
  const packed = bytes.subarray(end);
  // Where every value is null, writers leave nothing to unpack, and codecs fail on nothing.
  const isPacked = v2.is_compressed && packed.length > 0;
  const values = isPacked ? unpacked(packed, header.uncompressed_page_size - end, decoder) : packed;
  return {
    count: v2.num_values,
    encoding: v2.encoding,
    repetition: levels(getMaxRepetitionLevel(decoder.schemaPath), { start: 0, end: middle }),
    definition: levels(getMaxDefinitionLevel(decoder.schemaPath), { start: middle, end }),
    reader: readerOf(values),
  };
}

/** Gives the next values, as many as are asked for; `total` is how many there are. */
function takerOf(
  { encoding, reader }: Page,
  total: number,
  decoder: ColumnDecoder,
  dictionary: DecodedArray | undefined,
): (count: number) => DecodedArray {
  const { type, element } = decoder;
  if (encoding === 'PLAIN' && type === 'BYTE_ARRAY')
    return (count) => convert(readPlain(reader, type, count, undefined), decoder);
  let at = 0;
  if (encoding === 'PLAIN_DICTIONARY' || encoding === 'RLE_DICTIONARY') {
    const places = total === 0 ? new Int32Array(0) : placesOf(reader, total);
    return (count) => {
      const values = Array.from(places.subarray(at, at + count), (place) => lookUp(dictionary, place));
      at += count;
      return values;
    };
  }
  const values = convert(valuesOf(encoding, reader, total, type, element.type_length), decoder);
  return (count) => {
    at += count;
    return values.slice(at - count, at);
  };
}

function placesOf(reader: Reader, count: number): Int32Array {
  const width = reader.view.getUint8(reader.offset);
  return readHybrid(reader.view, { start: reader.offset + 1, end: reader.view.byteLength }, width, count);
}

function lookUp(dictionary: DecodedArray | undefined, place: number): unknown {
  if (!dictionary || place < 0 || place >= dictionary.length)
    throw new Error('a value is not in the dictionary');
  return dictionary[place];
}

function valuesOf(
  encoding: string,
  reader: Reader,
  count: number,
  type: ColumnDecoder['type'],
  typeLength: number | undefined,
): DecodedArray {
  if (count === 0) return [];
  switch (encoding) {
    case 'PLAIN':
      return readPlain(reader, type, count, typeLength);
    case 'RLE': {
      const start = reader.offset + 4;
      return Array.from(
        readHybrid(reader.view, { start, end: reader.view.byteLength }, 1, count),
        (bit) => bit === 1,
      );
    }
    case 'BYTE_STREAM_SPLIT':
      return byteStreamSplit(reader, count, type, typeLength);
    case 'DELTA_BINARY_PACKED':
      return unpackDeltas(reader, type === 'INT32' ? new Int32Array(count) : new BigInt64Array(count));
    case 'DELTA_LENGTH_BYTE_ARRAY':
      return readTexts(reader, null, unpackDeltas(reader, new Int32Array(count)));
    case 'DELTA_BYTE_ARRAY': {
      const shared = unpackDeltas(reader, new Int32Array(count));
      return readTexts(reader, shared, unpackDeltas(reader, new Int32Array(count)));
    }
    default:
      throw new Error(`values in ${encoding}`);
  }
}

function unpackDeltas<T extends Int32Array | BigInt64Array>(reader: Reader, output: T): T {
  deltaBinaryUnpack(reader, output.length, output);
  return output;
}

/** Each text begins with some of the one before. */
function readTexts(reader: Reader, shared: Int32Array | null, lengths: Int32Array): Uint8Array[] {
  const { view } = reader;
  const texts: Uint8Array[] = [];
  let before: Uint8Array = new Uint8Array(0);
  let made = 0;
  for (const [index, length] of lengths.entries()) {
    const prefix = shared?.[index] ?? 0;
    made += prefix + length;
    const fits =
      length >= 0 && reader.offset + length <= view.byteLength && prefix >= 0 && prefix <= before.length;
    if (!fits || made > PARQUET_PAGE_BYTES_MAX) throw new Error('texts reach beyond their page');
    const rest = new Uint8Array(view.buffer, view.byteOffset + reader.offset, length);
    reader.offset += length;
    if (prefix > 0) {
      const joined = new Uint8Array(prefix + length);
      joined.set(before.subarray(0, prefix));
      joined.set(rest, prefix);
      before = joined;
    } else before = rest;
    texts.push(before);
  }
  return texts;
}

function present(definition: Int32Array, highest: number, start: number, end: number): number {
  if (definition.length === 0) return end - start;
  let count = 0;
  for (let index = start; index < end; index++) if (definition[index] === highest) count++;
  return count;
}

function withNulls(values: DecodedArray, definition: Int32Array, highest: number): unknown[] {
  let at = 0;
  return Array.from(definition, (level) => (level === highest ? values[at++] : null));
}

function unpacked(bytes: Uint8Array, length: number, decoder: ColumnDecoder): Uint8Array {
  if (!(length >= 0)) throw new Error('a page has no size');
  return decompressPage(bytes, length, decoder.codec, decoder.compressors);
}

function checkCount(count: number): void {
  if (!(count >= 0 && count <= PARQUET_PAGE_VALUES_MAX))
    throw new Error(`a page has more than ${PARQUET_PAGE_VALUES_MAX} values`);
}

function readerOf(bytes: Uint8Array): Reader {
  return { view: new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), offset: 0 };
}

function bitsOf(highest: number): number {
  return 32 - Math.clz32(highest);
}
