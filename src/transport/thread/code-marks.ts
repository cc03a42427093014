/** Monotonic, and the same in all threads of a process. */
function nowMs(): number {
  return Number(process.hrtime.bigint() / 1_000_000n);
}

const BATCH = 0;
const TASK = 1;
const UNTIL = 2;
const BEAT = 3;
const COUNT = 4;

/** What a thread is doing, in memory that its dispatcher can read while the thread is stuck or dead. */
export class ThreadMarks {
  readonly buffer: SharedArrayBuffer;
  readonly #values: Float64Array;

  constructor(buffer = new SharedArrayBuffer(COUNT * Float64Array.BYTES_PER_ELEMENT)) {
    this.buffer = buffer;
    this.#values = new Float64Array(buffer);
  }

  /** Code of the job begins with a page, and has so much time. */
  begin(batchId: number, taskId: number, leftMs: number): void {
    this.#values[BATCH] = batchId;
    this.#values[TASK] = taskId;
    this.#values[UNTIL] = nowMs() + leftMs;
  }

  end(): void {
    this.#values[BATCH] = 0;
  }

  beat(): void {
    this.#values[BEAT] = nowMs();
  }

  /** The page whose code runs, and for how long it has been late; null when none does. */
  get running(): { batchId: number; taskId: number; lateMs: number } | null {
    const batchId = this.#values[BATCH]!;
    if (batchId === 0) return null;
    return { batchId, taskId: this.#values[TASK]!, lateMs: nowMs() - this.#values[UNTIL]! };
  }

  /** How long the thread has done nothing but one thing. */
  get silentMs(): number {
    const beat = this.#values[BEAT]!;
    return beat === 0 ? 0 : nowMs() - beat;
  }
}
