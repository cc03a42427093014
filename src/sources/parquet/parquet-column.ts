import { brotliDecompressSync, crc32, gunzipSync, zstdDecompressSync } from 'node:zlib';
import type { ColumnMetaData, Compressors, DecodedArray, PageHeader } from 'hyparquet';
import { parquetHeader } from 'hyparquet/src/column.js';
import { getMaxRepetitionLevel } from 'hyparquet/src/schema.js';
import type { ColumnDecoder, SchemaTree } from 'hyparquet/src/types.js';
import { compressors } from 'hyparquet-compressors';
import { LIMITS } from '../../core/limits.ts';
import { PARQUET_PAGE_BYTES_MAX, readDictionary, readRows } from './parquet-page.ts';
import { rangeOf } from './parquet-ranges.ts';
import { PARSERS } from './parquet-values.ts';

/** Reads a file in pieces; each read is exact. */
export interface ByteSource {
  size: number;
  read(offset: number, length: number): Promise<Buffer>;
}

/** Node's own are faster than those in JavaScript, and hold what they unpack to the size that the page claims. */
const CODECS: Compressors = {
  ...compressors,
  GZIP: bounded(gunzipSync),
  BROTLI: bounded(brotliDecompressSync),
  ZSTD: bounded(zstdDecompressSync),
};

function bounded(unpack: (input: Uint8Array, options: { maxOutputLength: number }) => Buffer) {
  return (input: Uint8Array, length: number) =>
    length === 0 ? new Uint8Array(0) : unpack(input, { maxOutputLength: length });
}

/** Header of a page: a few bytes, or some KB where the statistics have long texts. */
const HEADER_BYTES = 16 * 1024;

/** The values of one leaf column in one row group, page by page. */
export class ColumnCursor {
  readonly #bytes: ChunkBytes;
  readonly #decoder: ColumnDecoder;
  readonly #repeated: boolean;
  #dictionary: DecodedArray | undefined;
  #dictionaryHeaderBytes = 0;
  #headerBytes = 0;
  /** The last row so far of a repeated column: it may go on in the next page. */
  #open: unknown[] | undefined;
  #skip: number;
  /** What is left of the present page. */
  #pieces: Iterator<ArrayLike<unknown>> = [].values();

