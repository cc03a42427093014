/** What the command and the thread that tries inputs say to each other. */

export interface ThreadSetup {
  target: string;
  seed: number;
  /** The first of the cases to try. */
  from: number;
  /** How many cases were begun, and the length of the input at hand, in `INPUT`: read when the thread is stuck. */
  counters: SharedArrayBuffer;
  input: SharedArrayBuffer;
}

export const INPUT_BYTES_MAX = 8 * 1024 * 1024;

export type ToThread = { kind: 'run' } | { kind: 'judge'; input: Uint8Array } | { kind: 'close' };

/** `verdict` is null for an input that is handled well. */
export type FromThread =
  | { kind: 'ready' }
  | { kind: 'found'; index: number; input: Uint8Array; verdict: string }
  | { kind: 'judged'; verdict: string | null }
  | { kind: 'closed' };
