import type { WorkerState, WorkerTimes } from '../../core/explain/slot-states.ts';
import type { Clock } from '../../ports/ambient.ts';

/** What tasks of a batch do, at the same time; the first of these that any of them does is what the batch does. */
const ORDER = ['cpu', 'network', 'browser', 'archive', 'robots', 'hostGap'] as const;
export type Activity = (typeof ORDER)[number];

/**
 * Puts each moment of a batch into one state, see core/explain. Begins as `coldStart`, until the job is loaded. While
 * nothing is done the batch reports.
 */
export class WorkTimer {
  readonly #clock: Clock;
  readonly #busyMs: (() => number) | null;
  /** How many tasks do each of them, in that order. */
  readonly #active = { cpu: 0, network: 0, browser: 0, archive: 0, robots: 0, hostGap: 0 };
  #times: WorkerTimes = {};
  #state: WorkerState = 'coldStart';
  #at: number;
  #takenAt: number;
  #busyAt: number;

  /** `busyMs`: how long the thread has computed so far, for whatever batch. */
  constructor(clock: Clock, busyMs: (() => number) | null = null) {
    this.#clock = clock;
    this.#busyMs = busyMs;
    this.#at = clock.now();
    this.#takenAt = this.#at;
    this.#busyAt = busyMs?.() ?? 0;
  }

  /** The job is loaded: from here on activities count. */
  start(): void {
    this.#enter(this.#top());
  }

  begin(activity: Activity): void {
    if (this.#active[activity]++ === 0) this.#enter(this.#top());
  }

  end(activity: Activity): void {
    if (--this.#active[activity] === 0) this.#enter(this.#top());
  }

  async during<T>(activity: Activity, work: Promise<T>): Promise<T> {
    this.begin(activity);
    try {
      return await work;
    } finally {
      this.end(activity);
    }
  }

  /** Since the last call; they add up to the time in between. */
  take(): WorkerTimes {
    this.#enter(this.#state);
    const times = this.#times;
    const ms = this.#at - this.#takenAt;
    this.#times = {};
    this.#takenAt = this.#at;
    const busyAt = this.#busyMs?.() ?? 0;
    const busyMs = busyAt - this.#busyAt;
    this.#busyAt = busyAt;
    // While the thread computes for other batches, this one waits for it as well, whatever else it waits for.
    return withCpu(times, Math.min(ms, busyMs), ms);
  }

  #top(): WorkerState {
    for (const activity of ORDER) if (this.#active[activity] > 0) return activity;
    return 'report';
  }

  #enter(state: WorkerState): void {
    const now = this.#clock.now();
    this.#times[this.#state] = (this.#times[this.#state] ?? 0) + Math.max(0, now - this.#at);
    this.#at = Math.max(this.#at, now);
    this.#state = state;
  }
}

/** At least so much of it was computing: the other states give of theirs, each the same share. */
function withCpu(times: WorkerTimes, cpuMs: number, ms: number): WorkerTimes {
  const own = times.cpu ?? 0;
  if (cpuMs <= own || ms <= own) return times;
  const factor = (ms - cpuMs) / (ms - own);
  const states = Object.entries(times) as [WorkerState, number][];
  return { ...Object.fromEntries(states.map(([state, time]) => [state, time * factor])), cpu: cpuMs };
}