  constructor(
    source: ByteSource,
    meta: ColumnMetaData,
    schemaPath: SchemaTree[],
    options: { skip: number; windowBytes: number },
  ) {
    const { start, end } = rangeOf(meta);
    this.#bytes = new ChunkBytes(source, start, end, options.windowBytes);
    this.#skip = options.skip;
    this.#repeated = getMaxRepetitionLevel(schemaPath) > 0;
    this.#decoder = {
      pathInSchema: meta.path_in_schema,
      type: meta.type,
      codec: meta.codec,
      element: schemaPath.at(-1)!.element,
      schemaPath,
      parsers: PARSERS,
      compressors: CODECS,
      utf8: false,
    };
  }

  /** The next rows, at least one; null after the last. */
  async next(): Promise<ArrayLike<unknown> | null> {
    for (;;) {
      const { done, value } = this.#pieces.next();
      const rows = done ? null : this.#afterSkip(this.#repeated ? this.#finished(value as unknown[]) : value);
      if (rows && rows.length > 0) return rows;
      if (!done) continue;
      if (this.#bytes.left === 0) break;
      await this.#turnPage();
    }
    const rest = this.#open;
    this.#open = undefined;
    return rest && this.#skip < rest.length ? rest.slice(this.#skip) : null;
  }

  async #turnPage(): Promise<void> {
    const header = await this.#header();
    const size = header.compressed_page_size;
    // Without repetition each value is a row, so that a page before the start need not be unpacked.
    const values = valuesOf(header);
    if (values === 0 || (values !== null && !this.#repeated && values <= this.#skip)) {
      this.#skip -= values;
      this.#bytes.skip(size);
      return;
    }
    if (header.type === 'DICTIONARY_PAGE') this.#dictionaryHeaderBytes = this.#headerBytes;
    const page = await this.#bytes.take(size);
    if (header.crc !== undefined && (crc32(page) | 0) !== (header.crc | 0))
      throw new Error('a checksum is wrong');
    if (header.type === 'DICTIONARY_PAGE') this.#dictionary = readDictionary(page, header, this.#decoder);
    else if (values === null) throw new Error(`a page of type ${header.type}`);
    else this.#pieces = readRows(page, header, this.#decoder, this.#dictionary, this.#open);
  }

  /** All rows but the last, which stays open until the next page. */
  #finished(rows: unknown[]): unknown[] {
    this.#open = rows.slice(-1);
    return rows.slice(0, -1);
  }

  #afterSkip(rows: ArrayLike<unknown>): ArrayLike<unknown> {
    if (this.#skip === 0) return rows;
    const rest = (rows as unknown[]).slice(this.#skip);
    this.#skip = Math.max(0, this.#skip - rows.length);
    return rest;
  }

  /** How long a header is shows only when it is read. */
  async #header(): Promise<PageHeader> {
    for (let length = HEADER_BYTES; ; length *= 4) {
      const bytes = await this.#bytes.peek(length);
      const reader = { view: new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength), offset: 0 };
      try {
        const header = parquetHeader(reader);
        this.#bytes.skip(reader.offset);
        this.#headerBytes = reader.offset;
        return this.#checked(header);
      } catch (error) {
        if (bytes.length < length || length > LIMITS.sourceRowBytesMax) throw error;
      }
    }
  }

  #checked(header: PageHeader): PageHeader {
    const { compressed_page_size: packed, uncompressed_page_size: unpacked } = header;
    // Old writers left the header of the dictionary out of the size of the column.
    const beyond = packed - this.#bytes.left;
    if (beyond > 0 && beyond <= this.#dictionaryHeaderBytes) this.#bytes.extend(beyond);
    if (!(packed >= 0 && packed <= this.#bytes.left)) throw new Error('a page reaches beyond its column');
    if (!(unpacked >= 0 && unpacked <= PARQUET_PAGE_BYTES_MAX))
      throw new Error(`a page is larger than ${PARQUET_PAGE_BYTES_MAX} bytes`);
    return header;
  }
}

/** Null for pages that are not of values. */
function valuesOf(header: PageHeader): number | null {
  return header.data_page_header?.num_values ?? header.data_page_header_v2?.num_values ?? null;
}

/** A stretch of the file from its start to its end, read ahead in windows. */
class ChunkBytes {
  readonly #source: ByteSource;
  #end: number;
  readonly #windowBytes: number;
  #at: number;
  /** What has been read from `#at` on. */
  #window: Buffer = Buffer.alloc(0);

  constructor(source: ByteSource, start: number, end: number, windowBytes: number) {
    this.#source = source;
    this.#at = start;
    this.#end = end;
    this.#windowBytes = windowBytes;
  }

  extend(bytes: number): void {
    this.#end = Math.min(this.#end + bytes, this.#source.size);
  }

  get left(): number {
    return this.#end - this.#at;
  }

  /** So many bytes, or what is left. */
  async peek(length: number): Promise<Buffer> {
    const wanted = Math.min(length, this.left);
    if (this.#window.length < wanted) {
      const more = Math.min(Math.max(wanted, this.#windowBytes), this.left) - this.#window.length;
      const next = await this.#source.read(this.#at + this.#window.length, more);
      this.#window = this.#window.length === 0 ? next : Buffer.concat([this.#window, next]);
    }
    return this.#window.subarray(0, wanted);
  }

  async take(length: number): Promise<Buffer> {
    const bytes = await this.peek(length);
    this.skip(length);
    return bytes;
  }

  skip(length: number): null {
    this.#at += length;
    this.#window = length < this.#window.length ? this.#window.subarray(length) : Buffer.alloc(0);
    return null;
  }
}
