export const APPROACHES_MIGRATION = `
  -- What was learned of how hosts want to be asked, and cookies; opaque JSON.
  CREATE TABLE approaches (
    job_id bigint NOT NULL,
    host text NOT NULL,
    template text NOT NULL,
    stats text NOT NULL,
    PRIMARY KEY (job_id, host, template)
  );
  ALTER TABLE attempts ADD COLUMN via text;
`;
