import { CsvError, type Options, parse } from 'csv-parse';
import { parse as parseNow } from 'csv-parse/sync';
import { messageOf } from '../core/errors.ts';
import { LIMITS } from '../core/limits.ts';
import type { RemoteFiles } from '../ports/remote-files.ts';
import { endingOf } from './file-format.ts';
import { type CellMapper, type ColumnWish, checkColumns, mapCells } from './map-row.ts';
import { BrokenFileError, type FileReader, type RawRow } from './raw-row.ts';
import { openText, openTextAt, peek, type TextFile } from './text-file.ts';

/** Bytes before the next row, and rows before it. In packed text rows are counted instead of jumped to. */
interface CsvPosition {
  row: number;
  offset: number;
  gzip?: true;
}

interface CsvItem {
  record: string[];
  /** Bytes up to its end. */
  end: number;
}

/** A header is not larger than this; a file without line ends is not read to its end for one. */
const HEADER_BYTES_MAX = 256 * 1024;

/** Rows of a CSV file with a header line; columns other than the URL travel as meta. */
export function openCsvReader(files: RemoteFiles, wish: ColumnWish): FileReader {
  return {
    rows: (url, at) => csvRows(files, url, at as CsvPosition | null, wish),
    async check(url) {
      const { header, text } = await openTable(files, url);
      text.close();
      if (header) checkColumns(header, wish);
    },
    async close() {},
  };
}

async function* csvRows(
  files: RemoteFiles,
  url: string,
  at: CsvPosition | null,
  wish: ColumnWish,
): AsyncIterable<RawRow> {
  const table = await openTable(files, url);
  const { header, options } = table;
  let { text } = table;
  let row = 0;
  try {
    if (!header) return;
    const mapper = mapCells(header, wish);
    const indexes = mapper.names.map((name) => header.indexOf(name));
    const jump = at !== null && !text.gzip ? at : null;
    if (jump) {
      text.close();
      text = await openTextAt(files, url, jump.offset);
      row = jump.row;
    }
    const seen = jump ? 0 : (at?.row ?? 0);
    let isHeader = !jump;
    for await (const { record, end } of records(text.chunks, { ...options, bom: !jump })) {
      if (isHeader) {
        isHeader = false;
        continue;
      }
      if (++row <= seen) continue;
      const position: CsvPosition = { row, offset: (jump?.offset ?? 0) + end };
      if (text.gzip) position.gzip = true;
      yield { place: `row ${row}`, at: position, row: toRow(mapper, indexes, record) };
    }
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    throw new BrokenFileError(
      `what comes after row ${row} is not CSV: ${messageOf(error).split('\n')[0]} (is a quote not closed?)`,
    );
  } finally {
    text.close();
  }
}

function toRow(mapper: CellMapper, indexes: number[], record: string[]): RawRow['row'] {
  return mapper.map((index) => record[indexes[index]!]);
}

/** The file at its start, and what its first line says. Empty files have no header. */
async function openTable(
  files: RemoteFiles,
  url: string,
): Promise<{ text: TextFile; header: string[] | null; options: Options }> {
  const text = await openText(files, url);
  try {
    const { head, all } = await peek(text.chunks, HEADER_BYTES_MAX);
    if (head.length >= HEADER_BYTES_MAX && !head.includes('\n'))
      throw new BrokenFileError(`its first line is longer than ${HEADER_BYTES_MAX} bytes`);
    const options: Options = {
      delimiter: endingOf(url) === '.tsv' ? '\t' : delimiterOf(head),
      relax_column_count: true,
      relax_quotes: true,
      skip_empty_lines: true,
      max_record_size: LIMITS.sourceRowBytesMax,
    };
    const [header = null] = parseNow(head, { ...options, bom: true, to: 1 }) as unknown as string[][];
    return { text: { ...text, chunks: all }, header, options };
  } catch (error) {
    text.close();
    if (error instanceof CsvError)
      throw new BrokenFileError(`its first line is not CSV: ${messageOf(error).split('\n')[0]}`);
    throw error;
  }
}

/** Commas, unless the first line has none but tabs or semicolons. */
function delimiterOf(head: Buffer): string {
  const [line = ''] = head.toString('utf8').trimStart().split('\n', 1);
  return [',', '\t', ';'].find((delimiter) => line.includes(delimiter)) ?? ',';
}

/** Piece by piece, so that everything before a mistake comes out: a stream drops what it holds when it fails. */
async function* records(chunks: AsyncIterable<Buffer>, options: Options): AsyncIterable<CsvItem> {
  let items: CsvItem[] = [];
  let failure: unknown = null;
  const take = (record: string[], { bytes }: { bytes: number }) => {
    items.push({ record, end: bytes });
    return null;
  };
  const parser = parse({ ...options, on_record: take as unknown as NonNullable<Options['on_record']> });
  parser.on('error', (error) => {
    failure = error;
  });
  async function* step(act: (done: () => void) => void): AsyncIterable<CsvItem> {
    await new Promise<void>((resolve) => act(resolve));
    const taken = items;
    items = [];
    yield* taken;
    if (failure !== null) throw failure;
  }
  try {
    for await (const chunk of chunks) yield* step((done) => parser.write(chunk, () => done()));
    yield* step((done) => parser.end(() => done()));
  } finally {
    parser.destroy();
  }
}
