/**
 * The tables of an empty database after all migrations, written by scripts/build/write-new-tables.ts. Running the
 * migrations one by one takes ten times as long, because SQLite reads all tables again after each change of one.
 */
export const NEW_TABLES = `
CREATE TABLE jobs (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    run INTEGER NOT NULL,
    spec TEXT NOT NULL,
    spec_hash TEXT NOT NULL,
    bundle TEXT,
    seed INTEGER NOT NULL,
    first_task_id INTEGER,
    state TEXT NOT NULL,
    requested_state TEXT NOT NULL,
    reason TEXT,
    created_at INTEGER NOT NULL,
    ended_at INTEGER,
    worked_ms INTEGER NOT NULL DEFAULT 0, file TEXT, priorities TEXT, owner TEXT, keep_open INTEGER NOT NULL DEFAULT 0, quote TEXT, request_id TEXT, counts_pages INTEGER NOT NULL DEFAULT 0, removed_at INTEGER,
    UNIQUE (name, run)
  );
CREATE TABLE counters (
    job_id INTEGER PRIMARY KEY,
    accepted INTEGER NOT NULL DEFAULT 0,
    done INTEGER NOT NULL DEFAULT 0,
    unchanged INTEGER NOT NULL DEFAULT 0,
    skipped INTEGER NOT NULL DEFAULT 0,
    dead INTEGER NOT NULL DEFAULT 0,
    pending INTEGER NOT NULL DEFAULT 0,
    leased INTEGER NOT NULL DEFAULT 0,
    records INTEGER NOT NULL DEFAULT 0,
    bytes INTEGER NOT NULL DEFAULT 0,
    requests INTEGER NOT NULL DEFAULT 0,
    batches INTEGER NOT NULL DEFAULT 0,
    retries INTEGER NOT NULL DEFAULT 0,
    duplicates INTEGER NOT NULL DEFAULT 0,
    dropped INTEGER NOT NULL DEFAULT 0,
    rejected INTEGER NOT NULL DEFAULT 0
  , attempted INTEGER NOT NULL DEFAULT 0);
CREATE TABLE tallies (
    job_id INTEGER NOT NULL,
    state TEXT NOT NULL,
    code TEXT NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (job_id, state, code)
  ) WITHOUT ROWID;
CREATE TABLE sources (
    job_id INTEGER NOT NULL,
    source INTEGER NOT NULL,
    position TEXT,
    done INTEGER NOT NULL,
    rows INTEGER NOT NULL,
    rejected INTEGER NOT NULL,
    PRIMARY KEY (job_id, source)
  ) WITHOUT ROWID;
CREATE TABLE hosts (
    id INTEGER PRIMARY KEY,
    host TEXT NOT NULL UNIQUE,
    next_at INTEGER NOT NULL DEFAULT 0,
    crawl_delay_ms INTEGER,
    failures_in_row INTEGER NOT NULL DEFAULT 0,
    rests INTEGER NOT NULL DEFAULT 0,
    requests INTEGER NOT NULL DEFAULT 0
  , pace TEXT, smallest_gap_ms REAL, last_error TEXT, last_sent_at REAL, ban TEXT, reached_at INTEGER, log_number INTEGER NOT NULL DEFAULT 0, log_hash TEXT, paced_until INTEGER, paced_by INTEGER);
CREATE TABLE queues (
    job_id INTEGER NOT NULL,
    host_id INTEGER NOT NULL,
    ready INTEGER NOT NULL DEFAULT 0,
    next_at INTEGER NOT NULL DEFAULT 0, served_at INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (job_id, host_id)
  ) WITHOUT ROWID;
CREATE INDEX queues_due ON queues (job_id, next_at) WHERE ready > 0;
CREATE TABLE robots (
    origin TEXT PRIMARY KEY,
    host TEXT NOT NULL,
    text TEXT,
    fetched_at INTEGER NOT NULL,
    failures INTEGER NOT NULL,
    detail TEXT,
    crawl_delay_ms INTEGER
  , redirect_to TEXT);
CREATE TABLE tasks (
    id INTEGER PRIMARY KEY,
    job_id INTEGER NOT NULL,
    host_id INTEGER NOT NULL,
    state INTEGER NOT NULL,
    priority INTEGER NOT NULL,
    depth INTEGER NOT NULL,
    attempts INTEGER NOT NULL DEFAULT 0,
    losses INTEGER NOT NULL DEFAULT 0,
    hops INTEGER NOT NULL DEFAULT 0,
    batch_id INTEGER NOT NULL,
    attempt_id INTEGER NOT NULL,
    due_at INTEGER,
    code TEXT,
    detail TEXT,
    route TEXT,
    at_url TEXT,
    meta TEXT,
    url TEXT NOT NULL
  , modified_at INTEGER, home_host_id INTEGER, referrer TEXT, crashes INTEGER NOT NULL DEFAULT 0, throttles INTEGER NOT NULL DEFAULT 0, visits TEXT);
CREATE INDEX tasks_ready ON tasks (job_id, host_id, priority DESC, id) WHERE state = 2;
CREATE INDEX tasks_waiting ON tasks (job_id, due_at) WHERE state = 8;
CREATE INDEX tasks_dead ON tasks (job_id, code, host_id) WHERE state = 7;
CREATE TABLE seen (fingerprint INTEGER PRIMARY KEY, task_id INTEGER NOT NULL);
CREATE TABLE templates (
    job_id INTEGER NOT NULL,
    template TEXT NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (job_id, template)
  ) WITHOUT ROWID;
CREATE TABLE batches (
    id INTEGER PRIMARY KEY,
    job_id INTEGER NOT NULL,
    state TEXT NOT NULL,
    size INTEGER NOT NULL,
    unsettled INTEGER NOT NULL,
    task_ids TEXT,
    leased_at INTEGER NOT NULL,
    lease_until INTEGER NOT NULL,
    closed_at INTEGER,
    worker TEXT,
    done INTEGER NOT NULL DEFAULT 0,
    failed INTEGER NOT NULL DEFAULT 0,
    requests INTEGER NOT NULL DEFAULT 0,
    bytes INTEGER NOT NULL DEFAULT 0,
    duration_ms INTEGER NOT NULL DEFAULT 0,
    note TEXT
  , reply_to TEXT, permits TEXT);
CREATE INDEX batches_open ON batches (job_id, lease_until) WHERE state = 'open';
CREATE TABLE archives (
    id INTEGER PRIMARY KEY,
    job_id INTEGER NOT NULL,
    batch_id INTEGER NOT NULL,
    key TEXT NOT NULL,
    bytes INTEGER NOT NULL
  );
CREATE INDEX archives_key ON archives (job_id, key);
CREATE TABLE attempts (
    id INTEGER PRIMARY KEY,
    job_id INTEGER NOT NULL,
    task_id INTEGER NOT NULL,
    batch_id INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    duration_ms INTEGER NOT NULL,
    http_status INTEGER,
    outcome TEXT NOT NULL,
    code TEXT,
    wire_bytes INTEGER NOT NULL,
    bytes INTEGER,
    sha256 BLOB,
    content_type TEXT,
    archive_id INTEGER,
    archive_offset INTEGER,
    archive_length INTEGER,
    etag TEXT,
    last_modified TEXT,
    redirect_to TEXT,
    route TEXT
  , page_id INTEGER, at_url TEXT, robots_tags TEXT, via TEXT, shots TEXT, archive_sha256 BLOB, detail TEXT);
CREATE TABLE collections (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE passes (
    job_id INTEGER PRIMARY KEY,
    collection_id INTEGER NOT NULL,
    pass INTEGER NOT NULL,
    started_at INTEGER NOT NULL,
    -- The newest task when the pass began: later ones are not of an earlier pass.
    last_task_id INTEGER NOT NULL DEFAULT 0,
    -- Counters when the pass began, as JSON.
    start TEXT
  );
CREATE INDEX passes_collection ON passes (collection_id);
CREATE TABLE media (
    attempt_id INTEGER PRIMARY KEY,
    job_id INTEGER NOT NULL,
    task_id INTEGER NOT NULL,
    md5 BLOB NOT NULL,
    key TEXT NOT NULL,
    member TEXT
  );
CREATE INDEX media_task ON media (task_id);
CREATE TABLE shown (
    page_task_id INTEGER NOT NULL,
    media_task_id INTEGER NOT NULL,
    PRIMARY KEY (page_task_id, media_task_id)
  ) WITHOUT ROWID;
CREATE INDEX shown_media ON shown (media_task_id);
CREATE TABLE quality (
    job_id INTEGER NOT NULL,
    pass INTEGER NOT NULL,
    route TEXT NOT NULL,
    records INTEGER NOT NULL,
    invalid INTEGER NOT NULL, blank INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (job_id, pass, route)
  ) WITHOUT ROWID;
CREATE TABLE quality_fields (
    job_id INTEGER NOT NULL,
    pass INTEGER NOT NULL,
    route TEXT NOT NULL,
    field TEXT NOT NULL,
    filled INTEGER NOT NULL,
    PRIMARY KEY (job_id, pass, route, field)
  ) WITHOUT ROWID;
CREATE TABLE "records" (
    id INTEGER PRIMARY KEY,
    collection_id INTEGER NOT NULL,
    job_id INTEGER NOT NULL,
    task_id INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    checked_at INTEGER NOT NULL,
    fetched_at INTEGER NOT NULL,
    hash TEXT NOT NULL,
    key TEXT NOT NULL,
    data TEXT NOT NULL,
    UNIQUE (collection_id, key)
  );
CREATE INDEX records_task ON records (task_id);
CREATE TABLE record_versions (
    id INTEGER PRIMARY KEY,
    collection_id INTEGER NOT NULL,
    task_id INTEGER NOT NULL,
    from_at INTEGER NOT NULL,
    until_at INTEGER NOT NULL,
    hash TEXT NOT NULL,
    key TEXT NOT NULL,
    data TEXT NOT NULL
  );
CREATE INDEX record_versions_key ON record_versions (collection_id, key);
CREATE VIEW seine_tasks AS
    SELECT jobs.name AS job, jobs.run, tasks.url, hosts.host,
      CASE tasks.state WHEN 3 THEN 'leased' WHEN 4 THEN 'done' WHEN 5 THEN 'unchanged' WHEN 6 THEN 'skipped'
        WHEN 7 THEN 'dead' ELSE 'pending' END AS state,
      attempts.http_status, tasks.code AS failure_code, tasks.attempts,
      strftime('%Y-%m-%dT%H:%M:%fZ', attempts.started_at / 1000.0, 'unixepoch') AS fetched_at,
      coalesce(attempts.route, pages.route, tasks.route) AS route, tasks.depth,
      coalesce(pages.content_type, attempts.content_type) AS content_type,
      coalesce(pages.bytes, attempts.bytes) AS bytes,
      lower(nullif(hex(coalesce(pages.sha256, attempts.sha256)), '')) AS sha256
    FROM tasks JOIN jobs ON jobs.id = tasks.job_id JOIN hosts ON hosts.id = tasks.host_id
      LEFT JOIN attempts ON attempts.id = tasks.attempt_id LEFT JOIN attempts AS pages ON pages.id = attempts.page_id;
CREATE INDEX robots_host ON robots (host);
CREATE TABLE "escalations" (
    job_id INTEGER NOT NULL,
    host TEXT NOT NULL,
    template TEXT NOT NULL,
    stats TEXT NOT NULL,
    PRIMARY KEY (job_id, host, template)
  ) WITHOUT ROWID;
CREATE TABLE proxy_health (
    proxy TEXT NOT NULL,
    host TEXT NOT NULL,
    health TEXT NOT NULL,
    noted_at INTEGER NOT NULL,
    PRIMARY KEY (proxy, host)
  ) WITHOUT ROWID;
CREATE INDEX proxy_health_noted ON proxy_health (noted_at);
CREATE TABLE api_costs (job_id INTEGER PRIMARY KEY, cost REAL NOT NULL);
CREATE INDEX tasks_waiting_host ON tasks (job_id, host_id) WHERE state = 8;
CREATE TABLE host_groups (
    job_id INTEGER NOT NULL,
    host TEXT NOT NULL,
    host_group TEXT NOT NULL,
    PRIMARY KEY (job_id, host)
  ) WITHOUT ROWID;
CREATE INDEX attempts_shots ON attempts (job_id, id) WHERE shots IS NOT NULL;
CREATE TABLE seen_state (indexed_to INTEGER NOT NULL, filtered INTEGER NOT NULL);
CREATE TABLE seen_filter (capacity INTEGER PRIMARY KEY, count INTEGER NOT NULL, bits BLOB NOT NULL);
CREATE INDEX jobs_running ON jobs (id) WHERE state = 'running';
CREATE INDEX jobs_scheduled ON jobs (name, run) WHERE json_extract(spec, '$.schedule') IS NOT NULL;
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
CREATE TABLE key_usage (
    key_id TEXT NOT NULL,
    day INTEGER NOT NULL,
    pages INTEGER NOT NULL,
    cost REAL NOT NULL, requests INTEGER NOT NULL DEFAULT 0, browser_seconds REAL NOT NULL DEFAULT 0,
    PRIMARY KEY (key_id, day)
  ) WITHOUT ROWID;
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
CREATE INDEX queues_wanted ON queues (host_id) WHERE ready > 0;
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
CREATE TABLE record_changes (
    job_id INTEGER NOT NULL,
    pass INTEGER NOT NULL,
    kind TEXT NOT NULL,
    field TEXT NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (job_id, pass, kind, field)
  ) WITHOUT ROWID;
CREATE TABLE slot_times (
    job_id INTEGER NOT NULL,
    run TEXT NOT NULL,
    account TEXT NOT NULL,
    saved_at INTEGER NOT NULL,
    PRIMARY KEY (job_id, run)
  ) WITHOUT ROWID;
CREATE TABLE costs (
    job_id INTEGER NOT NULL,
    item TEXT NOT NULL,
    quantity REAL NOT NULL,
    dollars REAL NOT NULL,
    PRIMARY KEY (job_id, item)
  ) WITHOUT ROWID;
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
CREATE UNIQUE INDEX jobs_request ON jobs (request_id) WHERE request_id IS NOT NULL;
CREATE INDEX jobs_removed ON jobs (id) WHERE removed_at IS NOT NULL;
CREATE TABLE host_profiles (host TEXT PRIMARY KEY, profile TEXT NOT NULL) WITHOUT ROWID;
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
CREATE TABLE host_log (
    host_id INTEGER NOT NULL,
    number INTEGER NOT NULL,
    hash TEXT NOT NULL,
    entry TEXT NOT NULL,
    PRIMARY KEY (host_id, number)
  ) WITHOUT ROWID;
CREATE INDEX attempts_troubled ON attempts (task_id)
    WHERE outcome = 'failed' OR outcome = 'lost' OR outcome = 'redirected';
INSERT INTO seen_state VALUES (0, 1);
`;
