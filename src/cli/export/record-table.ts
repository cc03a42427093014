import type { JobSpec } from '../../core/job-schema/job.ts';
import { LIMITS } from '../../core/limits.ts';
import type { Cell } from './csv.ts';
import { type Column, type ColumnType, jsonText, type Table } from './table.ts';

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
export async function recordTable<Row extends { data: Data }>(
  read: () => AsyncIterable<Row>,
  fixed: { first: Record<string, ColumnType>; last: Record<string, ColumnType> },
  spec: JobSpec,
): Promise<Table> {
  const declared = declaredFields(spec);
  const kinds = await kindsOf(read(), declared.keys());
  const fields = [...kinds].map(([field, kind]) => ({ field, type: typeOf(kind, declared.get(field)) }));
  const fixedNames = [...Object.keys(fixed.first), ...Object.keys(fixed.last), REST];
  const taken = new Set(fixedNames.map((name) => name.toLowerCase()));
  const named = fields.map(({ field, type }): Column => ({ name: freeName(field, taken), type }));
  const first = toColumns(fixed.first);
  const last = toColumns(fixed.last);
  return {
    columns: [...first, ...named, ...last, { name: REST, type: 'json' }],
    rows: cellsOf(read(), fields, first, last),
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
  rows: AsyncIterable<{ data: Data }>,
  declared: Iterable<string>,
): Promise<Map<string, number>> {
  const kinds = new Map<string, number>([...declared].map((field) => [field, 0]));
  for await (const { data } of rows) {
    for (const field of Object.keys(data)) {
      const known = kinds.get(field);
      if (known === undefined && kinds.size >= LIMITS.tableFieldsMax) continue;
      kinds.set(field, (known ?? 0) | kindOf(data[field]));
    }
  }
  return kinds;
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
): AsyncIterable<Cell[]> {
  const known = new Set(fields.map(({ field }) => field));
  for await (const row of rows) {
    const { data } = row;
    const fixed = row as unknown as Record<string, Cell>;
    const cells: Cell[] = first.map(({ name }) => fixed[name] ?? null);
    const rest = Object.entries(data).filter(([field, value]) => value !== null && !known.has(field));
    for (const { field, type } of fields) {
      const value = Object.hasOwn(data, field) ? (data[field] ?? null) : null;
      const cell = value === null ? null : fieldCell(type, value);
      if (value !== null && cell === null) rest.push([field, value]);
      cells.push(cell);
    }
    for (const { name } of last) cells.push(fixed[name] ?? null);
    cells.push(rest.length === 0 ? null : jsonText(Object.fromEntries(rest)));
    yield cells;
  }
}

/** Null when a value that was written since does not fit the column. */
function fieldCell(type: ColumnType, value: unknown): Cell {
  if (type === 'json') return jsonText(value);
  if (typeof value === 'object') return null;
  if (type === 'text') return String(value);
  return typeof value === type ? (value as Cell) : null;
}
