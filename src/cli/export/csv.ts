import type { Cell } from '../../tables/table.ts';

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
