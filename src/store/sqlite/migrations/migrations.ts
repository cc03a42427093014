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
  {
    number: 16,
    name: 'open-jobs',
    sql: `
  -- Id of the API key that the job belongs to; none for the owner of the folder.
  ALTER TABLE jobs ADD COLUMN owner TEXT;
  -- Whether it waits for more URLs when all are finished.
  ALTER TABLE jobs ADD COLUMN keep_open INTEGER NOT NULL DEFAULT 0;
  `,
  },
  {
    number: 17,
    name: 'api-keys',
    sql: `
  -- hash: SHA-256 of the key. The key itself is never stored.
  CREATE TABLE api_keys (
    id TEXT PRIMARY KEY,
    name TEXT NOT NULL,
    hash TEXT NOT NULL UNIQUE,
    scope TEXT NOT NULL,
    limits TEXT NOT NULL,
    created_at INTEGER NOT NULL,
    revoked_at INTEGER
  ) WITHOUT ROWID;
  CREATE UNIQUE INDEX api_keys_name ON api_keys (name) WHERE revoked_at IS NULL;

  -- By day of UTC since 1970.
  CREATE TABLE key_usage (
    key_id TEXT NOT NULL,
    day INTEGER NOT NULL,
    pages INTEGER NOT NULL,
    cost REAL NOT NULL,
    PRIMARY KEY (key_id, day)
  ) WITHOUT ROWID;
  `,
  },
  {
    number: 18,
    name: 'webhooks',
    sql: `
  -- owner: id of an API key, empty for the owner of the folder. job_id: of callbacks. wants_work: whether it is told of
  -- pages, records or progress. secret: NULL where that of the owner signs. former: signs too until its time is over.
  CREATE TABLE webhook_endpoints (
    id TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    job_id INTEGER,
    url TEXT NOT NULL,
    events TEXT NOT NULL,
    wants_work INTEGER NOT NULL,
    metadata TEXT,
    secret TEXT,
    former TEXT,
    former_until INTEGER,
    created_at INTEGER NOT NULL,
    disabled_at INTEGER,
    disabled_reason TEXT
  );
  CREATE INDEX webhook_endpoints_job ON webhook_endpoints (job_id) WHERE job_id IS NOT NULL;
  CREATE INDEX webhook_endpoints_owner ON webhook_endpoints (owner) WHERE job_id IS NULL;
  CREATE INDEX webhook_endpoints_work ON webhook_endpoints (job_id) WHERE wants_work = 1;
  CREATE TABLE webhook_secrets (owner TEXT PRIMARY KEY, secret TEXT NOT NULL, former TEXT, former_until INTEGER);

  -- The outbox: written in the transaction of what it tells. next_at: NULL when it is over. once: written once for each
  -- endpoint. log: tries, as JSON.
  CREATE TABLE webhook_deliveries (
    id INTEGER PRIMARY KEY,
    message_id TEXT NOT NULL,
    endpoint_id TEXT NOT NULL,
    type TEXT NOT NULL,
    job_id INTEGER,
    body TEXT NOT NULL,
    once TEXT,
    created_at INTEGER NOT NULL,
    next_at INTEGER,
    tries INTEGER NOT NULL,
    state TEXT NOT NULL,
    log TEXT NOT NULL,
    UNIQUE (endpoint_id, once)
  );
  CREATE INDEX webhook_deliveries_next ON webhook_deliveries (next_at, id) WHERE next_at IS NOT NULL;
  CREATE INDEX webhook_deliveries_endpoint ON webhook_deliveries (endpoint_id, id);
  CREATE INDEX webhook_deliveries_over ON webhook_deliveries (created_at) WHERE next_at IS NULL;
  `,
  },
  {
    number: 19,
    name: 'reached-hosts-and-throttled-tasks',
    sql: `
  -- When a host was last reached: one that no longer can be tells of an outage.
  ALTER TABLE hosts ADD COLUMN reached_at INTEGER;

  -- How often a host asked for fewer requests instead of answering for the task.
  ALTER TABLE tasks ADD COLUMN throttles INTEGER NOT NULL DEFAULT 0;
  `,
  },
  {
    number: 20,
    name: 'record-rows',
    sql: `
  -- Records with the columns of the row that led to their page, and when that page was found to be gone.
  DROP VIEW seine_records;
  CREATE VIEW seine_records AS
    SELECT collections.name AS job, records.key, tasks.url,
      coalesce(attempts.route, pages.route, tasks.route) AS route, records.data, records.hash,
      strftime('%Y-%m-%dT%H:%M:%fZ', records.created_at / 1000.0, 'unixepoch') AS created_at,
      strftime('%Y-%m-%dT%H:%M:%fZ', records.updated_at / 1000.0, 'unixepoch') AS updated_at,
      strftime('%Y-%m-%dT%H:%M:%fZ', records.checked_at / 1000.0, 'unixepoch') AS checked_at,
      CASE WHEN tasks.code = 'not-found' AND attempts.http_status IN (404, 410)
        THEN strftime('%Y-%m-%dT%H:%M:%fZ', attempts.started_at / 1000.0, 'unixepoch') END AS gone_at,
      tasks.meta
    FROM records JOIN collections ON collections.id = records.collection_id JOIN tasks ON tasks.id = records.task_id
      LEFT JOIN attempts ON attempts.id = tasks.attempt_id LEFT JOIN attempts AS pages ON pages.id = attempts.page_id;
  `,
  },
  {
    number: 21,
    name: 'wanted-hosts',
    sql: `
  -- Jobs that want a host are looked for at every plan: finished ones must not cost anything.
  DROP INDEX queues_host;
  CREATE INDEX queues_wanted ON queues (host_id) WHERE ready > 0;
  `,
  },
  {
    number: 22,
    name: 'rollups',
    sql: `
  -- What happened within a stretch of time: step seconds from at on, 0 for all time. host: empty for the whole job.
  -- b0 to b14: latencies, see LATENCY_BOUNDS_SECONDS.
  CREATE TABLE rollups (
    job_id INTEGER NOT NULL,
    step INTEGER NOT NULL,
    host TEXT NOT NULL,
    at INTEGER NOT NULL,
    shard INTEGER NOT NULL,
    latency_max_ms INTEGER NOT NULL,
    succeeded INTEGER NOT NULL,
    failed INTEGER NOT NULL,
    skipped INTEGER NOT NULL,
    requests INTEGER NOT NULL,
    bytes INTEGER NOT NULL,
    latency_sum_ms INTEGER NOT NULL,
    b0 INTEGER NOT NULL,
    b1 INTEGER NOT NULL,
    b2 INTEGER NOT NULL,
    b3 INTEGER NOT NULL,
    b4 INTEGER NOT NULL,
    b5 INTEGER NOT NULL,
    b6 INTEGER NOT NULL,
    b7 INTEGER NOT NULL,
    b8 INTEGER NOT NULL,
    b9 INTEGER NOT NULL,
    b10 INTEGER NOT NULL,
    b11 INTEGER NOT NULL,
    b12 INTEGER NOT NULL,
    b13 INTEGER NOT NULL,
    b14 INTEGER NOT NULL,
    PRIMARY KEY (job_id, step, host, at, shard)
  ) WITHOUT ROWID;

  -- The same for what is counted by name: failures, costs.
  CREATE TABLE rollup_counts (
    job_id INTEGER NOT NULL,
    step INTEGER NOT NULL,
    host TEXT NOT NULL,
    at INTEGER NOT NULL,
    shard INTEGER NOT NULL,
    name TEXT NOT NULL,
    amount REAL NOT NULL,
    PRIMARY KEY (job_id, step, host, at, shard, name)
  ) WITHOUT ROWID;
  `,
  },
  {
    number: 23,
    name: 'record-changes',
    sql: `
  -- How many records each pass created, changed and found gone. field: empty for whole records.
  CREATE TABLE record_changes (
    job_id INTEGER NOT NULL,
    pass INTEGER NOT NULL,
    kind TEXT NOT NULL,
    field TEXT NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (job_id, pass, kind, field)
  ) WITHOUT ROWID;
  `,
  },
  {
    number: 24,
    name: 'failed-attempts-of-tasks',
    sql: `
  -- What was tried before a task was finished. Attempts that brought the page are left out: they are most of them, and the
  -- task leads to the last one.
  CREATE INDEX attempts_troubled ON attempts (task_id) WHERE outcome IN ('failed', 'lost', 'redirected');
  `,
  },
  {
    number: 25,
    name: 'slot-times',
    sql: `
  -- Where the time of slots went, as JSON, for each run of a coordinator.
  CREATE TABLE slot_times (
    job_id INTEGER NOT NULL,
    run TEXT NOT NULL,
    account TEXT NOT NULL,
    saved_at INTEGER NOT NULL,
    PRIMARY KEY (job_id, run)
  ) WITHOUT ROWID;
  `,
  },
  {
    number: 26,
    name: 'costs',
    sql: `
  -- The bill of a job: one row for each item, in dollars at the prices of the time.
  CREATE TABLE costs (
    job_id INTEGER NOT NULL,
    item TEXT NOT NULL,
    quantity REAL NOT NULL,
    dollars REAL NOT NULL,
    PRIMARY KEY (job_id, item)
  ) WITHOUT ROWID;
  -- The forecast that it was started with, as JSON.
  ALTER TABLE jobs ADD COLUMN quote TEXT;
  `,
  },
  {
    number: 27,
    name: 'api-requests',
    sql: `
  -- Requests with an Idempotency-Key. id: the same for all that carry the key. until: in flight before. reply: encrypted with
  -- the key that the client sent, of which only a hash is kept here.
  CREATE TABLE api_requests (
    key TEXT PRIMARY KEY,
    id TEXT NOT NULL,
    holder TEXT NOT NULL,
    until INTEGER NOT NULL,
    payload TEXT,
    reply TEXT,
    created_at INTEGER NOT NULL
  );
  CREATE INDEX api_requests_created ON api_requests (created_at);

  -- The request that made the job, so that it makes no second one. counts_pages: its pages count against the limits of its
  -- key when they are fetched; else they did when they were accepted.
  ALTER TABLE jobs ADD COLUMN request_id TEXT;
  ALTER TABLE jobs ADD COLUMN counts_pages INTEGER NOT NULL DEFAULT 0;
  CREATE UNIQUE INDEX jobs_request ON jobs (request_id) WHERE request_id IS NOT NULL;
  `,
  },
  {
    number: 28,
    name: 'removed-jobs',
    sql: `
  -- Since when a job is being removed; -1: it is gone, and the row only keeps its number from being given again.
  ALTER TABLE jobs ADD COLUMN removed_at INTEGER;
  CREATE INDEX jobs_removed ON jobs (id) WHERE removed_at IS NOT NULL;
  `,
  },
  {
    number: 29,
    name: 'host-profiles',
    sql: `
  -- What calibration found, with its evidence. Apart from hosts, whose rows are short and often written.
  CREATE TABLE host_profiles (host TEXT PRIMARY KEY, profile TEXT NOT NULL) WITHOUT ROWID;
  `,
  },
  {
    number: 30,
    name: 'alerts',
    sql: `
  -- subject: the name of a job, or empty. An alert is firing until it is resolved, and fires once.
  CREATE TABLE alerts (
    id INTEGER PRIMARY KEY,
    kind TEXT NOT NULL,
    subject TEXT NOT NULL,
    text TEXT NOT NULL,
    fired_at INTEGER NOT NULL,
    resolved_at INTEGER
  );
  CREATE UNIQUE INDEX alerts_firing ON alerts (kind, subject) WHERE resolved_at IS NULL;
  CREATE TABLE alert_silences (kind TEXT NOT NULL, subject TEXT NOT NULL, until INTEGER NOT NULL, PRIMARY KEY (kind, subject));
  `,
  },
  {
    number: 31,
    name: 'workers',
    sql: `
  -- Processes that work on batches, with what they said last; is_draining: 1 or 0. The rows over time are sums of samples.
  CREATE TABLE workers (
    worker TEXT PRIMARY KEY,
    kind TEXT NOT NULL,
    software TEXT NOT NULL,
    threads INTEGER NOT NULL,
    slots INTEGER NOT NULL,
    is_draining INTEGER NOT NULL,
    cpu REAL NOT NULL,
    memory_bytes INTEGER NOT NULL,
    batches INTEGER NOT NULL,
    batches_done INTEGER NOT NULL,
    tasks_done INTEGER NOT NULL,
    first_seen_at INTEGER NOT NULL,
    last_seen_at INTEGER NOT NULL
  );
  CREATE INDEX workers_seen ON workers (last_seen_at);
  CREATE TABLE worker_rollups (
    worker TEXT NOT NULL,
    step INTEGER NOT NULL,
    at INTEGER NOT NULL,
    samples INTEGER NOT NULL,
    cpu_sum REAL NOT NULL,
    cpu_max REAL NOT NULL,
    memory_sum INTEGER NOT NULL,
    memory_max INTEGER NOT NULL,
    batches_sum INTEGER NOT NULL,
    slots INTEGER NOT NULL,
    batches_done INTEGER NOT NULL,
    tasks_done INTEGER NOT NULL,
    PRIMARY KEY (worker, step, at)
  ) WITHOUT ROWID;
  CREATE INDEX worker_rollups_at ON worker_rollups (step, at);
  `,
  },
  {
    number: 32,
    name: 'host-log',
    sql: `
  -- What each host was asked, as a chain of entries: see core/host-log. The host has the number and the hash of the last.
  ALTER TABLE hosts ADD COLUMN log_number INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE hosts ADD COLUMN log_hash TEXT;
  CREATE TABLE host_log (
    host_id INTEGER NOT NULL,
    number INTEGER NOT NULL,
    hash TEXT NOT NULL,
    entry TEXT NOT NULL,
    PRIMARY KEY (host_id, number)
  ) WITHOUT ROWID;
  `,
  },
  {
    number: 33,
    name: 'archived-bytes',
    // Of the bytes in the archive, where a Content-Encoding makes them others than the page's.
    sql: 'ALTER TABLE attempts ADD COLUMN archive_sha256 BLOB',
  },
  {
    number: 34,
    name: 'blank-pages',
    sql: 'ALTER TABLE quality ADD COLUMN blank INTEGER NOT NULL DEFAULT 0',
  },
  {
    number: 35,
    name: 'visit-histories',
    // How often the page changed between visits, as JSON, where a job adapts its intervals: see core/revisits.
    sql: 'ALTER TABLE tasks ADD COLUMN visits TEXT',
  },
  {
    number: 36,
    name: 'attempt-details',
    // Of attempts that failed: the task has only that of its last one.
    sql: 'ALTER TABLE attempts ADD COLUMN detail TEXT',
  },
  {
    number: 37,
    name: 'paced-hosts',
    sql: `
  -- Where paced_until is next_at, the host waits for nothing but the gap of the job paced_by.
  ALTER TABLE hosts ADD COLUMN paced_until INTEGER;
  ALTER TABLE hosts ADD COLUMN paced_by INTEGER;
  `,
  },
  {
    number: 38,
    name: 'key-requests',
    sql: `
  ALTER TABLE key_usage ADD COLUMN requests INTEGER NOT NULL DEFAULT 0;
  ALTER TABLE key_usage ADD COLUMN browser_seconds REAL NOT NULL DEFAULT 0;
  `,
  },
  {
    number: 39,
    name: 'failed-attempts-by-equality',
    sql: `
  -- For a list of three, SQLite makes a table of it for every attempt that is written: 2.0 instead of 0.8 µs.
  DROP INDEX attempts_troubled;
  CREATE INDEX attempts_troubled ON attempts (task_id)
    WHERE outcome = 'failed' OR outcome = 'lost' OR outcome = 'redirected';
  `,
  },
];
