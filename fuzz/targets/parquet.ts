import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { openParquetReader } from '../../src/sources/parquet/parquet-source.ts';
import { BrokenFileError } from '../../src/sources/rows/raw-row.ts';
import { memoryFiles } from '../memory-files.ts';
import { mutate } from '../mutate.ts';
import type { Random } from '../random.ts';
import { must, mustEqual, type Target } from '../target.ts';

/**
 * Parquet in two kinds of input. Bytes are a file, mostly damaged: it gives rows or is called broken, and takes nothing
 * down. Text is a table that DuckDB writes, in the form of `Plan`: what is read is what DuckDB reads itself.
 */

interface Plan {
  rows: number;
  /** Expressions over `i`, the number of the row, by column. */
  columns: [name: string, expression: string][];
  options: string;
}

const EXPRESSIONS = [
  "'text ' || i",
  'i',
  'i::SMALLINT',
  'i % 3 = 0',
  'i / 7.0',
  'CASE WHEN i % 3 = 0 THEN NULL ELSE i END',
  "CASE WHEN i % 4 = 0 THEN NULL ELSE 'n' || (i % 5) END",
  '[i, i + 1]',
  '[]::INTEGER[]',
  'CASE WHEN i % 2 = 0 THEN NULL ELSE [NULL, i] END',
  "{'a': i, 'b': 'x' || i}",
  "[{'a': i}, {'a': NULL}]",
  '(i * 3)::DECIMAL(9, 2)',
  'NULL::VARCHAR',
  "repeat('x', (i % 40)::INTEGER)",
];
const NAMES = ['a', 'b', 'constructor', '__proto__', 'toString', 'a b', 'é', 'length'];
const CODECS = ['uncompressed', 'snappy', 'zstd', 'gzip', 'lz4_raw', 'brotli'];

function plan(random: Random): Plan {
  const names = [...new Set(random.list(0, 3, () => random.pick(NAMES)))];
  return {
    rows: random.pick([0, 1, 2, 50, 500]),
    columns: [
      ['url', "'https://a.example/' || i"],
      ...names.map((name): [string, string] => [name, random.pick(EXPRESSIONS)]),
    ],
    options: `CODEC '${random.pick(CODECS)}', ROW_GROUP_SIZE ${random.pick([1, 64, 2_048])}, PARQUET_VERSION ${random.pick(['V1', 'V2'])}`,
  };
}

/** Limits for a thread that reads small files. */
const LIMITS = { heapMb: 256, stallMs: 5_000 };
/** Whole files to damage; a few of DuckDB's make many. */
const FILES = 24;

export async function openParquetTarget(): Promise<Target> {
  const dir = await mkdtemp(join(tmpdir(), 'seine-fuzz-'));
  const instance = await DuckDBInstance.create(':memory:');
  const connection = await instance.connect();
  await connection.run('SET threads = 1');
  const path = join(dir, 'table.parquet');
  const write = async ({ rows, columns, options }: Plan): Promise<Buffer> => {
    const selected = columns
      .map(([name, expression]) => `${expression} AS "${name.replaceAll('"', '""')}"`)
      .join(', ');
    await connection.run(
      `COPY (SELECT ${selected} FROM range(${rows}) t(i)) TO '${path}' (FORMAT parquet, ${options})`,
    );
    return readFile(path);
  };
  const { Random: Chance } = await import('../random.ts');
  const files: Buffer[] = [];
  for (let index = 0; files.length < FILES; index++) files.push(await write(plan(new Chance(index))));
  let bytes: Buffer = Buffer.alloc(0);
  // One thread for all: what a file does to it must not show in the next.
  const reader = openParquetReader(
    {
      ...memoryFiles(bytes, 1),
      size: async () => bytes.length,
      read: async (_url, offset, length) => memoryFiles(bytes, 1).read('', offset, length),
    },
    {},
    LIMITS,
  );
  const rowsOf = async (input: Buffer) => {
    bytes = input;
    const rows: { url: string; meta: unknown }[] = [];
    for await (const { row } of reader.rows('table.parquet', null))
      if (!Array.isArray(row) && 'url' in row) rows.push({ url: row.url, meta: row.meta });
    return rows;
  };
  return {
    generate(random) {
      return random.oneIn(20)
        ? Buffer.from(JSON.stringify(plan(random)))
        : mutate(random.pick(files), random, [], 3);
    },
    async check(input) {
      const asked = planOf(input);
      if (asked === null) {
        await rowsOf(input).catch((error: unknown) => {
          must(error instanceof BrokenFileError, `reading throws ${String(error)}`);
          must(!/takes longer than/.test(error.message), `it stalls the thread: ${error.message}`);
        });
        return;
      }
      const file = await write(asked);
      const expected = await connection.runAndReadAll(`SELECT * FROM '${path}'`);
      const names = expected.columnNames();
      const rows = expected.getRowsJson().map((row) => {
        const [url, ...meta] = names.map((name, index): [string, unknown] => [name, row[index]]);
        return { url: url![1], meta: meta.length === 0 ? null : Object.fromEntries(meta) };
      });
      mustEqual(comparable(await rowsOf(file)), comparable(rows), 'DuckDB');
    },
    async close() {
      await reader.close();
      connection.closeSync();
      instance.closeSync();
      await rm(dir, { recursive: true });
    },
  };
}

function planOf(input: Buffer): Plan | null {
  if (input[0] !== 0x7b) return null;
  try {
    return JSON.parse(input.toString('utf8')) as Plan;
  } catch {
    return null;
  }
}

/** DuckDB writes large and decimal numbers as text. */
function comparable(rows: unknown): unknown {
  return JSON.parse(JSON.stringify(rows), (_name, value: unknown) =>
    typeof value === 'string' && /^-?\d+(\.\d+)?$/.test(value) ? Number(value) : value,
  );
}
