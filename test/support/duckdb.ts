import { DuckDBInstance, DuckDBTimestampTZValue } from '@duckdb/node-api';

/** A reader that knows nothing of us: what it makes of a file is what others will. */
export async function openDuckDb(): Promise<{
  rows(sql: string): Promise<Record<string, unknown>[]>;
  /** Names and types of the columns of a file, as it finds them by itself. */
  columns(file: string): Promise<Record<string, string>>;
  close(): void;
}> {
  const instance = await DuckDBInstance.create(':memory:');
  const connection = await instance.connect();
  await connection.run("SET TimeZone = 'UTC'");
  // The library writes times in the zone of this machine, whatever that of the connection is.
  DuckDBTimestampTZValue.timezoneOffsetInMinutes = 0;
  const rows = async (sql: string) => {
    const reader = await connection.runAndReadAll(sql);
    return reader.getRowObjectsJson() as Record<string, unknown>[];
  };
  return {
    rows,
    async columns(file) {
      const described = await rows(`DESCRIBE SELECT * FROM '${file}'`);
      return Object.fromEntries(described.map((row) => [row.column_name, row.column_type])) as Record<
        string,
        string
      >;
    },
    close() {
      connection.closeSync();
      instance.closeSync();
    },
  };
}
