import type { RecordRow, RecordVersionRow } from '../../core/model.ts';

export interface RecordColumns {
  key: string;
  url: string;
  route: string | null;
  /** Null where the row was not asked for: the step goes on behind it. */
  data: string | null;
  hash: string;
  created_at: number;
  updated_at: number;
  checked_at: number;
}

export function toRecordRow(row: RecordColumns, data: string): RecordRow {
  return {
    key: row.key,
    url: row.url,
    route: row.route,
    data: JSON.parse(data),
    hash: row.hash,
    createdAt: new Date(row.created_at).toISOString(),
    updatedAt: new Date(row.updated_at).toISOString(),
    checkedAt: new Date(row.checked_at).toISOString(),
  };
}

export interface VersionColumns {
  id: number;
  key: string;
  url: string;
  data: string | null;
  hash: string;
  from_at: number;
  until_at: number;
}

export function toVersionRow(row: VersionColumns, data: string): RecordVersionRow {
  return {
    key: row.key,
    url: row.url,
    data: JSON.parse(data),
    hash: row.hash,
    from: new Date(row.from_at).toISOString(),
    until: new Date(row.until_at).toISOString(),
  };
}
