export const GROUPS_MIGRATION = `
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
`;
