import type { HostFacts, HostStore, RobotsEntry } from '../../ports/store.ts';
import { WAITING } from '../shared/states.ts';
import type { Database } from './connection/database.ts';

const STEP = 500;

export class SqliteHostStore implements HostStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  async *list(jobId: number): AsyncIterable<HostFacts> {
    let after = '';
    while (true) {
      const rows = this.#db.all<HostColumns>(SELECT_HOSTS, jobId, after, STEP);
      for (const { pace, ban, lastError, ...row } of rows) {
        yield {
          ...row,
          pace: pace === null ? null : JSON.parse(pace),
          ban: ban === null ? null : JSON.parse(ban),
          lastError: lastError === null ? null : JSON.parse(lastError),
          robots: this.#db
            .all<RobotsEntry>(`${SELECT_ROBOTS} WHERE host = ? ORDER BY origin`, row.host)
            .map((entry) => ({ ...entry })),
        };
      }
      const last = rows.at(-1);
      if (!last) return;
      after = last.host;
    }
  }

  async robots(origin: string): Promise<RobotsEntry | null> {
    const row = this.#db.get<RobotsEntry>(`${SELECT_ROBOTS} WHERE origin = ?`, origin);
    return row ? { ...row } : null;
  }

  async groupsOf(jobId: number, hosts: readonly string[]): Promise<Map<string, string>> {
    const groups = new Map<string, string>();
    for (const host of hosts) {
      const row = this.#db.get<{ host_group: string }>(SELECT_GROUP, jobId, host);
      if (row) groups.set(host, row.host_group);
    }
    return groups;
  }

  async noteGroups(jobId: number, groups: ReadonlyMap<string, string>): Promise<Map<string, string>> {
    this.#db.transaction(() => {
      for (const [host, group] of groups) this.#db.run(INSERT_GROUP, jobId, host, group);
    });
    return this.groupsOf(jobId, [...groups.keys()]);
  }

  async clampNextAt({ latest, to }: { latest: number; to: number }): Promise<number> {
    return this.#db.transaction(() => {
      const hosts = this.#db.run('UPDATE hosts SET next_at = ? WHERE next_at > ?', to, latest);
      const tasks = this.#db.run(
        `UPDATE tasks SET due_at = ? WHERE state = ${WAITING} AND due_at > ?`,
        to,
        latest,
      );
      // Not counted: the hours of a job close hosts for longer, and it looks at them again.
      this.#db.run('UPDATE queues SET next_at = ? WHERE next_at > ?', to, latest);
      this.#db.run('UPDATE robots SET fetched_at = ? WHERE fetched_at > ?', to, latest);
      this.#db.run('UPDATE proxy_health SET noted_at = ? WHERE noted_at > ?', to, latest);
      return hosts + tasks;
    });
  }
}

type HostColumns = Omit<HostFacts, 'pace' | 'ban' | 'lastError' | 'robots'> & {
  pace: string | null;
  ban: string | null;
  lastError: string | null;
};

const SELECT_HOSTS = `
  SELECT hosts.host, queues.ready, hosts.requests, max(hosts.next_at, queues.next_at) AS nextAt,
    hosts.failures_in_row AS failuresInRow, hosts.rests, hosts.pace, hosts.ban, hosts.smallest_gap_ms AS smallestGapMs,
    hosts.last_error AS lastError
  FROM hosts JOIN queues ON queues.host_id = hosts.id AND queues.job_id = ?
  WHERE hosts.host > ? ORDER BY hosts.host LIMIT ?`;

const SELECT_GROUP = 'SELECT host_group FROM host_groups WHERE job_id = ? AND host = ?';

const INSERT_GROUP = 'INSERT OR IGNORE INTO host_groups (job_id, host, host_group) VALUES (?, ?, ?)';

const SELECT_ROBOTS = `
  SELECT origin, host, text, fetched_at AS fetchedAt, failures, detail, crawl_delay_ms AS crawlDelayMs,
    redirect_to AS redirectTo
  FROM robots`;
