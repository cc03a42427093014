import { type FileMetaData, parquetMetadata, parquetSchema } from 'hyparquet';
import { assembleNested } from 'hyparquet/src/assemble.js';
import { getTreePath } from 'hyparquet/src/schema.js';
import type { ColumnChunk, DecodedArray, RowGroup, SchemaTree } from 'hyparquet/src/types.js';
import { LIMITS } from '../../core/limits.ts';
import { type ByteSource, ColumnCursor } from './parquet-column.ts';
import { prefetchGroup, rangeOf } from './parquet-ranges.ts';
import { PARSERS, roundDecimal, toJsonValue, type Weight } from './parquet-values.ts';

/** Real footers of Parquet files have a few KB for each row group. */
const PARQUET_FOOTER_BYTES_MAX = 64 * 1024 * 1024;

/** Some rows, column by column. */
export interface ParquetPiece {
  /** Rows of the file before these. */
  start: number;
  count: number;
  /** JSON values, in the order in which the columns were asked for. */
  columns: unknown[][];
  /** Rows of this piece that weigh too much; they have no values. */
  tooLarge: number[];
}

export interface ParquetFile {
  /** Names of the columns at the top. */
  columns: string[];
  pieces(columns: string[], from: number): AsyncIterable<ParquetPiece>;
}

/** Enough for the whole footer of most files. */
const TAIL_BYTES = 256 * 1024;
const PIECE_ROWS = 500;
/** Read ahead for all columns together, and at least for each of them. */
const WINDOWS_BYTES = 8 * 1024 * 1024;
const WINDOW_BYTES_MIN = 128 * 1024;

/** Reads the footer, then pages as they are needed: what is in memory is a page of each column. */
export async function openParquet(source: ByteSource): Promise<ParquetFile> {
  const metadata = await readFooter(source);
  const schema = parquetSchema(metadata);
  for (const { columns } of metadata.row_groups)
    for (const column of columns) checkChunk(column, source.size);
  return {
    columns: schema.children.map(({ element }) => element.name),
    async *pieces(names, from) {
      let start = 0;
      for (const group of metadata.row_groups) {
        const rows = Number(group.num_rows);
        if (!(rows >= 0)) throw new Error('a row group has no number of rows');
        if (rows > 0 && from < start + rows) yield* piecesOf(source, schema, group, names, start, from);
        start += rows;
      }
    },
  };
}

async function readFooter(source: ByteSource): Promise<FileMetaData> {
  if (source.size < 12) throw new Error('it is too short');
  const tail = await source.read(Math.max(0, source.size - TAIL_BYTES), Math.min(source.size, TAIL_BYTES));
  const magic = tail.toString('latin1', tail.length - 4);
  if (magic === 'PARE') throw new Error('it is encrypted');
  if (magic !== 'PAR1') throw new Error('it is incomplete');
  const length = tail.readUInt32LE(tail.length - 8) + 8;
  if (length > source.size) throw new Error('its footer is longer than the file');
  if (length > PARQUET_FOOTER_BYTES_MAX)
    throw new Error(`its footer is larger than ${PARQUET_FOOTER_BYTES_MAX} bytes`);
  const footer = length <= tail.length ? tail : await source.read(source.size - length, length);
  return parquetMetadata(footer, { parsers: PARSERS, geoparquet: false });
}

function checkChunk({ file_path, meta_data }: ColumnChunk, size: number): void {
  if (file_path) throw new Error('a column is in another file');
  if (!meta_data) throw new Error('it is encrypted');
  const { start, end } = rangeOf(meta_data);
  if (!(start >= 0 && end >= start && end <= size)) throw new Error('a column is outside of the file');
}

async function* piecesOf(
  source: ByteSource,
  schema: SchemaTree,
  group: RowGroup,
  names: string[],
  start: number,
  from: number,
): AsyncIterable<ParquetPiece> {
  const skip = Math.max(0, from - start);
  const bytes = await prefetchGroup(source, group, names, WINDOWS_BYTES);
  const end = start + Number(group.num_rows);
  const columns = names.map(
    (name) => new TopColumn(name, cursorsOf(bytes, schema, group, names, name, skip), schema),
  );
  for (let at = start + skip; at < end; at += PIECE_ROWS) {
    const count = Math.min(PIECE_ROWS, end - at);
    const weights = Array.from({ length: count }, (): Weight => ({ bytes: 0 }));
    const values: unknown[][] = [];
    for (const column of columns) values.push(await column.take(weights));
    const tooLarge = weights.flatMap(({ bytes }, index) => (bytes > LIMITS.sourceRowBytesMax ? [index] : []));
    for (const index of tooLarge) for (const column of values) column[index] = null;
    yield { start: at, count, columns: values, tooLarge };
  }
}

