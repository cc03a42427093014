/** What is said between the store and the process that runs a query. Each question has one answer. */
export type QueryQuestion = { kind: 'run'; path: string; sql: string; rowsMax: number } | { kind: 'next' };

export type QueryAnswer =
  | { kind: 'done' }
  /** None are left when there are none. */
  | { kind: 'rows'; rows: Record<string, unknown>[] }
  | { kind: 'failed'; message: string };
