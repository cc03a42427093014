/** Views for people who use psql, with comments, and what they are looked up by. */
export const SQL_VIEWS = `
  CREATE FUNCTION seine_timestamp(ms bigint) RETURNS timestamptz LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT timestamptz 'epoch' + ms * interval '1 millisecond'
  $$;
  -- Rows that were written before records were cleaned, and columns of sources, may have what jsonb refuses.
  CREATE FUNCTION seine_jsonb(value json) RETURNS jsonb LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE WHEN value::text ~ '\\\\u(0000|d[89a-fA-F])'
      THEN regexp_replace(value::text, '(?<!\\\\)((?:\\\\\\\\)*)\\\\u(?:0000|[dD][89a-fA-F][0-9a-fA-F]{2})', '\\1' || chr(65533), 'g')::jsonb
      ELSE value::jsonb END
  $$;
  CREATE FUNCTION seine_state(state smallint) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
    SELECT CASE state WHEN 3 THEN 'leased' WHEN 4 THEN 'done' WHEN 5 THEN 'unchanged' WHEN 6 THEN 'skipped'
      WHEN 7 THEN 'dead' ELSE 'pending' END
  $$;

  DROP VIEW seine_tasks, seine_records;

  CREATE VIEW seine_tasks AS
    SELECT jobs.name AS job, jobs.run, tasks.url, hosts.host, seine_state(tasks.state) AS state,
      attempts.http_status, tasks.code AS failure_code, tasks.attempts,
      seine_timestamp(attempts.started_at) AS fetched_at,
      coalesce(attempts.route, pages.route, tasks.route) AS route, tasks.depth,
      coalesce(pages.content_type, attempts.content_type) AS content_type,
      coalesce(pages.bytes, attempts.bytes) AS bytes,
      encode(coalesce(pages.sha256, attempts.sha256), 'hex') AS sha256,
      tasks.id AS task_id, tasks.job_id, tasks.detail AS failure_detail, tasks.priority,
      seine_timestamp(tasks.due_at) AS due_at, seine_jsonb(tasks.meta) AS meta
    FROM tasks JOIN jobs ON jobs.id = tasks.job_id JOIN hosts ON hosts.id = tasks.host_id
      LEFT JOIN attempts ON attempts.id = tasks.attempt_id LEFT JOIN attempts AS pages ON pages.id = attempts.page_id;
  COMMENT ON VIEW seine_tasks IS 'One row for each URL of each run: its state and its last request.';
  COMMENT ON COLUMN seine_tasks.state IS 'pending, leased, done, unchanged, skipped or dead.';
  COMMENT ON COLUMN seine_tasks.failure_code IS 'Why it failed or was skipped: see failure-codes.md.';
  COMMENT ON COLUMN seine_tasks.due_at IS 'When a task that waits is tried again.';
  COMMENT ON COLUMN seine_tasks.meta IS 'Other columns of the source row that the URL came from.';

  CREATE VIEW seine_records AS
    SELECT collections.name AS job, records.key, tasks.url,
      coalesce(attempts.route, pages.route, tasks.route) AS route, seine_jsonb(records.data) AS data, records.hash,
      seine_timestamp(records.created_at) AS created_at,
      seine_timestamp(records.updated_at) AS updated_at,
      seine_timestamp(records.checked_at) AS checked_at,
      CASE WHEN tasks.code = 'not-found' AND attempts.http_status IN (404, 410)
        THEN seine_timestamp(attempts.started_at) END AS gone_at,
      seine_jsonb(tasks.meta) AS meta, records.task_id
    FROM records JOIN collections ON collections.id = records.collection_id JOIN tasks ON tasks.id = records.task_id
      LEFT JOIN attempts ON attempts.id = tasks.attempt_id LEFT JOIN attempts AS pages ON pages.id = attempts.page_id;
  COMMENT ON VIEW seine_records IS 'Extracted data: one row for each key of a job, over all its runs.';
  COMMENT ON COLUMN seine_records.updated_at IS 'When its data last changed.';
  COMMENT ON COLUMN seine_records.checked_at IS 'When a page last confirmed it.';
  COMMENT ON COLUMN seine_records.gone_at IS 'When its page was found to be gone, as of the last visit.';

  CREATE VIEW seine_history AS
    SELECT collections.name AS job, record_versions.key, tasks.url, seine_jsonb(record_versions.data) AS data,
      record_versions.hash, seine_timestamp(from_at) AS valid_from, seine_timestamp(until_at) AS valid_until, task_id
    FROM record_versions JOIN collections ON collections.id = record_versions.collection_id
      JOIN tasks ON tasks.id = record_versions.task_id;
  COMMENT ON VIEW seine_history IS 'Earlier versions of records, of jobs with records.history.';

  CREATE VIEW seine_attempts AS
    SELECT jobs.name AS job, jobs.run, tasks.url, seine_timestamp(attempts.started_at) AS started_at,
      attempts.duration_ms, attempts.http_status, attempts.outcome, attempts.code AS failure_code,
      attempts.wire_bytes AS bytes, attempts.redirect_to, batches.worker, attempts.batch_id, attempts.task_id
    FROM attempts JOIN jobs ON jobs.id = attempts.job_id JOIN tasks ON tasks.id = attempts.task_id
      LEFT JOIN batches ON batches.id = attempts.batch_id;
  COMMENT ON VIEW seine_attempts IS 'One row for each request.';
  COMMENT ON COLUMN seine_attempts.bytes IS 'As transferred.';

  CREATE VIEW seine_batches AS
    SELECT jobs.name AS job, jobs.run, batches.id AS batch_id, batches.state, batches.worker,
      seine_timestamp(leased_at) AS leased_at, seine_timestamp(lease_until) AS lease_until,
      seine_timestamp(closed_at) AS closed_at, size AS tasks, done, failed, requests, bytes, duration_ms, note
    FROM batches JOIN jobs ON jobs.id = batches.job_id;
  COMMENT ON VIEW seine_batches IS 'Tasks that were lent to workers together, and what became of them.';

  CREATE VIEW seine_hosts AS
    SELECT jobs.name AS job, jobs.run, hosts.host, queues.ready, hosts.requests,
      seine_timestamp(hosts.next_at) AS next_at, hosts.failures_in_row, hosts.crawl_delay_ms, hosts.smallest_gap_ms,
      seine_jsonb(hosts.last_error) AS last_error, seine_jsonb(hosts.ban) AS ban
    FROM queues JOIN jobs ON jobs.id = queues.job_id JOIN hosts ON hosts.id = queues.host_id;
  COMMENT ON VIEW seine_hosts IS 'The hosts of each run: what waits for them, and when they are asked next.';
  COMMENT ON COLUMN seine_hosts.requests IS 'Over all jobs.';

  CREATE VIEW seine_media AS
    SELECT jobs.name AS job, jobs.run, tasks.url, media.key, media.member, encode(media.md5, 'hex') AS md5,
      encode(attempts.sha256, 'hex') AS sha256, attempts.content_type, attempts.bytes,
      seine_timestamp(attempts.started_at) AS fetched_at, media.task_id
    FROM media JOIN jobs ON jobs.id = media.job_id JOIN tasks ON tasks.id = media.task_id
      JOIN attempts ON attempts.id = media.attempt_id;
  COMMENT ON VIEW seine_media IS 'Stored files: images, videos, documents.';
  COMMENT ON COLUMN seine_media.key IS 'Name of the blob; member: name inside of a packed one.';

  -- By URL, by state, by task. A hash of a URL is smaller than the URL.
  CREATE INDEX tasks_url ON tasks USING hash (url);
  CREATE INDEX tasks_state ON tasks (job_id, seine_state(state)) WHERE seine_state(state) IN ('dead', 'skipped');
  CREATE INDEX attempts_task ON attempts (task_id);
  CREATE INDEX record_versions_task ON record_versions (task_id);

  DO $$
  DECLARE
    role text := left(current_schema(), 57) || '_query';
  BEGIN
    EXECUTE format('GRANT SELECT ON seine_tasks, seine_records TO %I', role);
  EXCEPTION WHEN OTHERS THEN
    NULL;
  END $$;

  -- Records that the table of a sink refused, and why; the newest for each key.
  CREATE TABLE sink_rejects (
    job_id bigint NOT NULL,
    row_hash text NOT NULL,
    row_text text NOT NULL,
    reason text NOT NULL,
    at timestamptz NOT NULL,
    PRIMARY KEY (job_id, row_hash)
  );
  CREATE VIEW seine_sink_rejects AS
    SELECT jobs.name AS job, jobs.run, row_text AS row, sink_rejects.reason, sink_rejects.at
    FROM sink_rejects JOIN jobs ON jobs.id = sink_rejects.job_id;
  COMMENT ON VIEW seine_sink_rejects IS 'Rows that the table of a sink refused, and why.';

  -- Writes rows into a table of the user. A row that does not fit is put aside: it must not keep its page from being settled.
  CREATE FUNCTION seine_sink(job bigint, target text, statement text, lines text[]) RETURNS integer LANGUAGE plpgsql AS $$
  DECLARE
    line text;
    refused integer := 0;
  BEGIN
    BEGIN
      EXECUTE statement USING (SELECT jsonb_agg(each::jsonb) FROM unnest(lines) AS each);
      RETURN 0;
    EXCEPTION WHEN data_exception OR integrity_constraint_violation THEN
      NULL;
    END;
    FOREACH line IN ARRAY lines LOOP
      BEGIN
        EXECUTE statement USING jsonb_build_array(line::jsonb);
      EXCEPTION WHEN data_exception OR integrity_constraint_violation THEN
        refused := refused + 1;
        INSERT INTO sink_rejects (job_id, row_hash, row_text, reason, at) VALUES (job, md5(line), line, SQLERRM, now())
        ON CONFLICT (job_id, row_hash) DO UPDATE SET reason = excluded.reason, at = excluded.at;
      END;
    END LOOP;
    RETURN refused;
  END $$;
`;
