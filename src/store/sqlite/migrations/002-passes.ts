/** Passes, media, quality, and records that belong to the name of a job over all its runs. */
export const PASSES = `
  ALTER TABLE jobs ADD COLUMN file TEXT;

  -- Names of jobs, whose records outlive a run.
  CREATE TABLE collections (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
  INSERT INTO collections (name) SELECT DISTINCT name FROM jobs ORDER BY name;

  -- The present pass of a job. Apart from jobs, whose spec may be long: every lease and settle reads this.
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
  INSERT INTO passes (job_id, collection_id, pass, started_at)
    SELECT jobs.id, collections.id, 1, created_at FROM jobs JOIN collections ON collections.name = jobs.name;

  ALTER TABLE tasks ADD COLUMN modified_at INTEGER;

  -- page_id: the attempt that has the page, for one that found it unchanged or brought none.
  -- at_url: where the page came from, once its task is due again at its own URL.
  ALTER TABLE attempts ADD COLUMN page_id INTEGER;
  ALTER TABLE attempts ADD COLUMN at_url TEXT;
  ALTER TABLE attempts ADD COLUMN robots_tags TEXT;

  -- Stored objects. Size, hash, type and time are in the attempt that brought them.
  CREATE TABLE media (
    attempt_id INTEGER PRIMARY KEY,
    job_id INTEGER NOT NULL,
    task_id INTEGER NOT NULL,
    md5 BLOB NOT NULL,
    key TEXT NOT NULL,
    member TEXT
  );
  CREATE INDEX media_task ON media (task_id);

  -- Which page shows which media, both as tasks.
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
    invalid INTEGER NOT NULL,
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

  -- job_id and task_id: who wrote the data. The newest run of a name wins where several have the same key.
  CREATE TABLE named_records (
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
  -- Run by run through the index of the old table, so that nothing has to be sorted in memory.
  INSERT INTO named_records
      (collection_id, job_id, task_id, created_at, updated_at, checked_at, fetched_at, hash, key, data)
    SELECT passes.collection_id, records.job_id, records.task_id,
      (SELECT min(other.updated_at) FROM passes AS run JOIN records AS other
         ON other.job_id = run.job_id AND other.key = records.key WHERE run.collection_id = passes.collection_id),
      records.updated_at, records.updated_at, coalesce(attempts.started_at, records.updated_at),
      record_hash(records.data), records.key, records.data
    FROM records JOIN passes ON passes.job_id = records.job_id JOIN tasks ON tasks.id = records.task_id
      LEFT JOIN attempts ON attempts.id = tasks.attempt_id
    WHERE NOT EXISTS (
      SELECT 1 FROM passes AS run JOIN records AS other ON other.job_id = run.job_id AND other.key = records.key
      WHERE run.collection_id = passes.collection_id
        AND (other.updated_at, other.job_id) > (records.updated_at, records.job_id))
    ORDER BY records.id;
  DROP TABLE records;
  ALTER TABLE named_records RENAME TO records;
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

  -- For queries of people. Times are text as in exports, so that they sort and read well:
  -- compare with strftime('%Y-%m-%dT%H:%M:%fZ', 'now', '-7 days').
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

  CREATE VIEW seine_records AS
    SELECT collections.name AS job, records.key, tasks.url,
      coalesce(attempts.route, pages.route, tasks.route) AS route, records.data, records.hash,
      strftime('%Y-%m-%dT%H:%M:%fZ', records.created_at / 1000.0, 'unixepoch') AS created_at,
      strftime('%Y-%m-%dT%H:%M:%fZ', records.updated_at / 1000.0, 'unixepoch') AS updated_at,
      strftime('%Y-%m-%dT%H:%M:%fZ', records.checked_at / 1000.0, 'unixepoch') AS checked_at
    FROM records JOIN collections ON collections.id = records.collection_id JOIN tasks ON tasks.id = records.task_id
      LEFT JOIN attempts ON attempts.id = tasks.attempt_id LEFT JOIN attempts AS pages ON pages.id = attempts.page_id;
`;
