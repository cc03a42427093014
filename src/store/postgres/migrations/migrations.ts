import type { Migration } from '../../shared/migration.ts';
import { FIRST_TABLES } from './001-first-tables.ts';
import { RECORDS } from './002-records.ts';

/** Append only: a released entry is never edited. The table `migrations` has the numbers of those that have run. */
export const MIGRATIONS: readonly Migration[] = [
  { number: 1, name: 'first-tables', sql: FIRST_TABLES },
  { number: 2, name: 'records', sql: RECORDS },
  {
    number: 3,
    name: 'fetch-methods',
    sql: `
  -- What was learned of how hosts want to be asked, and cookies; opaque JSON.
  CREATE TABLE approaches (
    job_id bigint NOT NULL,
    host text NOT NULL,
    template text NOT NULL,
    stats text NOT NULL,
    PRIMARY KEY (job_id, host, template)
  );
  ALTER TABLE attempts ADD COLUMN via text;
`,
  },
  {
    number: 4,
    name: 'proxies',
    sql: `
  -- How proxies fare, by id; with an empty host in general. Never an address with credentials.
  CREATE TABLE proxy_health (
    proxy text NOT NULL,
    host text NOT NULL,
    health text NOT NULL,
    noted_at bigint NOT NULL,
    PRIMARY KEY (proxy, host)
  ) WITH (fillfactor = 50);
  CREATE INDEX proxy_health_noted ON proxy_health (noted_at);

  -- What the remote scraping API took for a job.
  CREATE TABLE api_costs (job_id bigint PRIMARY KEY, cost double precision NOT NULL);
`,
  },
  {
    number: 5,
    name: 'host-groups',
    sql: `
  -- The page that linked here, for jobs that look like a browser.
  ALTER TABLE tasks ADD COLUMN referrer text;

  -- Waiting tasks of a host that is given up.
  CREATE INDEX tasks_waiting_host ON tasks (job_id, host_id, id) WHERE state = 8;

  -- So that the time between the requests of two permits is known.
  ALTER TABLE hosts ADD COLUMN last_sent_at double precision;

  -- What hosts of a job are counted by, where that had to be looked up.
  CREATE TABLE host_groups (
    job_id bigint NOT NULL,
    host text NOT NULL,
    host_group text NOT NULL,
    PRIMARY KEY (job_id, host)
  );
`,
  },
  {
    number: 6,
    name: 'screenshots',
    sql: `
  -- Pictures that a browser made at an attempt, as JSON.
  ALTER TABLE attempts ADD COLUMN shots text;
  CREATE INDEX attempts_shots ON attempts (job_id, id) WHERE shots IS NOT NULL;
`,
  },
  {
    number: 7,
    name: 'robots-redirects',
    sql: `
  -- Where robots.txt is, of an origin whose own one redirects.
  ALTER TABLE robots ADD COLUMN redirect_to text;
`,
  },
  {
    number: 8,
    name: 'plain-names',
    sql: `
  ALTER TABLE approaches RENAME TO escalations;
  ALTER TABLE escalations RENAME CONSTRAINT approaches_pkey TO escalations_pkey;
  ALTER TABLE jobs RENAME COLUMN wish TO requested_state;
  ALTER TABLE writes RENAME COLUMN lane TO connection;
  `,
  },
  {
    number: 9,
    name: 'lost-batches',
    sql: `
  -- Coordinators that died while the task was lent.
  ALTER TABLE tasks ADD COLUMN crashes smallint NOT NULL DEFAULT 0;

  -- Where the reports of a batch go, and its permits as JSON: whoever takes it over needs both.
  ALTER TABLE batches ADD COLUMN reply_to text;
  ALTER TABLE batches ADD COLUMN permits text;
  `,
  },
  {
    number: 10,
    name: 'attempted-pages',
    sql: `
  -- Tasks that were requested, for the limit of pages. Those that failed and wait for a retry were not counted before.
  ALTER TABLE counters ADD COLUMN attempted bigint NOT NULL DEFAULT 0;
  UPDATE counters SET attempted = done + unchanged + dead;
  `,
  },
  {
    number: 11,
    name: 'priorities',
    sql: `
  -- Priorities that people gave to tasks of the job while it ran, as JSON.
  ALTER TABLE jobs ADD COLUMN priorities text;
  `,
  },
  {
    number: 12,
    name: 'query-role',
    sql: `
  -- Queries of people run as a role that may read the views, where this user may make one. Whoever makes the views
  -- anew has to grant it again.
  DO $$
  DECLARE
    role text := left(current_schema(), 57) || '_query';
  BEGIN
    -- Another database of the server may have made it, and at this moment.
    BEGIN
      EXECUTE format('CREATE ROLE %I NOLOGIN', role);
    EXCEPTION WHEN duplicate_object OR unique_violation THEN
      NULL;
    END;
    EXECUTE format('GRANT USAGE ON SCHEMA %I TO %I', current_schema(), role);
    EXECUTE format('GRANT SELECT ON seine_tasks, seine_records TO %I', role);
    EXECUTE format('GRANT %I TO CURRENT_USER', role);
  EXCEPTION WHEN OTHERS THEN
    NULL;
  END $$;
  `,
  },
  {
    number: 13,
    name: 'many-jobs',
    sql: `
  -- The jobs that a coordinator works on.
  CREATE TABLE coordinator_jobs (
    coordinator_id bigint NOT NULL REFERENCES coordinators (id) ON DELETE CASCADE,
    job_id bigint NOT NULL,
    PRIMARY KEY (coordinator_id, job_id)
  );
  CREATE INDEX coordinator_jobs_job ON coordinator_jobs (job_id);
  ALTER TABLE coordinators DROP COLUMN job_id;

  -- When the job last got the host: jobs that want the same host take turns.
  ALTER TABLE queues ADD COLUMN served_at bigint NOT NULL DEFAULT 0;
  CREATE INDEX queues_host ON queues (host_id);

  -- Few of many.
  CREATE INDEX jobs_running ON jobs (id) WHERE state = 'running';
  CREATE INDEX jobs_scheduled ON jobs (name, run) WHERE (spec -> 'schedule') IS NOT NULL;
  `,
  },
  {
    number: 14,
    name: 'host-bans',
    sql: `
  -- Whether a host refuses everything since it last answered.
  ALTER TABLE hosts ADD COLUMN ban json;
`,
  },
];
