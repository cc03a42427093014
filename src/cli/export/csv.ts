/** What a table holds in one place: text, a number, a truth or nothing. Lists and objects come as JSON text. */
export type Cell = string | number | boolean | null;

/** One line by RFC 4180. Nothing is an empty cell, an empty text is `""`. */
export function csvLine(cells: readonly Cell[]): string {
  let line = '';
  for (let index = 0; index < cells.length; index++) line += (index === 0 ? '' : ',') + quoted(cells[index]!);
  return `${line}\r\n`;
}

function quoted(cell: Cell): string {
  if (cell === null) return '';
  const text = String(cell);
  return text === '' || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
