import type { Database } from '../../src/store/sqlite/connection/database.ts';

/** Lets a database grow no further, as on a full disk, until `make` is called. */
export function limitDatabase(db: Database): { make(): void } {
  const { page_count: pages } = db.get<{ page_count: number }>('PRAGMA page_count')!;
  db.get(`PRAGMA max_page_count = ${pages + 2}`);
  return { make: () => void db.get('PRAGMA max_page_count = 1000000') };
}