/** One for each leaf below a column. */
function cursorsOf(
  source: ByteSource,
  schema: SchemaTree,
  group: RowGroup,
  names: string[],
  name: string,
  skip: number,
): { path: string; cursor: ColumnCursor }[] {
  const wanted = group.columns.filter((chunk) => names.includes(chunk.meta_data?.path_in_schema[0] ?? ''));
  const windowBytes = Math.max(WINDOW_BYTES_MIN, Math.floor(WINDOWS_BYTES / Math.max(1, wanted.length)));
  // A file may be encrypted in some columns only, with a footer that anyone can read.
  if (wanted.some((chunk) => isEncrypted(chunk) && chunk.meta_data!.path_in_schema[0] === name))
    throw new Error(`the column '${name}' is encrypted`);
  return wanted
    .filter((chunk) => chunk.meta_data!.path_in_schema[0] === name)
    .map(({ meta_data }) => {
      const path = meta_data!.path_in_schema;
      const cursor = new ColumnCursor(source, meta_data!, getTreePath(schema, path), { skip, windowBytes });
      return { path: path.join('.'), cursor };
    });
}

function isEncrypted({ crypto_metadata, encrypted_column_metadata }: ColumnChunk): boolean {
  return crypto_metadata !== undefined || encrypted_column_metadata !== undefined;
}

/** A column as people see it: one value a row, put together from its leaves where it is nested. */
class TopColumn {
  readonly #node: SchemaTree;
  readonly #leaves: { path: string; cursor: ColumnCursor; rows: ArrayLike<unknown>; at: number }[];
  readonly #scale: number | null;
  #rows: ArrayLike<unknown> = [];
  #at = 0;

  constructor(name: string, leaves: { path: string; cursor: ColumnCursor }[], schema: SchemaTree) {
    this.#node = getTreePath(schema, [name]).at(-1)!;
    if (leaves.length === 0) throw new Error(`a row group lacks the column '${name}'`);
    this.#leaves = leaves.map((leaf) => ({ ...leaf, rows: [], at: 0 }));
    const { element, children } = this.#node;
    this.#scale = children.length === 0 && element.converted_type === 'DECIMAL' ? (element.scale ?? 0) : null;
  }

  /** As many values as there are weights, each added to its own. */
  async take(weights: Weight[]): Promise<unknown[]> {
    const values: unknown[] = [];
    while (values.length < weights.length) {
      if (this.#at >= this.#rows.length) {
        this.#rows = await this.#more();
        this.#at = 0;
      }
      const value = this.#rows[this.#at++];
      const rounded = this.#scale === null ? value : roundDecimal(value, this.#scale);
      values.push(toJsonValue(rounded, weights[values.length]!));
    }
    return values;
  }

  async #more(): Promise<ArrayLike<unknown>> {
    for (const leaf of this.#leaves) {
      if (leaf.at < leaf.rows.length) continue;
      const rows = await leaf.cursor.next();
      if (!rows) throw new Error(`the column '${this.#node.element.name}' ends early`);
      leaf.rows = rows;
      leaf.at = 0;
    }
    if (this.#node.children.length === 0) return this.#takeFrom(this.#leaves[0]!, Number.POSITIVE_INFINITY);
    const count = Math.min(...this.#leaves.map(({ rows, at }) => rows.length - at));
    const parts = new Map(
      this.#leaves.map((leaf) => [leaf.path, this.#takeFrom(leaf, count) as DecodedArray]),
    );
    assembleNested(parts, this.#node, PARSERS);
    const rows = parts.get(this.#node.path.join('.'));
    if (!rows || rows.length === 0) throw new Error(`the column '${this.#node.element.name}' has no values`);
    return rows;
  }

  #takeFrom(leaf: { rows: ArrayLike<unknown>; at: number }, count: number): ArrayLike<unknown> {
    const end = Math.min(leaf.rows.length, leaf.at + count);
    const taken = (leaf.rows as unknown[]).slice(leaf.at, end);
    leaf.at = end;
    return taken;
  }
}
