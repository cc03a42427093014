/** What this process may use: of the machine, or of its container. */
export interface Machine {
  /** Whole cores; at least one. */
  cores: number;
  memoryBytes: number;
}

const MB = 1024 * 1024;
/** More threads than this are no faster on the machines that were measured. */
const THREADS_MAX = 8;
/** What the process takes before the first thread, and a thread with the pages that it works on. */
const PROCESS_BYTES = 128 * MB;
export const THREAD_BYTES = 128 * MB;
/** A page that needs more kills its thread, not the run. */
const THREAD_HEAP_MB_MAX = 1_024;
/** With less, ordinary pages of some megabytes are too large. */
const THREAD_HEAP_MB_MIN = 128;

/** Worker threads, unless somebody sets a number. */
export function threadsFor({ cores, memoryBytes }: Machine): number {
  const room = Math.floor((memoryBytes - PROCESS_BYTES) / THREAD_BYTES);
  return Math.max(1, Math.min(THREADS_MAX, cores, room));
}

/** Heap of a thread. Large pages are rare: one thread at a time may take half of the memory. */
export function threadHeapMb({ memoryBytes }: Machine): number {
  return shareOf(memoryBytes, 0.5, { min: THREAD_HEAP_MB_MIN * MB, max: THREAD_HEAP_MB_MAX * MB }) / MB;
}

/** A share of the memory within two bounds, in whole megabytes. */
export function shareOf(
  memoryBytes: number,
  share: number,
  { min, max }: { min: number; max: number },
): number {
  const wanted = Math.floor((memoryBytes * share) / MB) * MB;
  return Math.max(min, Math.min(max, wanted));
}
