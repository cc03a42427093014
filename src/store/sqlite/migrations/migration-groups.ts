export const GROUPS_MIGRATION = `
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
`;
