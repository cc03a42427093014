export const SHOTS_MIGRATION = `
  -- Pictures that a browser made at an attempt, as JSON.
  ALTER TABLE attempts ADD COLUMN shots text;
  CREATE INDEX attempts_shots ON attempts (job_id, id) WHERE shots IS NOT NULL;
`;
