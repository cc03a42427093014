import type { SinkSpec } from '../job-schema/sink.ts';

type Data = Record<string, unknown>;

/** A record that was created or changed. */
export interface WrittenRecord {
  key: string;
  json: string;
}

/** Rows for the table of a sink, in the order of its columns; of several with the same key the last one. */
export function sinkRows(
  { columns, key }: SinkSpec,
  job: string,
  records: readonly WrittenRecord[],
): string[] {
  const names = Object.entries(columns);
  const rows = new Map<string, string>();
  for (const record of records) {
    const data = JSON.parse(record.json) as Data;
    const row = new Map(names.map(([column, field]) => [column, fieldValue(field, record, data, job)]));
    const id = JSON.stringify(key.map((column) => row.get(column)));
    rows.delete(id);
    rows.set(id, JSON.stringify(Object.fromEntries(row)));
  }
  return [...rows.values()];
}

function fieldValue(field: string, { key }: WrittenRecord, data: Data, job: string): unknown {
  if (field === '@key') return key;
  if (field === '@job') return job;
  if (field === '@record') return data;
  if (Object.hasOwn(data, field)) return data[field];
  let value: unknown = data;
  for (const name of field.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return null;
    value = (value as Data)[name];
  }
  return value;
}
