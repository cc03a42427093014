/** Records, quality, coordinators, and the views for people. */
export const RECORDS = `
  CREATE TABLE quality (
    job_id bigint NOT NULL,
    pass integer NOT NULL,
    route text NOT NULL,
    records bigint NOT NULL,
    invalid bigint NOT NULL,
    PRIMARY KEY (job_id, pass, route)
  ) WITH (fillfactor = 20);
  CREATE TABLE quality_fields (
    job_id bigint NOT NULL,
    pass integer NOT NULL,
    route text NOT NULL,
    field text COLLATE "C" NOT NULL,
    filled bigint NOT NULL
  ) WITH (fillfactor = 20);
  -- Fields may be named by a site, at any length.
  CREATE UNIQUE INDEX quality_fields_key ON quality_fields (job_id, pass, route, md5(field));

  -- job_id and task_id: who wrote the data. Keys may be too long for an index: it has their beginning and their hash.
  -- The data is json and not jsonb, which refuses characters that pages have, and forgets the order of fields.
  CREATE TABLE records (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    collection_id bigint NOT NULL,
    job_id bigint NOT NULL,
    task_id bigint NOT NULL,
    created_at bigint NOT NULL,
    updated_at bigint NOT NULL,
    checked_at bigint NOT NULL,
    fetched_at bigint NOT NULL,
    hash text NOT NULL,
    key text COLLATE "C" NOT NULL,
    data json NOT NULL
  ) WITH (fillfactor = 85);
  CREATE UNIQUE INDEX records_key ON records (collection_id, left(key, 500), md5(key));
  CREATE INDEX records_task ON records (task_id);

  CREATE TABLE record_versions (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    collection_id bigint NOT NULL,
    task_id bigint NOT NULL,
    from_at bigint NOT NULL,
    until_at bigint NOT NULL,
    hash text NOT NULL,
    key text COLLATE "C" NOT NULL,
    data json NOT NULL
  );
  CREATE INDEX record_versions_key ON record_versions (collection_id, left(key, 500), id);

  -- Coordinators at work. One that does not renew its time is gone, and what it held is free.
  CREATE TABLE coordinators (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    -- Names the folder whose lock it holds: nobody else is at work there.
    place text,
    job_id bigint,
    alive_until timestamptz NOT NULL
  ) WITH (fillfactor = 20);

  -- The last transaction of each connection, for those whose answer was lost.
  CREATE TABLE writes (
    lane bigint PRIMARY KEY,
    last bigint NOT NULL,
    at timestamptz NOT NULL
  ) WITH (fillfactor = 20, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000,
    autovacuum_vacuum_cost_delay = 0);

  -- For queries of people. Times are text as in exports, so that they sort and read well.
  CREATE FUNCTION seine_time(ms bigint) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT to_char(timestamp 'epoch' + ms * interval '1 millisecond', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')
  $$;

  CREATE VIEW seine_tasks AS
    SELECT jobs.name AS job, jobs.run, tasks.url, hosts.host,
      CASE tasks.state WHEN 3 THEN 'leased' WHEN 4 THEN 'done' WHEN 5 THEN 'unchanged' WHEN 6 THEN 'skipped'
        WHEN 7 THEN 'dead' ELSE 'pending' END AS state,
      attempts.http_status, tasks.code AS failure_code, tasks.attempts,
      seine_time(attempts.started_at) AS fetched_at,
      coalesce(attempts.route, pages.route, tasks.route) AS route, tasks.depth,
      coalesce(pages.content_type, attempts.content_type) AS content_type,
      coalesce(pages.bytes, attempts.bytes) AS bytes,
      encode(coalesce(pages.sha256, attempts.sha256), 'hex') AS sha256
    FROM tasks JOIN jobs ON jobs.id = tasks.job_id JOIN hosts ON hosts.id = tasks.host_id
      LEFT JOIN attempts ON attempts.id = tasks.attempt_id LEFT JOIN attempts AS pages ON pages.id = attempts.page_id;

  CREATE VIEW seine_records AS
    SELECT collections.name AS job, records.key, tasks.url,
      coalesce(attempts.route, pages.route, tasks.route) AS route, records.data, records.hash,
      seine_time(records.created_at) AS created_at,
      seine_time(records.updated_at) AS updated_at,
      seine_time(records.checked_at) AS checked_at
    FROM records JOIN collections ON collections.id = records.collection_id JOIN tasks ON tasks.id = records.task_id
      LEFT JOIN attempts ON attempts.id = tasks.attempt_id LEFT JOIN attempts AS pages ON pages.id = attempts.page_id;
`;
