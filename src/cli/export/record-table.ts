import type { JobSpec } from '../../core/job-schema/job.ts';
import { LIMITS } from '../../core/limits.ts';
import type { Cell } from '../../tables/table.ts';
import { type Column, type ColumnType, cellOf, jsonText, type Table, tableOf } from '../../tables/table.ts';

type Data = Record<string, unknown>;

/** What has no column, or does not fit it. */
const REST = 'rest';

/** Kinds of values that a field was seen with, as bits. */
const TEXT = 1;
const NUMBER = 2;
const BOOLEAN = 4;
const NESTED = 8;

/**
 * Records as a table: a column for each field, typed by its values. A table must name its columns before its
 * first row, and any record may bring a new field: so the records are read twice.
 */
export async function recordTable<Row extends { data: Data; meta?: Data | null }>(
  read: () => AsyncIterable<Row>,
  fixed: { first: Record<string, ColumnType>; last: Record<string, ColumnType> },
  spec: JobSpec,
): Promise<Table> {
  const declared = declaredFields(spec);
  const { kinds, metaKinds } = await kindsOf(read(), declared.keys());
  const fields = [...kinds].map(([field, kind]) => ({ field, type: typeOf(kind, declared.get(field)) }));
  const fixedNames = [...Object.keys(fixed.first), ...Object.keys(fixed.last), REST];
  const taken = new Set(fixedNames.map((name) => name.toLowerCase()));
  const named = fields.map(({ field, type }): Column => ({ name: freeName(field, taken), type }));
  const first = toColumns(fixed.first);
  const last = toColumns(fixed.last);
  const meta = metaColumns(metaKinds, taken);
  return {
    columns: [...first, ...named, ...last, { name: REST, type: 'json' }, ...meta.columns],
    rows: cellsOf(read(), fields, first, last, meta.cellsOf),
  };
}

/** A table whose rows have `meta`: each of its names is a column, too, as the columns of the source were. */
export async function tableWithMeta(
  types: Record<string, ColumnType>,
  read: () => AsyncIterable<object>,
): Promise<Table> {
  const meta = await readMetaColumns(types, read());
  const { columns, rows } = tableOf(types, read(), meta.cellsOf);
  return { columns: [...columns, ...meta.columns], rows };
}

/** Columns for the names in the `meta` of rows, beside those of `types`. */
export async function readMetaColumns(
  types: Record<string, ColumnType>,
  rows: AsyncIterable<object>,
): Promise<MetaColumns> {
  const kinds = new Map<string, number>();
  for await (const row of rows) addKinds(kinds, metaOf(row));
  return metaColumns(kinds, new Set(Object.keys(types).map((name) => name.toLowerCase())));
}

export interface MetaColumns {
  /** Names in `meta`, in the order of the columns. */
  names: string[];
  columns: Column[];
  cellsOf(row: object): Cell[];
}

function metaOf(row: object): Data {
  return (row as { meta?: Data | null }).meta ?? {};
}

function metaColumns(kinds: ReadonlyMap<string, number>, taken: Set<string>): MetaColumns {
  const fields = [...kinds].map(([field, kind]) => ({ field, type: typeOf(kind) }));
  return {
    names: fields.map(({ field }) => field),
    columns: fields.map(({ field, type }) => ({ name: freeName(`meta.${field}`, taken), type })),
    cellsOf: (row) => {
      const meta = metaOf(row);
      return fields.map(({ field, type }) => {
        const value = Object.hasOwn(meta, field) ? (meta[field] ?? null) : null;
        return value === null ? null : fieldCell(type, value);
      });
    },
  };
}

/** Fields that the routes of a job name; they are columns even when no record has them. */
function declaredFields(spec: JobSpec): Map<string, ColumnType> {
  const fields = new Map<string, ColumnType>();
  for (const { select, markdown } of spec.routes) {
    for (const [name, field] of Object.entries(select ?? {}))
      fields.set(name, typeof field === 'object' && field.type === 'number' ? 'number' : 'text');
    if (markdown) for (const name of ['title', 'markdown']) fields.set(name, 'text');
  }
  return fields;
}

async function kindsOf(
  rows: AsyncIterable<{ data: Data; meta?: Data | null }>,
  declared: Iterable<string>,
): Promise<{ kinds: Map<string, number>; metaKinds: Map<string, number> }> {
  const kinds = new Map<string, number>([...declared].map((field) => [field, 0]));
  const metaKinds = new Map<string, number>();
  for await (const { data, meta } of rows) {
    addKinds(kinds, data);
    addKinds(metaKinds, meta ?? {});
  }
  return { kinds, metaKinds };
}

function addKinds(kinds: Map<string, number>, data: Data): void {
  for (const field of Object.keys(data)) {
    const known = kinds.get(field);
    if (known === undefined && kinds.size >= LIMITS.tableFieldsMax) continue;
    kinds.set(field, (known ?? 0) | kindOf(data[field]));
  }
}

function kindOf(value: unknown): number {
  if (value === null || value === undefined) return 0;
  if (typeof value === 'string') return TEXT;
  if (typeof value === 'number') return NUMBER;
  return typeof value === 'boolean' ? BOOLEAN : NESTED;
}

function typeOf(kind: number, declared: ColumnType = 'text'): ColumnType {
  if (kind === 0) return declared;
  if (kind === NUMBER) return 'number';
  if (kind === BOOLEAN) return 'boolean';
  return kind & NESTED ? 'json' : 'text';
}

/** Readers tell names apart without regard to case, and files have no halves of characters. */
function freeName(field: string, taken: Set<string>): string {
  let name = field.toWellFormed();
  while (taken.has(name.toLowerCase())) name = `data.${name}`;
  taken.add(name.toLowerCase());
  return name;
}

function toColumns(types: Record<string, ColumnType>): Column[] {
  return Object.entries(types).map(([name, type]) => ({ name, type }));
}

async function* cellsOf<Row extends { data: Data }>(
  rows: AsyncIterable<Row>,
  fields: readonly { field: string; type: ColumnType }[],
  first: readonly Column[],
  last: readonly Column[],
  metaCellsOf: (row: object) => Cell[],
): AsyncIterable<Cell[]> {
  const known = new Set(fields.map(({ field }) => field));
  for await (const row of rows) {
    const { data } = row;
    const fixed = row as Row & Record<string, Cell>;
    const cells: Cell[] = first.map(({ name }) => fixed[name] ?? null);
    const rest = Object.entries(data).filter(([field, value]) => value !== null && !known.has(field));
    for (const { field, type } of fields) {
      const value = Object.hasOwn(data, field) ? (data[field] ?? null) : null;
      const cell = value === null ? null : fieldCell(type, value);
      if (value !== null && cell === null) rest.push([field, value]);
      cells.push(cell);
    }
    for (const { name, type } of last) cells.push(cellOf(type, fixed[name]));
    cells.push(rest.length === 0 ? null : jsonText(Object.fromEntries(rest)));
    yield [...cells, ...metaCellsOf(row)];
  }
}

/** Null when a value that was written since does not fit the column. */
function fieldCell(type: ColumnType, value: unknown): Cell {
  if (type === 'json') return jsonText(value);
  if (typeof value === 'object') return null;
  if (type === 'text') return String(value);
  return typeof value === type ? (value as Cell) : null;
}
