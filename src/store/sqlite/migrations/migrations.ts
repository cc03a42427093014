import type { Migration } from '../../shared/migration.ts';
import { FIRST_TABLES } from './001-first-tables.ts';
import { PASSES } from './002-passes.ts';

/** Append only: a released entry is never edited. `user_version` is the number of the last one that has run. */
export const MIGRATIONS: readonly Migration[] = [
  { number: 1, name: 'first-tables', sql: FIRST_TABLES },
  { number: 2, name: 'passes', sql: PASSES },
  {
    number: 3,
    name: 'host-pace',
    sql: `
  ALTER TABLE hosts ADD COLUMN pace TEXT;
  ALTER TABLE hosts ADD COLUMN smallest_gap_ms REAL;
  ALTER TABLE hosts ADD COLUMN last_error TEXT;
  CREATE INDEX robots_host ON robots (host);
  `,
  },
  {
    number: 4,
    name: 'fetch-methods',
    sql: `
  -- What was learned of how hosts want to be asked, and cookies; opaque JSON.
  CREATE TABLE approaches (
    job_id INTEGER NOT NULL,
    host TEXT NOT NULL,
    template TEXT NOT NULL,
    stats TEXT NOT NULL,
    PRIMARY KEY (job_id, host, template)
  ) WITHOUT ROWID;
  ALTER TABLE attempts ADD COLUMN via TEXT;
  `,
  },
  {
    number: 5,
    name: 'proxies',
    sql: `
  -- How proxies fare, by id; with an empty host in general. Never an address with credentials.
  CREATE TABLE proxy_health (
    proxy TEXT NOT NULL,
    host TEXT NOT NULL,
    health TEXT NOT NULL,
    noted_at INTEGER NOT NULL,
    PRIMARY KEY (proxy, host)
  ) WITHOUT ROWID;
  CREATE INDEX proxy_health_noted ON proxy_health (noted_at);

  -- What the remote scraping API took for a job.
  CREATE TABLE api_costs (job_id INTEGER PRIMARY KEY, cost REAL NOT NULL);
  `,
  },
  {
    number: 6,
    name: 'host-groups',
    sql: `
  -- home_host_id: the host of the task's own URL, while it follows redirects elsewhere.
  -- referrer: the page that linked here, for jobs that look like a browser.
  ALTER TABLE tasks ADD COLUMN home_host_id INTEGER;
  ALTER TABLE tasks ADD COLUMN referrer TEXT;

  -- Waiting tasks of a host that is given up.
  CREATE INDEX tasks_waiting_host ON tasks (job_id, host_id) WHERE state = 8;

  -- So that the time between the requests of two permits is known.
  ALTER TABLE hosts ADD COLUMN last_sent_at REAL;

  -- What hosts of a job are counted by, where that had to be looked up.
  CREATE TABLE host_groups (
    job_id INTEGER NOT NULL,
    host TEXT NOT NULL,
    host_group TEXT NOT NULL,
    PRIMARY KEY (job_id, host)
  ) WITHOUT ROWID;
`,
  },
  {
    number: 7,
    name: 'screenshots',
    sql: `
  -- Pictures that a browser made at an attempt, as JSON.
  ALTER TABLE attempts ADD COLUMN shots TEXT;
  CREATE INDEX attempts_shots ON attempts (job_id, id) WHERE shots IS NOT NULL;
  `,
  },
  {
    number: 8,
    name: 'dedupe-filter',
    sql: `
  -- indexed_to: tasks up to this id are in seen. filtered: whether all of those are in seen_filter, too;
  -- an index that was there before has no filter.
  CREATE TABLE seen_state (indexed_to INTEGER NOT NULL, filtered INTEGER NOT NULL);
  INSERT INTO seen_state SELECT coalesce(max(id), 0), max(id) IS NULL FROM tasks;
  CREATE TABLE seen_filter (capacity INTEGER PRIMARY KEY, count INTEGER NOT NULL, bits BLOB NOT NULL);
`,
  },
  { number: 9, name: 'robots-redirects', sql: 'ALTER TABLE robots ADD COLUMN redirect_to TEXT' },
  {
    number: 10,
    name: 'plain-names',
    sql: `
  ALTER TABLE approaches RENAME TO escalations;
  ALTER TABLE jobs RENAME COLUMN wish TO requested_state;
  `,
  },
  {
    number: 11,
    name: 'lost-batches',
    sql: `
  -- Coordinators that died while the task was lent.
  ALTER TABLE tasks ADD COLUMN crashes INTEGER NOT NULL DEFAULT 0;

  -- Where the reports of a batch go, and its permits as JSON: whoever takes it over needs both.
  ALTER TABLE batches ADD COLUMN reply_to TEXT;
  ALTER TABLE batches ADD COLUMN permits TEXT;
  `,
  },
  {
    number: 12,
    name: 'attempted-pages',
    sql: `
  -- Tasks that were requested, for the limit of pages. Those that failed and wait for a retry were not counted before.
  ALTER TABLE counters ADD COLUMN attempted INTEGER NOT NULL DEFAULT 0;
  UPDATE counters SET attempted = done + unchanged + dead;
  `,
  },
  {
    number: 13,
    name: 'priorities',
    sql: `
  -- Priorities that people gave to tasks of the job while it ran, as JSON.
  ALTER TABLE jobs ADD COLUMN priorities TEXT;
  `,
  },
  {
    number: 14,
    name: 'many-jobs',
    sql: `
  -- When the job last got the host: jobs that want the same host take turns.
  ALTER TABLE queues ADD COLUMN served_at INTEGER NOT NULL DEFAULT 0;
  CREATE INDEX queues_host ON queues (host_id);

  -- Few of many.
  CREATE INDEX jobs_running ON jobs (id) WHERE state = 'running';
  CREATE INDEX jobs_scheduled ON jobs (name, run) WHERE json_extract(spec, '$.schedule') IS NOT NULL;
  `,
  },
  {
    number: 15,
    name: 'host-bans',
    // Whether a host refuses everything since it last answered, as JSON.
    sql: 'ALTER TABLE hosts ADD COLUMN ban TEXT',
  },
];
