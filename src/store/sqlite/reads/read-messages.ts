import type { ReadStore } from '../../../ports/store/read-store.ts';

/** What is asked of the thread that reads. */
export interface ReadCall {
  id: number;
  part: Exclude<keyof ReadStore, 'jobs' | 'keys' | 'close'>;
  method: string;
  args: unknown[];
}

export type ReadAnswer = { id: number; value: unknown } | { id: number; error: string };
