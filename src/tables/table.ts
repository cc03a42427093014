/** What a table holds in one place: text, a number, a truth or nothing. Lists and objects come as JSON text. */
export type Cell = string | number | boolean | null;

/** How a column is stored where formats have types. `json` cells are JSON text, `time` cells ISO 8601 in UTC. */
export type ColumnType = 'text' | 'integer' | 'number' | 'boolean' | 'time' | 'json';

export interface Column {
  name: string;
  type: ColumnType;
}

/** Rows as cells in the order of the columns. */
export interface Table {
  columns: Column[];
  rows: AsyncIterable<Cell[]>;
}

/** The table of rows whose fields are known beforehand. */
export function tableOf(
  types: Record<string, ColumnType>,
  rows: AsyncIterable<object>,
  more: (row: object) => Cell[] = () => [],
): Table {
  const columns = Object.entries(types).map(([name, type]): Column => ({ name, type }));
  return { columns, rows: cellsOf(columns, rows, more) };
}

async function* cellsOf(
  columns: readonly Column[],
  rows: AsyncIterable<object>,
  more: (row: object) => Cell[],
): AsyncIterable<Cell[]> {
  for await (const row of rows)
    yield [
      ...columns.map(({ name, type }) => cellOf(type, (row as Record<string, unknown>)[name])),
      ...more(row),
    ];
}

export function cellOf(type: ColumnType, value: unknown): Cell {
  if (value === null || value === undefined) return null;
  return type === 'json' ? jsonText(value) : (value as Cell);
}

/** Half of a surrogate pair is no Unicode: readers of JSON refuse the whole file for it. */
const HALF_PAIR = /\\ud[89a-f]/;

export function jsonText(value: unknown): string {
  const text = JSON.stringify(value);
  return HALF_PAIR.test(text) ? JSON.stringify(wellFormed(value)) : text;
}

function wellFormed(value: unknown): unknown {
  if (typeof value === 'string') return value.toWellFormed();
  if (Array.isArray(value)) return value.map(wellFormed);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, item]) => [name.toWellFormed(), wellFormed(item)]),
  );
}
