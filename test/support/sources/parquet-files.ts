import { DuckDBInstance } from '@duckdb/node-api';
import { type ColumnSource, parquetWriteBuffer } from 'hyparquet-writer';

/** Parquet from two writers: DuckDB's for what the world has, hyparquet's where pages and bytes must be known. */

export async function writeWithDuckDb(path: string, select: string, options = ''): Promise<void> {
  const database = await DuckDBInstance.create(':memory:');
  const connection = await database.connect();
  await connection.run('SET threads = 1');
  await connection.run(`COPY (${select}) TO '${path}' (FORMAT parquet${options})`);
  connection.closeSync();
  database.closeSync();
}

export function parquetOf(
  columns: Record<string, Omit<ColumnSource, 'name'>>,
  options: { rowGroupSize?: number; pageSize?: number; codec?: 'UNCOMPRESSED' | 'SNAPPY' } = {},
): Buffer {
  const columnData = Object.entries(columns).map(([name, column]) => ({ name, ...column }));
  return Buffer.from(parquetWriteBuffer({ columnData, ...options }));
}

export const textColumn = (data: (string | null)[]): Omit<ColumnSource, 'name'> => ({ data, type: 'STRING' });

export function urlsUpTo(count: number, host = 'a'): string[] {
  return Array.from({ length: count }, (_, index) => `https://${host}.example/${index}`);
}
