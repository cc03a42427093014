import { SeineError } from '../../core/errors.ts';
import { writeParquet } from '../../tables/parquet.ts';
import { type Cell, jsonText, type Table } from '../../tables/table.ts';
import type { Destination } from './destination.ts';
import { openTable, rowsOf, type Selection, type What } from './tables.ts';

export const FORMATS = ['jsonl', 'csv', 'parquet'] as const;
export type Format = (typeof FORMATS)[number];

/** By the ending of a name, also before .gz; JSONL when it has none. */
export function formatOf(name: string | undefined): Format {
  const ending = /\.([a-z]\w*)$/i.exec((name ?? '').replace(/\.gz$/i, ''))?.[1]?.toLowerCase();
  if (ending === undefined || ending === 'ndjson') return 'jsonl';
  const known = FORMATS.find((format) => format === ending);
  if (known) return known;
  throw new SeineError(`unknown file format .${ending}`, {
    hint: `use .${FORMATS.join(', .')}, or choose one with --format`,
  });
}

/** Writes all rows and returns their number. Memory stays flat whatever it is. */
export async function writeRows(
  format: Format,
  what: What,
  selection: Selection,
  destination: Destination,
  options: { csvSafe?: boolean } = {},
): Promise<number> {
  if (format === 'jsonl') return writeLines(jsonLines(rowsOf(what, selection)), destination);
  const table = await openTable(what, selection);
  if (format === 'parquet') return writeParquet(table, destination);
  return (await writeLines(csvLines(table, options.csvSafe ?? false), destination)) - 1;
}

async function* jsonLines(rows: AsyncIterable<object>): AsyncIterable<string> {
  for await (const row of rows) yield `${jsonText(row)}\n`;
}

async function* csvLines({ columns, rows }: Table, safe: boolean): AsyncIterable<string> {
  yield csvLine(
    columns.map(({ name }) => name),
    safe,
  );
  for await (const cells of rows) yield csvLine(cells, safe);
}

/** Lines are gathered: a write for each would cost more than making it. */
const PIECE_CHARACTERS = 64 * 1024;

async function writeLines(lines: AsyncIterable<string>, destination: Destination): Promise<number> {
  let count = 0;
  let piece = '';
  for await (const line of lines) {
    count++;
    piece += line;
    if (piece.length < PIECE_CHARACTERS) continue;
    await destination.write(piece);
    piece = '';
  }
  if (piece !== '') await destination.write(piece);
  return count;
}

/** What a spreadsheet takes for a formula, or looks behind for one. */
const FORMULA = /^[=+\-@\t\r]/;

/**
 * One line by RFC 4180. Nothing is an empty cell, an empty text is `""`. `safe` puts a single quote before texts that a
 * spreadsheet would run as a formula; numbers stay numbers.
 */
export function csvLine(cells: readonly Cell[], safe = false): string {
  let line = '';
  for (let index = 0; index < cells.length; index++) {
    const cell = cells[index]!;
    const isFormula = safe && typeof cell === 'string' && FORMULA.test(cell);
    line += (index === 0 ? '' : ',') + quoted(isFormula ? `'${cell}` : cell);
  }
  return `${line}\r\n`;
}

function quoted(cell: Cell): string {
  if (cell === null) return '';
  const text = String(cell);
  return text === '' || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
