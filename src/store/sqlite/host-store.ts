import type { HostProfile } from '../../core/calibration/host-profile.ts';
import type { StoredLogEntry } from '../../core/host-log/host-log.ts';
import type { HostPace } from '../../core/pace/pace.ts';
import type {
  CheckpointOptions,
  HostFacts,
  HostLogText,
  HostStore,
  HostSummary,
  LogCheckpoint,
  RobotsEntry,
} from '../../ports/store.ts';
import {
  type HostColumns,
  type HostSummaryColumns,
  hostSteps,
  selectHostSummaries,
  toHostFacts,
  toHostSummary,
  WAITING_COLUMNS,
} from '../shared/host-rows.ts';
import { WAITING } from '../shared/states.ts';
import type { Database } from './connection/database.ts';
import { appendHostLog, checkpointHostLog, readHostLog } from './host-log.ts';

export class SqliteHostStore implements HostStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  list(jobId: number): AsyncIterable<HostFacts> {
    return hostSteps((after, limit) => this.listStep(jobId, { after, limit }));
  }

  async listStep(jobId: number, { after, limit }: { after: string; limit: number }): Promise<HostFacts[]> {
    const rows = this.#db.all<HostColumns>(SELECT_HOSTS, jobId, after, limit);
    return rows.map((row) => {
      const robots = this.#db.all<RobotsEntry>(`${SELECT_ROBOTS} WHERE host = ? ORDER BY origin`, row.host);
      return toHostFacts(
        row,
        robots.map((entry) => ({ ...entry })),
      );
    });
  }

  async listAfter({ after, limit }: { after: string; limit: number }): Promise<HostSummary[]> {
    return this.#db.all<HostSummaryColumns>(selectHostSummaries(['?', '?']), after, limit).map(toHostSummary);
  }

  async robots(origin: string): Promise<RobotsEntry | null> {
    const row = this.#db.get<RobotsEntry>(`${SELECT_ROBOTS} WHERE origin = ?`, origin);
    return row ? { ...row } : null;
  }

  async saveProfile(profile: HostProfile, pace: HostPace | null): Promise<void> {
    const [noted, learned] = [JSON.stringify(profile), pace && JSON.stringify(pace)];
    this.#db.transaction(() => {
      this.#db.run('INSERT OR IGNORE INTO hosts (host) VALUES (?)', profile.host);
      this.#db.run(SAVE_PROFILE, profile.host, noted);
      this.#db.run('UPDATE hosts SET pace = coalesce(?, pace) WHERE host = ?', learned, profile.host);
    });
  }

  async profiles(limit: number): Promise<HostProfile[]> {
    const rows = this.#db.all<{ profile: string }>(SELECT_PROFILES, limit);
    return rows.map(({ profile }) => JSON.parse(profile));
  }

  async appendLogs(logs: readonly HostLogText[]): Promise<void> {
    this.#db.transaction(() => {
      for (const log of logs) appendHostLog(this.#db, log);
    });
  }

  async checkpointLog(host: string, options: CheckpointOptions): Promise<LogCheckpoint> {
    return this.#db.transaction(() => checkpointHostLog(this.#db, host, options));
  }

  async logStep(host: string, options: { after: number; limit: number }): Promise<StoredLogEntry[]> {
    return readHostLog(this.#db, host, options).map((entry) => ({ ...entry }));
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

const SELECT_HOSTS = `
  SELECT hosts.host, queues.ready, ${WAITING_COLUMNS}, hosts.requests, max(hosts.next_at, queues.next_at) AS nextAt,
    hosts.failures_in_row AS failuresInRow, hosts.rests, hosts.pace, hosts.ban, host_profiles.profile,
    hosts.smallest_gap_ms AS smallestGapMs,
    hosts.last_error AS lastError,
    (SELECT group_concat(jobs.name || '-' || jobs.run, ' ') FROM queues AS other JOIN jobs ON jobs.id = other.job_id
      WHERE other.host_id = hosts.id AND other.job_id <> queues.job_id AND other.ready > 0 AND jobs.state = 'running') AS sharedWith
  FROM hosts JOIN queues ON queues.host_id = hosts.id AND queues.job_id = ?
    LEFT JOIN host_profiles ON host_profiles.host = hosts.host
  WHERE hosts.host > ? ORDER BY hosts.host LIMIT ?`;

const SAVE_PROFILE = 'INSERT OR REPLACE INTO host_profiles (host, profile) VALUES (?, ?)';

const SELECT_PROFILES = `
  SELECT profile FROM host_profiles ORDER BY json_extract(profile, '$.measuredAt') DESC LIMIT ?`;

const SELECT_GROUP = 'SELECT host_group FROM host_groups WHERE job_id = ? AND host = ?';

const INSERT_GROUP = 'INSERT OR IGNORE INTO host_groups (job_id, host, host_group) VALUES (?, ?, ?)';

const SELECT_ROBOTS = `
  SELECT origin, host, text, fetched_at AS fetchedAt, failures, detail, crawl_delay_ms AS crawlDelayMs,
    redirect_to AS redirectTo
  FROM robots`;
