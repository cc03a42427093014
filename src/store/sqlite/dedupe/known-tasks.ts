import type { Database } from '../connection/database.ts';
import { NEIGHBOUR_KEYS } from './seen-key.ts';

/** A statement has a price of its own, twice that of a look: 32 URLs share one. */
const AT_ONCE = 32;

/** A look between keys is worth it for so many. */
const NEIGHBOURS_MIN = 8;

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

/**
 * New URLs come with neighbours, whose keys are close together: see `keyOf`. Where nothing of the index lies between the
 * first and the last of them, all are new, and one look is enough for them. Beyond the filter's end that is a third of
 * what adding a URL costs.
 */
export function splitByNeighbours(db: Database, wanted: Wanted[]): { among: Wanted[]; apart: Wanted[] } {
  const groups = new Map<number, Wanted[]>();
  for (const one of wanted) {
    const group = Math.floor(one.number / NEIGHBOUR_KEYS);
    const others = groups.get(group);
    if (others) others.push(one);
    else groups.set(group, [one]);
  }
  const [among, apart]: [Wanted[], Wanted[]] = [[], []];
  for (const group of groups.values()) {
    const into = group.length >= NEIGHBOURS_MIN && !hasIndexedBetween(db, group) ? apart : among;
    for (const one of group) into.push(one);
  }
  return { among, apart };
}

function hasIndexedBetween(db: Database, group: readonly Wanted[]): boolean {
  let [first, last] = [Number.MAX_SAFE_INTEGER, 0];
  for (const { number } of group) {
    first = Math.min(first, number);
    last = Math.max(last, number);
  }
  return db.get(FIND_BETWEEN, first, last) !== undefined;
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

const FIND_BETWEEN = 'SELECT 1 FROM seen WHERE fingerprint BETWEEN ? AND ? LIMIT 1';

const FIND_INDEXED = `${WANTED}
  SELECT wanted.place FROM wanted CROSS JOIN seen ON seen.fingerprint = wanted.number
  CROSS JOIN tasks ON tasks.id = seen.task_id WHERE tasks.url = wanted.url AND tasks.job_id = ?`;

const FIND_REMEMBERED = `${WANTED}
  SELECT wanted.place FROM wanted CROSS JOIN tasks ON tasks.id = wanted.number
  WHERE tasks.url = wanted.url AND tasks.job_id = ?`;
