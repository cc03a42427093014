import type { Reader } from '../../shared/views/reader.ts';

/**
 * Attempts get their numbers before they are written, so a transaction may write lower ones after another one has written
 * higher ones. Whoever reads them in order waits for it: a transaction that takes numbers holds a lock that names the last
 * number before its own.
 */

/** Upper bits of the lock's key: apart from locks of others, and of other schemas. */
const TAG = `(((hashtext('seine attempts ' || current_schema()) & 32767)::bigint) << 48)`;

/** Must be done before the first number is taken, in the same transaction. */
export const TAKE_ATTEMPT_NUMBERS = `
  SELECT pg_advisory_xact_lock_shared(${TAG} | CASE WHEN is_called THEN last_value ELSE 0 END) FROM attempt_ids`;

/**
 * First the newest number, then the locks: who has taken a number up to that one has its lock by then, or is over, and
 * whoever reads rows afterwards sees them.
 */
export async function lastAttempt(reader: Pick<Reader, 'all'>): Promise<number> {
  const [newest] = await reader.all<{ last: number }>(SELECT_NEWEST);
  const last = newest?.last ?? 0;
  if (last === 0) return 0;
  const [open] = await reader.all<{ before: number | null }>(SELECT_OPEN);
  return Math.min(last, open?.before ?? last);
}

const SELECT_NEWEST = 'SELECT CASE WHEN is_called THEN last_value ELSE 0 END AS last FROM attempt_ids';

const SELECT_OPEN = `
  SELECT min(key & ((1::bigint << 48) - 1)) AS before
  FROM (SELECT (classid::bigint << 32) | objid::bigint AS key FROM pg_locks
        WHERE locktype = 'advisory' AND objsubid = 1 AND granted
          AND database = (SELECT oid FROM pg_database WHERE datname = current_database())) AS locks
  WHERE (key >> 48) = (${TAG} >> 48)`;
