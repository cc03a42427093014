import type { Health } from '../../core/proxies/proxy-health.ts';

/** What is known of a proxy, or of a proxy at one host. */
export interface ProxyRow {
  /** Its id: never anything secret. */
  proxy: string;
  /** Null for the proxy in general. */
  host: string | null;
  health: Health;
}

/** What becomes of proxies and of money outside: over all runs, and for all coordinators. */
export interface ProxyStore {
  /** What was noted at `since` or later, at most `limit` rows, the newest first. */
  load(since: number, limit: number): Promise<ProxyRow[]>;
  /** The newest news of each proxy is kept; what was noted before `forgetBefore` is forgotten. */
  save(rows: readonly ProxyRow[], forgetBefore: number): Promise<void>;
  /** Adds to what the remote scraping API took for a job. */
  addCost(jobId: number, cost: number): Promise<void>;
  cost(jobId: number): Promise<number>;
}
