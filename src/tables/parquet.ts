import type { ColumnSource, SchemaElement } from 'hyparquet-writer';
import type { Cell, Column, ColumnType, Table } from './table.ts';

/** A row group is held in memory: so many rows, or so much text, whichever comes first. */
export const GROUP_ROWS_MAX = 50_000;
const GROUP_CHARACTERS_MAX = 8 * 1024 * 1024;

type Value = string | number | boolean | bigint | Uint8Array | null;

/** A table as a file, piece by piece: what was taken is dropped. Returns the number of rows. */
export async function* parquetPieces(
  table: Table,
  { groupRowsMax = GROUP_ROWS_MAX } = {},
): AsyncGenerator<Uint8Array, number, void> {
  const { ByteWriter, ParquetWriter } = await import('hyparquet-writer');
  const bytes = new ByteWriter();
  const schema = schemaOf(table.columns);
  const parquet = new ParquetWriter({ writer: bytes, schema });
  const taken = () => {
    // A copy: the writer uses its buffer again.
    const piece = bytes.getBytes().slice();
    bytes.index = 0;
    return piece;
  };
  let group = new RowGroup(table.columns);
  let rows = 0;
  for await (const cells of table.rows) {
    group.add(cells);
    rows++;
    if (!group.full && group.rows < groupRowsMax) continue;
    parquet.write({ columnData: group.columns, rowGroupSize: group.rows });
    yield taken();
    group = new RowGroup(table.columns);
  }
  if (group.rows > 0) parquet.write({ columnData: group.columns, rowGroupSize: group.rows });
  nameJson(schema, table.columns);
  parquet.finish();
  yield taken();
  return rows;
}

/** Writes a table group by group; returns the number of rows. */
export async function writeParquet(
  table: Table,
  destination: { write(piece: Uint8Array): Promise<void> },
): Promise<number> {
  const pieces = parquetPieces(table);
  let next = await pieces.next();
  for (; !next.done; next = await pieces.next()) await destination.write(next.value);
  return next.value;
}

class RowGroup {
  rows = 0;
  readonly #columns: readonly Column[];
  readonly #values: Value[][];
  #characters = 0;

  constructor(columns: readonly Column[]) {
    this.#columns = columns;
    this.#values = columns.map(() => []);
  }

  add(cells: readonly Cell[]): void {
    this.rows++;
    for (let index = 0; index < cells.length; index++) {
      const cell = cells[index]!;
      if (typeof cell === 'string') this.#characters += cell.length;
      this.#values[index]!.push(cell === null ? null : storedValue(this.#columns[index]!.type, cell));
    }
  }

  get full(): boolean {
    return this.rows >= GROUP_ROWS_MAX || this.#characters >= GROUP_CHARACTERS_MAX;
  }

  get columns(): ColumnSource[] {
    return this.#columns.map(({ name }, index) => ({ name, data: this.#values[index]! }));
  }
}

function storedValue(type: ColumnType, cell: NonNullable<Cell>): Value {
  if (type === 'integer') return BigInt(Math.round(Number(cell)));
  if (type === 'time') return BigInt(Date.parse(String(cell)));
  if (type === 'json') return Buffer.from(String(cell));
  return cell;
}

const ELEMENTS: Record<ColumnType, Omit<SchemaElement, 'name'>> = {
  text: { type: 'BYTE_ARRAY', converted_type: 'UTF8', logical_type: { type: 'STRING' } },
  integer: { type: 'INT64' },
  number: { type: 'DOUBLE' },
  boolean: { type: 'BOOLEAN' },
  time: {
    type: 'INT64',
    converted_type: 'TIMESTAMP_MILLIS',
    logical_type: { type: 'TIMESTAMP', isAdjustedToUTC: true, unit: 'MILLIS' },
  },
  json: { type: 'BYTE_ARRAY', logical_type: { type: 'JSON' } },
};

function schemaOf(columns: readonly Column[]): SchemaElement[] {
  return [
    { name: 'root', num_children: columns.length },
    ...columns.map(
      ({ name, type }): SchemaElement => ({
        name,
        repetition_type: 'OPTIONAL',
        ...ELEMENTS[type],
      }),
    ),
  ];
}

/** Readers go by this older name of the type. Given earlier, the writer would encode our JSON once more. */
function nameJson(schema: SchemaElement[], columns: readonly Column[]): void {
  columns.forEach(({ type }, index) => {
    if (type === 'json') schema[index + 1]!.converted_type = 'JSON';
  });
}
