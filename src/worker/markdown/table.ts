import { type Element, isTag, isText } from 'domhandler';
import { MARKDOWN_CHARS_MAX } from './blocks.ts';
import { nextNode } from './next-node.ts';

/** Columns of a Markdown table: colspan may say 1,000. */
const MARKDOWN_COLUMNS_MAX = 64;

/** Parts of a page that would lose more by a row of cells than they gain. */
const TOO_RICH = new Set([
  'table',
  'h1',
  'h2',
  'h3',
  'h4',
  'h5',
  'h6',
  'pre',
  'blockquote',
  'form',
  'article',
]);
const CELL_CHARS_MAX = 400;

/** Whether a table holds data; many only place things side by side. Looks no further than the next table inside. */
export function holdsData(table: Element): boolean {
  const role = table.attribs.role;
  if (role === 'presentation' || role === 'none') return false;
  let rows = 0;
  let cells = 0;
  let cellsInRow = 0;
  let widest = 0;
  let characters = 0;
  let isMarked = false;
  for (let node = table.children[0] ?? null; node !== null; node = nextNode(node, table)) {
    if (isText(node)) characters += node.data.length;
    if (!isTag(node)) continue;
    if (TOO_RICH.has(node.name)) return false;
    if (node.name === 'tr') {
      rows++;
      cellsInRow = 0;
    } else if (node.name === 'td' || node.name === 'th') {
      cells++;
      widest = Math.max(widest, ++cellsInRow);
    }
    if (node.name === 'th' || node.name === 'thead' || node.name === 'caption') isMarked = true;
  }
  if (widest < 2) return false;
  return isMarked || (rows > 1 && characters / cells < CELL_CHARS_MAX);
}

/** Cells of a table, put down one after the other. */
export class TableWriter {
  readonly #rows: { cells: string[]; isHead: boolean }[] = [];
  #cells: string[] = [];
  #isHead = true;
  /** Rows below that a cell reaches into, by column. */
  readonly #reaching: number[] = [];
  #length = 0;

  get isFull(): boolean {
    return this.#length > MARKDOWN_CHARS_MAX;
  }

  cell(text: string, element: Element): void {
    this.#skipReached();
    const column = this.#cells.length;
    const room = MARKDOWN_COLUMNS_MAX - column;
    if (room <= 0) return;
    const columns = Math.min(spanOf(element.attribs.colspan), room);
    const rows = spanOf(element.attribs.rowspan) - 1;
    this.#cells.push(text.replaceAll('|', '\\|'));
    for (let extra = 1; extra < columns; extra++) this.#cells.push('');
    for (let at = column; at < column + columns; at++) this.#reaching[at] = rows;
    this.#length += text.length + 3 * columns;
    if (element.name !== 'th') this.#isHead = false;
  }

  endRow(isHead: boolean): void {
    this.#skipReached();
    if (this.#cells.length > 0) this.#rows.push({ cells: this.#cells, isHead: isHead || this.#isHead });
    this.#cells = [];
    this.#isHead = true;
  }

  /** GFM needs a head; where the page has none it is empty. */
  end(): string | null {
    if (this.#cells.length > 0) this.endRow(false);
    const rows = this.#rows.filter(({ cells }) => cells.some((cell) => cell !== ''));
    if (rows.length === 0) return null;
    const columns = rows.reduce((most, { cells }) => Math.max(most, cells.length), 0);
    const line = (cells: readonly string[]) =>
      `| ${Array.from({ length: columns }, (_, column) => cells[column] ?? '').join(' | ')} |`;
    const head = rows[0]!.isHead ? rows.shift()!.cells : [];
    const rule = `|${' --- |'.repeat(columns)}`;
    return [line(head), rule, ...rows.map(({ cells }) => line(cells))].join('\n');
  }

  #skipReached(): void {
    for (let column = this.#cells.length; (this.#reaching[column] ?? 0) > 0; column++) {
      this.#reaching[column]!--;
      this.#cells.push('');
    }
  }
}

function spanOf(value: string | undefined): number {
  const span = Number.parseInt(value ?? '1', 10);
  return span > 0 ? Math.min(span, 1_000) : 1;
}
