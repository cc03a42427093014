import type { HostView, Notice, Tally, WorkerView } from '../../../coordinator/reports/run-view.ts';

/** What is sent once a second to whoever looks at jobs; the dashboard reads it with these types. */

/** How fast a job is. */
export interface LiveJob {
  pages_per_second: number;
  bytes_per_second: number;
  /** Null while there is no rate; a lower bound while `discovering`. */
  eta_seconds: number | null;
  /** Between what it may be; null while that is not known. */
  eta_band_seconds: { low: number; high: number } | null;
  discovering: boolean;
  elapsed_seconds: number;
  waiting_for: string | null;
  open_batches: number;
  /** Pages a second in steps of `history_step_seconds`, oldest first; empty where another process runs the job. */
  history: number[];
  history_step_seconds: number;
}

/** What a page about one job shows besides. */
export interface LiveDetails {
  hosts: HostView[];
  hosts_total: number;
  workers: WorkerView[];
  workers_total: number;
  failures: Tally[];
  skips: Tally[];
  recent: Notice[];
  warnings: Notice[];
}

export interface Snapshot<Job> {
  at: string;
  jobs: (Job & { live: LiveJob | null })[];
  /** Of the job that was asked for, while it runs here. */
  details: LiveDetails | null;
}
