export const PROXIES_MIGRATION = `
  -- How proxies fare, by id; with an empty host in general. Never an address with credentials.
  CREATE TABLE proxy_health (
    proxy text NOT NULL,
    host text NOT NULL,
    health text NOT NULL,
    noted_at bigint NOT NULL,
    PRIMARY KEY (proxy, host)
  ) WITH (fillfactor = 50);
  CREATE INDEX proxy_health_noted ON proxy_health (noted_at);

  -- What the remote scraping API took for a job.
  CREATE TABLE api_costs (job_id bigint PRIMARY KEY, cost double precision NOT NULL);
`;
