import type { Settlement } from '../../ports/store.ts';
import type { Database } from './database.ts';
import type { TaskInserter } from './insert-tasks.ts';

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
      change.smallestGapMs,
      change.smallestGapMs,
      change.lastError && JSON.stringify(change.lastError),
      hostId,
    );
    if (change.nextAt !== null) {
      db.run(
        'UPDATE queues SET next_at = ? WHERE job_id = ? AND host_id = ?',
        change.nextAt,
        settlement.jobId,
        hostId,
      );
    }
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
    );
    db.run(
      'UPDATE hosts SET crawl_delay_ms = ? WHERE id = ?',
      entry.crawlDelayMs,
      inserter.hostId(entry.host),
    );
  }
}

const UPDATE_HOST = `
  UPDATE hosts SET requests = requests + ?, failures_in_row = ?, rests = ?, next_at = coalesce(iif(next_at > ?, max(?, next_at), ?), next_at),
    pace = coalesce(?, pace), smallest_gap_ms = coalesce(min(?, smallest_gap_ms), ?, smallest_gap_ms),
    last_error = coalesce(?, last_error)
  WHERE id = ?`;

const UPSERT_ROBOTS = `
  INSERT INTO robots (origin, host, text, fetched_at, failures, detail, crawl_delay_ms) VALUES (?, ?, ?, ?, ?, ?, ?)
  ON CONFLICT (origin) DO UPDATE SET host = excluded.host, text = excluded.text, fetched_at = excluded.fetched_at,
    failures = excluded.failures, detail = excluded.detail, crawl_delay_ms = excluded.crawl_delay_ms`;
