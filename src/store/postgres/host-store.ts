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
import { appendHostLogs, checkpointHostLog, readHostLog } from './host-log.ts';

export class PostgresHostStore implements HostStore {
  readonly #db: Database;
  readonly #reads: Pick<Database, 'read'>;

  constructor(db: Database, reads: Pick<Database, 'read'>) {
    this.#db = db;
    this.#reads = reads;
  }

  list(jobId: number): AsyncIterable<HostFacts> {
    return hostSteps((after, limit) => this.listStep(jobId, { after, limit }));
  }

  async listStep(jobId: number, { after, limit }: { after: string; limit: number }): Promise<HostFacts[]> {
    const rows = await this.#reads.read<HostColumns>(SELECT_HOSTS, jobId, after, limit);
    const hosts = rows.map(({ host }) => host);
    const robots = await this.#reads.read<RobotsEntry>(SELECT_ROBOTS_OF_HOSTS, hosts);
    return rows.map((row) =>
      toHostFacts(
        row,
        robots.filter(({ host }) => host === row.host),
      ),
    );
  }

  async listAfter({ after, limit }: { after: string; limit: number }): Promise<HostSummary[]> {
    const text = selectHostSummaries(['$1', '$2']);
    return (await this.#reads.read<HostSummaryColumns>(text, after, limit)).map(toHostSummary);
  }

  async robots(origin: string): Promise<RobotsEntry | null> {
    const [row] = await this.#db.read<RobotsEntry>(SELECT_ROBOTS_OF_ORIGIN, origin);
    return row ?? null;
  }

  async saveProfile(profile: HostProfile, pace: HostPace | null): Promise<void> {
    await this.#db.read(SAVE_PROFILE, profile.host, JSON.stringify(profile), pace && JSON.stringify(pace));
  }

  async profiles(limit: number): Promise<HostProfile[]> {
    const rows = await this.#reads.read<{ profile: string }>(SELECT_PROFILES, limit);
    return rows.map(({ profile }) => JSON.parse(profile));
  }

  async appendLogs(logs: readonly HostLogText[]): Promise<void> {
    await this.#db.write((tx) => appendHostLogs(tx, logs));
  }

  async checkpointLog(host: string, options: CheckpointOptions): Promise<LogCheckpoint> {
    return this.#db.write((tx) => checkpointHostLog(tx, host, options));
  }

  async logStep(host: string, options: { after: number; limit: number }): Promise<StoredLogEntry[]> {
    return readHostLog(this.#reads, host, options);
  }

  async groupsOf(jobId: number, hosts: readonly string[]): Promise<Map<string, string>> {
    const rows = await this.#db.read<{ host: string; host_group: string }>(SELECT_GROUPS, jobId, hosts);
    return new Map(rows.map((row) => [row.host, row.host_group]));
  }

  async noteGroups(jobId: number, groups: ReadonlyMap<string, string>): Promise<Map<string, string>> {
    const hosts = [...groups.keys()];
    await this.#db.read(INSERT_GROUPS, jobId, hosts, [...groups.values()]);
    return this.groupsOf(jobId, hosts);
  }

  async clampNextAt({ latest, to }: { latest: number; to: number }): Promise<number> {
    return this.#db.write(
      async (tx) => {
        const hosts = await tx.run(
          'UPDATE hosts SET next_at = $2 WHERE next_at > $1 RETURNING 1',
          latest,
          to,
        );
        const tasks = await tx.run<{ count: number }>(CLAMP_TASKS, latest, to);
        // Not counted: the hours of a job close hosts for longer, and it looks at them again.
        await tx.run('UPDATE queues SET next_at = $2 WHERE next_at > $1', latest, to);
        await tx.run('UPDATE robots SET fetched_at = $2 WHERE fetched_at > $1', latest, to);
        await tx.run('UPDATE proxy_health SET noted_at = $2 WHERE noted_at > $1', latest, to);
        return hosts.length + tasks[0]!.count;
      },
      { slow: true },
    );
  }
}

const SELECT_HOSTS = `
  SELECT hosts.host, queues.ready, ${WAITING_COLUMNS}, hosts.requests, greatest(hosts.next_at, queues.next_at) AS "nextAt",
    hosts.failures_in_row AS "failuresInRow", hosts.rests, hosts.pace, hosts.ban, host_profiles.profile,
    hosts.smallest_gap_ms AS "smallestGapMs",
    hosts.last_error AS "lastError",
    (SELECT string_agg(jobs.name || '-' || jobs.run, ' ' ORDER BY jobs.id) FROM queues AS other JOIN jobs ON jobs.id = other.job_id
      WHERE other.host_id = hosts.id AND other.job_id <> queues.job_id AND other.ready > 0 AND jobs.state = 'running') AS "sharedWith"
  FROM hosts JOIN queues ON queues.host_id = hosts.id AND queues.job_id = $1
    LEFT JOIN host_profiles ON host_profiles.host = hosts.host
  WHERE hosts.host > $2 ORDER BY hosts.host LIMIT $3`;

const CLAMP_TASKS = `
  WITH clamped AS (UPDATE tasks SET due_at = $2 WHERE state = ${WAITING} AND due_at > $1 RETURNING 1)
  SELECT count(*) AS count FROM clamped`;

const SAVE_PROFILE = `
  WITH noted AS (
    INSERT INTO host_profiles (host, profile) VALUES ($1, $2::json)
    ON CONFLICT (host) DO UPDATE SET profile = excluded.profile)
  INSERT INTO hosts (host, pace) VALUES ($1, $3::json)
  ON CONFLICT (host) DO UPDATE SET pace = coalesce(excluded.pace, hosts.pace)`;

const SELECT_PROFILES = `
  SELECT profile FROM host_profiles ORDER BY (profile->>'measuredAt')::double precision DESC LIMIT $1`;

const SELECT_GROUPS = 'SELECT host, host_group FROM host_groups WHERE job_id = $1 AND host = ANY($2::text[])';

/** In one order, so that two coordinators never wait in a ring. */
const INSERT_GROUPS = `
  INSERT INTO host_groups (job_id, host, host_group)
  SELECT $1, host, host_group FROM unnest($2::text[], $3::text[]) AS found (host, host_group) ORDER BY host
  ON CONFLICT (job_id, host) DO NOTHING`;

const SELECT_ROBOTS = `
  SELECT origin, host, text, fetched_at AS "fetchedAt", failures, detail, crawl_delay_ms AS "crawlDelayMs",
    redirect_to AS "redirectTo"
  FROM robots`;

const SELECT_ROBOTS_OF_HOSTS = `${SELECT_ROBOTS} WHERE host = ANY($1::text[]) ORDER BY origin`;

const SELECT_ROBOTS_OF_ORIGIN = `${SELECT_ROBOTS} WHERE origin = $1`;
