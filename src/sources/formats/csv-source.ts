import { CsvError, type Options } from 'csv-parse';
import { parse as parseNow } from 'csv-parse/sync';
import { messageOf } from '../../core/errors.ts';
import { LIMITS } from '../../core/limits.ts';
import type { RemoteFiles } from '../../ports/remote-files.ts';
import { type CellMapper, type ColumnSpec, checkColumns, mapCells } from '../rows/map-row.ts';
import { BrokenFileError, type FileReader, type RawRow } from '../rows/raw-row.ts';
import { readRecords } from './csv-records.ts';
import { endingOf } from './file-format.ts';
import { openText, openTextAt, peek, refuseBinary, type TextFile } from './text-file.ts';

/** Bytes, rows and line ends before the next row. In packed text rows are counted instead of jumped to. */
interface CsvPosition {
  row: number;
  offset: number;
  /** Not in positions of earlier versions. */
  lines?: number | null;
  gzip?: true;
}

const NEWLINE = 10;
const RETURN = 13;
/** A header is not larger than this; a file without line ends is not read to its end for one. */
const HEADER_BYTES_MAX = 256 * 1024;

/** Rows of a CSV file with a header line; columns other than the URL travel as meta. */
export function openCsvReader(files: Pick<RemoteFiles, 'stream'>, spec: ColumnSpec): FileReader {
  return {
    rows: (url, at) => csvRows(files, url, at as CsvPosition | null, spec),
    async check(url) {
      const { header, text } = await openTable(files, url);
      text.close();
      if (!header) return;
      refuseBinary(Buffer.from(header.join()));
      checkColumns(header, spec);
    },
    async close() {},
  };
}

async function* csvRows(
  files: Pick<RemoteFiles, 'stream'>,
  url: string,
  at: CsvPosition | null,
  spec: ColumnSpec,
): AsyncIterable<RawRow> {
  const table = await openTable(files, url);
  const { header, options, lineEnd } = table;
  let { text } = table;
  let row = 0;
  try {
    if (!header) return;
    const mapper = mapCells(header, spec);
    const indexes = mapper.names.map((name) => header.indexOf(name));
    const jump = at !== null && !text.gzip ? at : null;
    if (jump) {
      text.close();
      text = await openTextAt(files, url, jump.offset);
      row = jump.row;
    }
    const seen = jump ? 0 : (at?.row ?? 0);
    let isHeader = !jump;
    const start = { offset: jump?.offset ?? 0, lines: jump ? (jump.lines ?? Number.NaN) : 0, lineEnd };
    for await (const { record, end, lines } of readRecords(text.chunks, { ...options, bom: !jump }, start)) {
      if (isHeader) {
        isHeader = false;
        continue;
      }
      if (++row <= seen) continue;
      const position: CsvPosition = { row, offset: end, lines };
      if (text.gzip) position.gzip = true;
      const found = Array.isArray(record) ? toRow(mapper, indexes, record) : record;
      yield { place: `row ${row}`, at: position, row: found };
    }
  } finally {
    text.close();
  }
}

function toRow(mapper: CellMapper, indexes: number[], record: string[]): RawRow['row'] {
  return mapper.map((index) => record[indexes[index]!]);
}

/** The file at its start, and what its first line says. Empty files have no header. */
async function openTable(
  files: Pick<RemoteFiles, 'stream'>,
  url: string,
): Promise<{ text: TextFile; header: string[] | null; options: Options; lineEnd: number }> {
  const text = await openText(files, url);
  try {
    const { head, all } = await peek(text.chunks, HEADER_BYTES_MAX);
    if (head.length >= HEADER_BYTES_MAX && !head.includes('\n'))
      throw new BrokenFileError(`its first line is longer than ${HEADER_BYTES_MAX} bytes`);
    const lineEnd = lineEndOf(head);
    const options: Options = {
      record_delimiter: lineEnd === RETURN ? ['\r'] : ['\r\n', '\n'],
      delimiter: endingOf(url) === '.tsv' ? '\t' : delimiterOf(head),
      relax_column_count: true,
      relax_quotes: true,
      skip_empty_lines: true,
      max_record_size: LIMITS.sourceRowBytesMax,
    };
    const [header = null] = parseNow(head, { ...options, bom: true, to: 1 }) as string[][];
    return { text: { ...text, chunks: all }, header, options, lineEnd };
  } catch (error) {
    text.close();
    if (error instanceof CsvError)
      throw new BrokenFileError(`its first line is not valid CSV: ${messageOf(error).split('\n')[0]}`);
    throw error;
  }
}

/** Old files have returns alone. */
function lineEndOf(head: Buffer): number {
  const text = withoutQuoted(head.toString('latin1'));
  const first = text.indexOf('\r');
  const before = first < 0 || text.slice(0, first).includes('\n');
  return before || text[first + 1] === '\n' ? NEWLINE : RETURN;
}

/** Commas, unless the first line has none but tabs or semicolons. */
function delimiterOf(head: Buffer): string {
  const [line = ''] = withoutQuoted(head.toString('utf8').trimStart()).split('\n', 1);
  return [',', '\t', ';'].find((delimiter) => line.includes(delimiter)) ?? ',';
}

/** A quote opens a cell only where one begins; what is inside says nothing about the marks of the file. */
function withoutQuoted(text: string): string {
  return text.replace(/(^|[,;\t\r\n])"(?:[^"]|"")*"/g, '$1');
}
