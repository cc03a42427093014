import type { Migration } from '../../shared/migration.ts';
import { FIRST_TABLES } from './001-first-tables.ts';
import { RECORDS } from './002-records.ts';
import { SQL_VIEWS } from './003-sql-views.ts';

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
  {
    number: 15,
    name: 'open-jobs',
    sql: `
  -- Id of the API key that the job belongs to; none for the owner of the database.
  ALTER TABLE jobs ADD COLUMN owner text;
  -- Whether it waits for more URLs when all are finished.
  ALTER TABLE jobs ADD COLUMN keep_open boolean NOT NULL DEFAULT false;
`,
  },
  {
    number: 16,
    name: 'api-keys',
    sql: `
  -- hash: SHA-256 of the key. The key itself is never stored.
  CREATE TABLE api_keys (
    id text PRIMARY KEY,
    name text NOT NULL,
    hash text NOT NULL UNIQUE,
    scope text NOT NULL,
    limits text NOT NULL,
    created_at bigint NOT NULL,
    revoked_at bigint
  );
  CREATE UNIQUE INDEX api_keys_name ON api_keys (name) WHERE revoked_at IS NULL;

  -- By day of UTC since 1970.
  CREATE TABLE key_usage (
    key_id text NOT NULL,
    day integer NOT NULL,
    pages bigint NOT NULL,
    cost double precision NOT NULL,
    PRIMARY KEY (key_id, day)
  );
  `,
  },
  {
    number: 17,
    name: 'webhooks',
    sql: `
  -- owner: id of an API key, empty for the owner of the folder. job_id: of callbacks. wants_work: whether it is told of
  -- pages, records or progress. secret: NULL where that of the owner signs. former: signs too until its time is over.
  CREATE TABLE webhook_endpoints (
    id text PRIMARY KEY,
    owner text NOT NULL,
    job_id bigint,
    url text NOT NULL,
    events text NOT NULL,
    wants_work smallint NOT NULL,
    metadata text,
    secret text,
    former text,
    former_until bigint,
    created_at bigint NOT NULL,
    disabled_at bigint,
    disabled_reason text
  );
  CREATE INDEX webhook_endpoints_job ON webhook_endpoints (job_id) WHERE job_id IS NOT NULL;
  CREATE INDEX webhook_endpoints_owner ON webhook_endpoints (owner) WHERE job_id IS NULL;
  CREATE INDEX webhook_endpoints_work ON webhook_endpoints (job_id) WHERE wants_work = 1;
  CREATE TABLE webhook_secrets (owner text PRIMARY KEY, secret text NOT NULL, former text, former_until bigint);

  -- The outbox: written in the transaction of what it tells. next_at: NULL when it is over. once: written once for each
  -- endpoint. log: tries, as JSON.
  CREATE TABLE webhook_deliveries (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    message_id text NOT NULL,
    endpoint_id text NOT NULL,
    type text NOT NULL,
    job_id bigint,
    body text NOT NULL,
    once text,
    created_at bigint NOT NULL,
    next_at bigint,
    tries smallint NOT NULL,
    state text NOT NULL,
    log text NOT NULL,
    UNIQUE (endpoint_id, once)
  );
  CREATE INDEX webhook_deliveries_next ON webhook_deliveries (next_at, id) WHERE next_at IS NOT NULL;
  CREATE INDEX webhook_deliveries_endpoint ON webhook_deliveries (endpoint_id, id);
  CREATE INDEX webhook_deliveries_over ON webhook_deliveries (created_at) WHERE next_at IS NULL;
  `,
  },
  {
    number: 18,
    name: 'reached-hosts-and-throttled-tasks',
    sql: `
  -- When a host was last reached: one that no longer can be tells of an outage.
  ALTER TABLE hosts ADD COLUMN reached_at bigint;

  -- How often a host asked for fewer requests instead of answering for the task.
  ALTER TABLE tasks ADD COLUMN throttles integer NOT NULL DEFAULT 0;
`,
  },
  {
    number: 19,
    name: 'record-rows',
    sql: `
  -- Records with the columns of the row that led to their page, and when that page was found to be gone. Columns are added
  -- at the end, so that the rights of those who may read the view stay.
  CREATE OR REPLACE VIEW seine_records AS
    SELECT collections.name AS job, records.key, tasks.url,
      coalesce(attempts.route, pages.route, tasks.route) AS route, records.data, records.hash,
      seine_time(records.created_at) AS created_at,
      seine_time(records.updated_at) AS updated_at,
      seine_time(records.checked_at) AS checked_at,
      CASE WHEN tasks.code = 'not-found' AND attempts.http_status IN (404, 410)
        THEN seine_time(attempts.started_at) END AS gone_at,
      tasks.meta
    FROM records JOIN collections ON collections.id = records.collection_id JOIN tasks ON tasks.id = records.task_id
      LEFT JOIN attempts ON attempts.id = tasks.attempt_id LEFT JOIN attempts AS pages ON pages.id = attempts.page_id;
  `,
  },
  {
    number: 20,
    name: 'wanted-hosts',
    sql: `
  -- Jobs that want a host are looked for at every plan: finished ones must not cost anything.
  DROP INDEX queues_host;
  CREATE INDEX queues_wanted ON queues (host_id) WHERE ready > 0;
  `,
  },
  {
    number: 21,
    name: 'rollups',
    sql: `
  -- What happened within a stretch of time: step seconds from at on, 0 for all time. host: empty for the whole job.
  -- b0 to b14: latencies, see LATENCY_BOUNDS_SECONDS.
  CREATE TABLE rollups (
    job_id bigint NOT NULL,
    step integer NOT NULL,
    host text COLLATE "C" NOT NULL,
    at bigint NOT NULL,
    shard integer NOT NULL,
    latency_max_ms bigint NOT NULL,
    succeeded bigint NOT NULL,
    failed bigint NOT NULL,
    skipped bigint NOT NULL,
    requests bigint NOT NULL,
    bytes bigint NOT NULL,
    latency_sum_ms bigint NOT NULL,
    b0 bigint NOT NULL,
    b1 bigint NOT NULL,
    b2 bigint NOT NULL,
    b3 bigint NOT NULL,
    b4 bigint NOT NULL,
    b5 bigint NOT NULL,
    b6 bigint NOT NULL,
    b7 bigint NOT NULL,
    b8 bigint NOT NULL,
    b9 bigint NOT NULL,
    b10 bigint NOT NULL,
    b11 bigint NOT NULL,
    b12 bigint NOT NULL,
    b13 bigint NOT NULL,
    b14 bigint NOT NULL,
    PRIMARY KEY (job_id, step, host, at, shard)
  );

  -- The same for what is counted by name: failures, costs.
  CREATE TABLE rollup_counts (
    job_id bigint NOT NULL,
    step integer NOT NULL,
    host text COLLATE "C" NOT NULL,
    at bigint NOT NULL,
    shard integer NOT NULL,
    name text COLLATE "C" NOT NULL,
    amount double precision NOT NULL,
    PRIMARY KEY (job_id, step, host, at, shard, name)
  );
  `,
  },
  {
    number: 22,
    name: 'record-changes',
    sql: `
  -- How many records each pass created, changed and found gone. field: empty for whole records.
  CREATE TABLE record_changes (
    job_id bigint NOT NULL,
    pass integer NOT NULL,
    kind text NOT NULL,
    field text NOT NULL,
    count bigint NOT NULL,
    PRIMARY KEY (job_id, pass, kind, field)
  );
  `,
  },
  {
    number: 23,
    name: 'failed-attempts-of-tasks',
    sql: `
  -- What was tried before a task was finished. Attempts that brought the page are left out: they are most of them, and the
  -- task leads to the last one.
  CREATE INDEX attempts_troubled ON attempts (task_id) WHERE outcome IN ('failed', 'lost', 'redirected');
  `,
  },
  {
    number: 24,
    name: 'slot-times',
    sql: `
  -- Where the time of slots went, as JSON, for each run of a coordinator.
  CREATE TABLE slot_times (
    job_id bigint NOT NULL,
    run text NOT NULL,
    account text NOT NULL,
    saved_at bigint NOT NULL,
    PRIMARY KEY (job_id, run)
  );
  `,
  },
  {
    number: 25,
    name: 'costs',
    sql: `
  -- The bill of a job: one row for each item, in dollars at the prices of the time.
  CREATE TABLE costs (
    job_id bigint NOT NULL,
    item text NOT NULL,
    quantity double precision NOT NULL,
    dollars double precision NOT NULL,
    PRIMARY KEY (job_id, item)
  );
  -- The forecast that it was started with, as JSON.
  ALTER TABLE jobs ADD COLUMN quote text;
  `,
  },
  {
    number: 26,
    name: 'api-requests',
    sql: `
  -- Requests with an Idempotency-Key. id: the same for all that carry the key. until: in flight before. reply: encrypted with
  -- the key that the client sent, of which only a hash is kept here.
  CREATE TABLE api_requests (
    key TEXT PRIMARY KEY,
    id TEXT NOT NULL,
    holder TEXT NOT NULL,
    until bigint NOT NULL,
    payload TEXT,
    reply TEXT,
    created_at bigint NOT NULL
  );
  CREATE INDEX api_requests_created ON api_requests (created_at);

  -- The request that made the job, so that it makes no second one. counts_pages: its pages count against the limits of its
  -- key when they are fetched; else they did when they were accepted.
  ALTER TABLE jobs ADD COLUMN request_id TEXT;
  ALTER TABLE jobs ADD COLUMN counts_pages boolean NOT NULL DEFAULT false;
  CREATE UNIQUE INDEX jobs_request ON jobs (request_id) WHERE request_id IS NOT NULL;
  `,
  },
  {
    number: 27,
    name: 'removed-jobs',
    sql: `
  -- Since when a job is being removed; -1: it is gone, and the row only keeps its number from being given again.
  ALTER TABLE jobs ADD COLUMN removed_at bigint;
  CREATE INDEX jobs_removed ON jobs (id) WHERE removed_at IS NOT NULL;
  `,
  },
  {
    number: 28,
    name: 'host-profiles',
    sql: `
  -- What calibration found, with its evidence. Apart from hosts, whose rows are short and often written.
  CREATE TABLE host_profiles (host text COLLATE "C" PRIMARY KEY, profile json NOT NULL);
  `,
  },
  {
    number: 29,
    name: 'alerts',
    sql: `
  -- subject: the name of a job, or empty. An alert is firing until it is resolved, and fires once.
  CREATE TABLE alerts (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind text NOT NULL,
    subject text NOT NULL,
    text text NOT NULL,
    fired_at bigint NOT NULL,
    resolved_at bigint
  );
  CREATE UNIQUE INDEX alerts_firing ON alerts (kind, subject) WHERE resolved_at IS NULL;
  CREATE TABLE alert_silences (kind text NOT NULL, subject text NOT NULL, until bigint NOT NULL, PRIMARY KEY (kind, subject));
  `,
  },
  { number: 30, name: 'sql-views', sql: SQL_VIEWS },
  {
    number: 31,
    name: 'workers',
    sql: `
  -- Processes that work on batches, with what they said last; is_draining: 1 or 0. The rows over time are sums of samples.
  CREATE TABLE workers (
    worker text COLLATE "C" PRIMARY KEY,
    kind text NOT NULL,
    software text NOT NULL,
    threads bigint NOT NULL,
    slots bigint NOT NULL,
    is_draining bigint NOT NULL,
    cpu double precision NOT NULL,
    memory_bytes bigint NOT NULL,
    batches bigint NOT NULL,
    batches_done bigint NOT NULL,
    tasks_done bigint NOT NULL,
    first_seen_at bigint NOT NULL,
    last_seen_at bigint NOT NULL
  );
  CREATE INDEX workers_seen ON workers (last_seen_at);
  CREATE TABLE worker_rollups (
    worker text COLLATE "C" NOT NULL,
    step bigint NOT NULL,
    at bigint NOT NULL,
    samples bigint NOT NULL,
    cpu_sum double precision NOT NULL,
    cpu_max double precision NOT NULL,
    memory_sum bigint NOT NULL,
    memory_max bigint NOT NULL,
    batches_sum bigint NOT NULL,
    slots bigint NOT NULL,
    batches_done bigint NOT NULL,
    tasks_done bigint NOT NULL,
    PRIMARY KEY (worker, step, at)
  );
  CREATE INDEX worker_rollups_at ON worker_rollups (step, at);
  `,
  },
  {
    number: 32,
    name: 'host-log',
    sql: `
  -- What each host was asked, as a chain of entries: see core/host-log. The host has the number and the hash of the last.
  ALTER TABLE hosts ADD COLUMN log_number bigint NOT NULL DEFAULT 0;
  ALTER TABLE hosts ADD COLUMN log_hash text;
  CREATE TABLE host_log (
    host_id bigint NOT NULL,
    number bigint NOT NULL,
    hash text NOT NULL,
    entry text NOT NULL,
    PRIMARY KEY (host_id, number)
  );
  `,
  },
  {
    number: 33,
    name: 'archived-bytes',
    // Of the bytes in the archive, where a Content-Encoding makes them others than the page's.
    sql: 'ALTER TABLE attempts ADD COLUMN archive_sha256 bytea',
  },
  {
    number: 34,
    name: 'blank-pages',
    sql: 'ALTER TABLE quality ADD COLUMN blank bigint NOT NULL DEFAULT 0',
  },
  {
    number: 35,
    name: 'visit-histories',
    // How often the page changed between visits, as JSON, where a job adapts its intervals: see core/revisits.
    sql: 'ALTER TABLE tasks ADD COLUMN visits text',
  },
  {
    number: 36,
    name: 'attempt-details',
    // Of attempts that failed: the task has only that of its last one.
    sql: `
  ALTER TABLE attempts ADD COLUMN detail text;
  CREATE OR REPLACE VIEW seine_attempts AS
    SELECT jobs.name AS job, jobs.run, tasks.url, seine_timestamp(attempts.started_at) AS started_at,
      attempts.duration_ms, attempts.http_status, attempts.outcome, attempts.code AS failure_code,
      attempts.wire_bytes AS bytes, attempts.redirect_to, batches.worker, attempts.batch_id, attempts.task_id,
      attempts.detail
    FROM attempts JOIN jobs ON jobs.id = attempts.job_id JOIN tasks ON tasks.id = attempts.task_id
      LEFT JOIN batches ON batches.id = attempts.batch_id;
  COMMENT ON COLUMN seine_attempts.detail IS 'Why it failed; for errors in the code of a job, with file and line.';
  `,
  },
  {
    number: 37,
    name: 'paced-hosts',
    sql: `
  -- Where paced_until is next_at, the host waits for nothing but the gap of the job paced_by.
  ALTER TABLE hosts ADD COLUMN paced_until bigint;
  ALTER TABLE hosts ADD COLUMN paced_by bigint;
  `,
  },
  {
    number: 38,
    name: 'sink-limits',
    // Values come from pages: one that is too long for an index, or that a trigger refuses, ended every run that met it.
    sql: `
  CREATE OR REPLACE FUNCTION seine_sink(job bigint, target text, statement text, lines text[]) RETURNS integer LANGUAGE plpgsql AS $$
  DECLARE
    line text;
    refused integer := 0;
  BEGIN
    BEGIN
      EXECUTE statement USING (SELECT jsonb_agg(each::jsonb) FROM unnest(lines) AS each);
      RETURN 0;
    EXCEPTION WHEN data_exception OR integrity_constraint_violation OR program_limit_exceeded OR raise_exception
      OR with_check_option_violation THEN
      NULL;
    END;
    FOREACH line IN ARRAY lines LOOP
      BEGIN
        EXECUTE statement USING jsonb_build_array(line::jsonb);
      EXCEPTION WHEN data_exception OR integrity_constraint_violation OR program_limit_exceeded OR raise_exception
        OR with_check_option_violation THEN
        refused := refused + 1;
        INSERT INTO sink_rejects (job_id, row_hash, row_text, reason, at) VALUES (job, md5(line), line, SQLERRM, now())
        ON CONFLICT (job_id, row_hash) DO UPDATE SET reason = excluded.reason, at = excluded.at;
      END;
    END LOOP;
    RETURN refused;
  END $$;
  `,
  },
  {
    number: 39,
    name: 'key-requests',
    sql: `
  ALTER TABLE key_usage ADD COLUMN requests bigint NOT NULL DEFAULT 0;
  ALTER TABLE key_usage ADD COLUMN browser_seconds double precision NOT NULL DEFAULT 0;
  `,
  },
];
