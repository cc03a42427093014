/** What was learned of how a host wants to be asked. */
export interface EscalationRow {
  /** Host, or origin, that it is about. */
  host: string;
  /** URL template, or another mark of what the row is; empty for the host in general. */
  template: string;
  /** Only the coordinator knows what is in it; null removes the row. Holds cookies: never shown, never exported. */
  stats: unknown;
}

export interface EscalationStore {
  /** All rows of a job, at most `limit`. */
  load(jobId: number, limit: number): Promise<EscalationRow[]>;
  save(jobId: number, rows: readonly EscalationRow[]): Promise<void>;
}
