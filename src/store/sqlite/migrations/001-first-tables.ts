/** Jobs, frontier, hosts and logs, as the first release had them. */
export const FIRST_TABLES = `
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
    wish TEXT NOT NULL,
    reason TEXT,
    created_at INTEGER NOT NULL,
    ended_at INTEGER,
    worked_ms INTEGER NOT NULL DEFAULT 0,
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
  );

  -- Dead and skipped tasks by reason, so that status needs no scan.
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
  );

  -- Which hosts of a job have work. next_at repeats the host's, for the index.
  CREATE TABLE queues (
    job_id INTEGER NOT NULL,
    host_id INTEGER NOT NULL,
    ready INTEGER NOT NULL DEFAULT 0,
    next_at INTEGER NOT NULL DEFAULT 0,
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
  );

  -- Rows keep their size from enqueue to done, so that settling never splits a page: states are numbers
  -- from 2 on (0 and 1 take no byte), and ids have a placeholder of four bytes. What a fetch brought is in attempts.
  -- state: 2 ready, 3 leased, 4 done, 5 unchanged, 6 skipped, 7 dead, 8 waiting for due_at
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
  );
  CREATE INDEX tasks_ready ON tasks (job_id, host_id, priority DESC, id) WHERE state = 2;
  CREATE INDEX tasks_waiting ON tasks (job_id, due_at) WHERE state = 8;
  CREATE INDEX tasks_dead ON tasks (job_id, code, host_id) WHERE state = 7;

  -- The exact dedupe index: 53-bit fingerprints that lead to the URL itself.
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
  );
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
  );

  CREATE TABLE records (
    id INTEGER PRIMARY KEY,
    job_id INTEGER NOT NULL,
    key TEXT NOT NULL,
    task_id INTEGER NOT NULL,
    data TEXT NOT NULL,
    hash TEXT NOT NULL,
    updated_at INTEGER NOT NULL,
    UNIQUE (job_id, key)
  );
  `;
