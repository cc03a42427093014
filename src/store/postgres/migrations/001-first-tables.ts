/**
 * Jobs, frontier, hosts and logs. Times are epoch milliseconds, states of tasks are numbers: 2 ready, 3 leased, 4 done,
 * 5 unchanged, 6 skipped, 7 dead, 8 waiting for due_at.
 */
export const FIRST_TABLES = `
  CREATE TABLE jobs (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL,
    run integer NOT NULL,
    spec json NOT NULL,
    spec_hash text NOT NULL,
    bundle text,
    file text,
    seed integer NOT NULL,
    first_task_id bigint,
    state text NOT NULL,
    wish text NOT NULL,
    reason text,
    created_at bigint NOT NULL,
    ended_at bigint,
    worked_ms bigint NOT NULL DEFAULT 0,
    -- The coordinator that reads the sources.
    feeder bigint,
    UNIQUE (name, run)
  ) WITH (fillfactor = 50);

  -- Names of jobs, whose records outlive a run.
  CREATE TABLE collections (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL UNIQUE);

  -- The present pass of a job.
  CREATE TABLE passes (
    job_id bigint PRIMARY KEY,
    collection_id bigint NOT NULL,
    pass integer NOT NULL,
    started_at bigint NOT NULL,
    last_task_id bigint NOT NULL DEFAULT 0,
    start json
  );

  -- Several rows for each job, of which the sum counts: transactions beside each other do not wait for one row.
  CREATE TABLE counters (
    job_id bigint NOT NULL,
    shard smallint NOT NULL,
    accepted bigint NOT NULL DEFAULT 0,
    done bigint NOT NULL DEFAULT 0,
    unchanged bigint NOT NULL DEFAULT 0,
    skipped bigint NOT NULL DEFAULT 0,
    dead bigint NOT NULL DEFAULT 0,
    pending bigint NOT NULL DEFAULT 0,
    leased bigint NOT NULL DEFAULT 0,
    records bigint NOT NULL DEFAULT 0,
    bytes bigint NOT NULL DEFAULT 0,
    requests bigint NOT NULL DEFAULT 0,
    batches bigint NOT NULL DEFAULT 0,
    retries bigint NOT NULL DEFAULT 0,
    duplicates bigint NOT NULL DEFAULT 0,
    dropped bigint NOT NULL DEFAULT 0,
    rejected bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (job_id, shard)
  ) WITH (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0);

  -- Dead and skipped tasks by reason, so that status needs no scan.
  CREATE TABLE tallies (
    job_id bigint NOT NULL,
    state text NOT NULL,
    code text NOT NULL,
    count bigint NOT NULL,
    PRIMARY KEY (job_id, state, code)
  ) WITH (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0);

  CREATE TABLE sources (
    job_id bigint NOT NULL,
    source integer NOT NULL,
    position text,
    done boolean NOT NULL,
    rows bigint NOT NULL,
    rejected bigint NOT NULL,
    PRIMARY KEY (job_id, source)
  ) WITH (fillfactor = 50);

  -- holder: the coordinator that has batches out for the host, and how many. With none the host is free.
  CREATE TABLE hosts (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    next_at bigint NOT NULL DEFAULT 0,
    requests bigint NOT NULL DEFAULT 0,
    holder bigint,
    holds integer NOT NULL DEFAULT 0,
    crawl_delay_ms bigint,
    failures_in_row integer NOT NULL DEFAULT 0,
    rests integer NOT NULL DEFAULT 0,
    smallest_gap_ms double precision,
    pace json,
    last_error json,
    host text COLLATE "C" NOT NULL UNIQUE
  ) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0);

  -- Which hosts of a job have work. next_at repeats the host's, for the index.
  CREATE TABLE queues (
    job_id bigint NOT NULL,
    host_id bigint NOT NULL,
    next_at bigint NOT NULL DEFAULT 0,
    ready bigint NOT NULL DEFAULT 0,
    PRIMARY KEY (job_id, host_id)
  ) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0);
  CREATE INDEX queues_due ON queues (job_id, next_at) WHERE ready > 0;

  CREATE TABLE robots (
    origin text PRIMARY KEY,
    host text NOT NULL,
    text text,
    fetched_at bigint NOT NULL,
    failures integer NOT NULL,
    detail text,
    crawl_delay_ms bigint
  );
  CREATE INDEX robots_host ON robots (host);

  -- home_host_id: the host of the task's own URL, while it follows redirects elsewhere.
  CREATE TABLE tasks (
    id bigint PRIMARY KEY,
    job_id bigint NOT NULL,
    host_id bigint NOT NULL,
    batch_id bigint,
    attempt_id bigint,
    due_at bigint,
    modified_at bigint,
    home_host_id bigint,
    priority bigint NOT NULL,
    depth integer NOT NULL,
    attempts integer NOT NULL DEFAULT 0,
    state smallint NOT NULL,
    losses smallint NOT NULL DEFAULT 0,
    hops smallint NOT NULL DEFAULT 0,
    code text,
    detail text,
    route text,
    at_url text,
    meta json,
    url text NOT NULL
  ) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);
  CREATE SEQUENCE task_ids;
  CREATE INDEX tasks_ready ON tasks (job_id, host_id, priority DESC, id) WHERE state = 2;
  CREATE INDEX tasks_waiting ON tasks (job_id, due_at) WHERE state = 8;
  CREATE INDEX tasks_dead ON tasks (job_id, code, host_id) WHERE state = 7;

  -- The exact dedupe index: fingerprints that lead to the URL itself.
  CREATE TABLE seen (fingerprint bigint PRIMARY KEY, task_id bigint NOT NULL);

  CREATE TABLE templates (
    job_id bigint NOT NULL,
    template text NOT NULL,
    count bigint NOT NULL,
    PRIMARY KEY (job_id, template)
  ) WITH (fillfactor = 70);

  CREATE TABLE batches (
    id bigint PRIMARY KEY,
    job_id bigint NOT NULL,
    coordinator bigint NOT NULL,
    leased_at bigint NOT NULL,
    lease_until bigint NOT NULL,
    closed_at bigint,
    bytes bigint NOT NULL DEFAULT 0,
    size integer NOT NULL,
    unsettled integer NOT NULL,
    done integer NOT NULL DEFAULT 0,
    failed integer NOT NULL DEFAULT 0,
    requests integer NOT NULL DEFAULT 0,
    duration_ms bigint NOT NULL DEFAULT 0,
    state text NOT NULL,
    worker text,
    note text,
    host_ids bigint[],
    task_ids bigint[]
  ) WITH (fillfactor = 50);
  CREATE SEQUENCE batch_ids;
  CREATE INDEX batches_open ON batches (job_id, lease_until) WHERE state = 'open';

  CREATE TABLE archives (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    job_id bigint NOT NULL,
    batch_id bigint NOT NULL,
    bytes bigint NOT NULL,
    key text NOT NULL
  );
  CREATE INDEX archives_key ON archives (job_id, key);

  -- page_id: the attempt that has the page, for one that found it unchanged or brought none.
  -- at_url: where the page came from, once its task is due again at its own URL.
  CREATE TABLE attempts (
    id bigint PRIMARY KEY,
    job_id bigint NOT NULL,
    task_id bigint NOT NULL,
    batch_id bigint NOT NULL,
    started_at bigint NOT NULL,
    wire_bytes bigint NOT NULL,
    bytes bigint,
    archive_id bigint,
    archive_offset bigint,
    archive_length bigint,
    page_id bigint,
    duration_ms bigint NOT NULL,
    http_status integer,
    outcome text NOT NULL,
    code text,
    sha256 bytea,
    content_type text,
    etag text,
    last_modified text,
    redirect_to text,
    route text,
    at_url text,
    robots_tags text
  );
  CREATE SEQUENCE attempt_ids;

  -- Stored objects. Size, hash, type and time are in the attempt that brought them.
  CREATE TABLE media (
    attempt_id bigint PRIMARY KEY,
    job_id bigint NOT NULL,
    task_id bigint NOT NULL,
    md5 bytea NOT NULL,
    key text NOT NULL,
    member text
  );
  CREATE INDEX media_task ON media (task_id);

  -- Which page shows which media, both as tasks.
  CREATE TABLE shown (
    page_task_id bigint NOT NULL,
    media_task_id bigint NOT NULL,
    PRIMARY KEY (page_task_id, media_task_id)
  );
  CREATE INDEX shown_media ON shown (media_task_id, page_task_id);
  `;
