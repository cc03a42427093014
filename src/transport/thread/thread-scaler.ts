import { newestDecisions, type ScalingDecision } from '../../core/explain/scaling-decision.ts';
import { THREAD_BYTES } from '../../core/machine/machine-shares.ts';
import type { Wanted } from '../../core/scaling/scaling.ts';
import { firstThreads, nextThreads, type ThreadRange, type ThreadState } from '../../core/scaling/threads.ts';
import { freeMemoryBytes, machine } from '../../machine/machine.ts';
import type { Logger } from '../../ports/ambient.ts';
import { CpuMeter } from '../cpu-meter.ts';

/** Measures what threads do, and says how many there should be. */
export class ThreadScaler {
  readonly #range: ThreadRange;
  readonly #slotsPerThread: number;
  readonly #logger: Logger | undefined;
  readonly #cpu = new CpuMeter();
  #state: ThreadState;
  #wanted: Wanted | null = null;
  #said: string | null = null;
  #batches = 0;
  #batchMs = 0;
  #batchesAt = performance.now();
  #tasks = 0;
  #lookedAt = performance.now();
  decisions: readonly ScalingDecision[] = [];

  constructor(range: ThreadRange, slotsPerThread: number, logger: Logger | undefined) {
    this.#range = range;
    this.#slotsPerThread = slotsPerThread;
    this.#logger = logger;
    this.#state = firstThreads(range);
  }

  want(wanted: Wanted | null): void {
    this.#wanted = wanted;
  }

  /** One batch more or less. */
  count(change: 1 | -1): void {
    const now = performance.now();
    this.#batchMs += this.#batches * (now - this.#batchesAt);
    this.#batchesAt = now;
    this.#batches += change;
  }

  countTasks(count: number): void {
    this.#tasks += count;
  }

  /** How many threads there should be. `computing`: the shares of the time since the last look, added up. */
  look(computing: number): number {
    const now = performance.now();
    const ms = now - this.#lookedAt;
    this.#lookedAt = now;
    this.#batchMs += this.#batches * (now - this.#batchesAt);
    this.#batchesAt = now;
    const before = this.#state.threads;
    const { state, reason } = nextThreads(
      this.#state,
      {
        ...{ now, computing, wanted: this.#wanted, slotsPerThread: this.#slotsPerThread },
        batches: this.#batchMs / ms,
        tasksPerSecond: (this.#tasks * 1_000) / ms,
        cpu: this.#cpu.take(),
        cores: machine().cores,
        room: before < this.#range.max ? Math.floor(freeMemoryBytes() / THREAD_BYTES) : 0,
      },
      this.#range,
    );
    this.#batchMs = 0;
    this.#tasks = 0;
    this.#state = state;
    this.#say(before, state.threads, reason);
    return state.threads;
  }

  /** More than these cannot be started now. */
  fail(threads: number, problem: string): void {
    const before = this.#state.threads;
    const pauseMs = this.#range.keepMs;
    const ceiling = { threads, until: performance.now() + pauseMs, pauseMs };
    this.#state = { ...this.#state, threads, trial: null, rates: [], ceiling };
    this.#say(before, threads, problem);
  }

  #say(before: number, threads: number, reason: string | null): void {
    if (reason === null) return;
    const text = `${threads} ${threads === 1 ? 'thread' : 'threads'}${threads === before ? '' : ` instead of ${before}`}: ${reason}`;
    // Why there are not more is the same in every look.
    if (threads === before && text === this.#said) return;
    this.#said = text;
    this.#logger?.info(text, { threads, before });
    this.decisions = newestDecisions([...this.decisions, { at: Date.now(), text }]);
  }
}
