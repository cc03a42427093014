import type { Readable } from 'node:stream';
import { CsvError, parse } from 'csv-parse';
import { SeineError } from '../core/errors.ts';
import type { SourceRow } from '../ports/source.ts';

/** An unclosed quote would otherwise read the rest of the file as one row. */
const RECORD_BYTES_MAX = 1024 * 1024;

interface CsvPosition {
  header: string[];
  /** Bytes before the next row, and rows before it. */
  offset: number;
  row: number;
}

interface CsvItem {
  record: string[];
  info: { bytes: number; lines: number; records: number };
}

/** Rows of a CSV file with a header line; columns other than the URL travel as meta. */
export async function* csvRows(
  open: (offset: number) => Readable,
  from: string | null,
  options: { seekable: boolean; urlColumn: string; delimiter: string },
): AsyncIterable<SourceRow> {
  const start = from === null ? null : (JSON.parse(from) as CsvPosition);
  const seek = start && options.seekable ? start.offset : 0;
  const parser = parse({
    delimiter: options.delimiter,
    bom: true,
    info: true,
    relax_column_count: true,
    relax_quotes: true,
    skip_empty_lines: true,
    max_record_size: RECORD_BYTES_MAX,
  });
  const input = open(seek);
  input.on('error', (error) => parser.destroy(error));
  let header = start?.header ?? null;
  let urlIndex = header ? header.indexOf(options.urlColumn) : -1;
  let row = seek > 0 ? start!.row : 0;
  try {
    for await (const { record, info } of input.pipe(parser) as AsyncIterable<CsvItem>) {
      if (!header || (seek === 0 && info.records === 1)) {
        header = record;
        urlIndex = indexOfUrl(record, options.urlColumn);
        continue;
      }
      row++;
      if (seek === 0 && start && row <= start.row) continue;
      const position: CsvPosition = { header, offset: seek + info.bytes, row };
      yield { place: `row ${row}`, position: JSON.stringify(position), row: toRow(header, urlIndex, record) };
    }
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    throw new SeineError(`the CSV cannot be read after row ${row}: ${error.message.split('\n')[0]}`, {
      hint: 'perhaps a quote is not closed; what came before it was read',
      cause: error,
    });
  } finally {
    input.destroy();
  }
}

function indexOfUrl(header: string[], urlColumn: string): number {
  const index = header.indexOf(urlColumn);
  if (index < 0) {
    throw new SeineError(`there is no column '${urlColumn}' among: ${header.join(', ')}`, {
      hint: 'name it with --url-column',
    });
  }
  return index;
}

function toRow(header: string[], urlIndex: number, record: string[]): SourceRow['row'] {
  const url = record[urlIndex];
  if (url === undefined || url.trim() === '') return { reason: `no text in column '${header[urlIndex]}'` };
  const meta = Object.fromEntries(
    header.map((name, index) => [name, record[index] ?? null]).filter((_, index) => index !== urlIndex),
  );
  return { url, meta: Object.keys(meta).length > 0 ? meta : null };
}
