import type { Database } from '../connection/database.ts';

/** A statement has a price of its own, twice that of a look: 32 URLs share one. */
const AT_ONCE = 32;

/** A URL, and the number that it would be found by: the slot of its key, or the id of its task. */
export interface Wanted {
  at: number;
  number: number;
  url: string;
}

/** The places of those that are tasks of the job, found by their slots in the index. */
export function findIndexed(db: Database, jobId: number, wanted: Wanted[]): number[] {
  return findMany(db, FIND_INDEXED, jobId, wanted);
}

/** The same for tasks that are remembered, but not in the index yet. */
export function findRemembered(db: Database, jobId: number, wanted: Wanted[]): number[] {
  return findMany(db, FIND_REMEMBERED, jobId, wanted);
}

function findMany(db: Database, sql: string, jobId: number, wanted: Wanted[]): number[] {
  const found: number[] = [];
  const values = new Array<string | number | null>(AT_ONCE * 3 + 1).fill(jobId);
  for (let from = 0; from < wanted.length; from += AT_ONCE) {
    for (let offset = 0; offset < AT_ONCE; offset++) {
      const one = wanted[from + offset];
      values[offset * 3] = one?.at ?? null;
      values[offset * 3 + 1] = one?.number ?? null;
      values[offset * 3 + 2] = one?.url ?? null;
    }
    for (const { place } of db.all<{ place: number }>(sql, ...values)) found.push(place);
  }
  return found;
}

const WANTED = `WITH wanted (place, number, url) AS (VALUES (?, ?, ?)${', (?, ?, ?)'.repeat(AT_ONCE - 1)})`;

const FIND_INDEXED = `${WANTED}
  SELECT wanted.place FROM wanted CROSS JOIN seen ON seen.fingerprint = wanted.number
  CROSS JOIN tasks ON tasks.id = seen.task_id WHERE tasks.url = wanted.url AND tasks.job_id = ?`;

const FIND_REMEMBERED = `${WANTED}
  SELECT wanted.place FROM wanted CROSS JOIN tasks ON tasks.id = wanted.number
  WHERE tasks.url = wanted.url AND tasks.job_id = ?`;
