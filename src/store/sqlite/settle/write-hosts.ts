import type { Settlement } from '../../../ports/store.ts';
import type { Database } from '../connection/database.ts';
import { followHost } from '../connection/rows.ts';
import type { TaskInserter } from '../frontier/insert-tasks.ts';
import { appendHostLog } from '../host-log.ts';

/** What a report says about hosts and their robots.txt. Lives inside the transaction of its settle. */
export function writeHosts(db: Database, inserter: TaskInserter, settlement: Settlement): void {
  for (const change of settlement.hosts) {
    const hostId = inserter.hostId(change.host);
    db.run(
      UPDATE_HOST,
      change.sent,
      change.failuresInRow,
      change.rests,
      change.takenUntil ?? null,
      change.nextAt,
      change.nextAt,
      change.pace && JSON.stringify(change.pace),
      change.ban ? JSON.stringify(change.ban) : null,
      change.reachedAt ?? null,
      change.smallestGapMs,
      change.span?.from ?? null,
      change.span?.from ?? null,
      change.span?.to ?? null,
      change.lastError && JSON.stringify(change.lastError),
      change.isPaced ? change.nextAt : null,
      change.isPaced ? settlement.jobId : null,
      hostId,
    );
    if (change.nextAt !== null) {
      db.run(
        'UPDATE queues SET next_at = ? WHERE job_id = ? AND host_id = ?',
        change.nextAt,
        settlement.jobId,
        hostId,
      );
      followHost(db, hostId, { nextAt: change.nextAt, takenUntil: change.takenUntil ?? null });
    }
    if (change.log !== undefined) appendHostLog(db, { host: change.host, text: change.log });
  }
  for (const entry of settlement.robots) {
    db.run(
      UPSERT_ROBOTS,
      entry.origin,
      entry.host,
      entry.text,
      entry.fetchedAt,
      entry.failures,
      entry.detail,
      entry.crawlDelayMs,
      entry.redirectTo,
    );
    db.run(SET_DELAY, entry.host, inserter.hostId(entry.host));
  }
}

/** Longer than any: SQLite's least of several values is nothing when one of them is. */
const NO_GAP = '9e15';

const UPDATE_HOST = `
  UPDATE hosts SET requests = requests + ?, failures_in_row = ?, rests = ?, next_at = coalesce(iif(next_at > ?, max(?, next_at), ?), next_at),
    pace = coalesce(?, pace), ban = coalesce(?, ban), reached_at = coalesce(?, reached_at),
    smallest_gap_ms = nullif(min(coalesce(smallest_gap_ms, ${NO_GAP}), coalesce(?, ${NO_GAP}),
      iif(last_sent_at < ?, ? - last_sent_at, ${NO_GAP})), ${NO_GAP}),
    last_sent_at = coalesce(max(?, coalesce(last_sent_at, 0)), last_sent_at),
    last_error = coalesce(?, last_error), paced_until = coalesce(?, paced_until), paced_by = coalesce(?, paced_by)
  WHERE id = ?`;

/** Several origins may be counted together: the one that wants the most time decides. */
const SET_DELAY = `
  UPDATE hosts SET crawl_delay_ms = (SELECT max(crawl_delay_ms) FROM robots WHERE host = ?) WHERE id = ?`;

const UPSERT_ROBOTS = `
  INSERT INTO robots (origin, host, text, fetched_at, failures, detail, crawl_delay_ms, redirect_to)
  VALUES (?, ?, ?, ?, ?, ?, ?, ?)
  ON CONFLICT (origin) DO UPDATE SET host = excluded.host, text = excluded.text, fetched_at = excluded.fetched_at,
    failures = excluded.failures, detail = excluded.detail, crawl_delay_ms = excluded.crawl_delay_ms,
    redirect_to = excluded.redirect_to`;
