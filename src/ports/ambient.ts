/** What the outside world provides besides the four big ports; injected so that tests own time and chance. */

export interface Clock {
  /** Epoch milliseconds that never run backwards within a process. */
  now(): number;
  /** Calls back once, after this many milliseconds of this clock; the result cancels that. Absent: timers of the process. */
  after?(ms: number, run: () => void): () => void;
}

/** The one way to wait in the coordinator and in workers: a clock that is not the real one brings its own timers. */
export function startTimer(clock: Clock, ms: number, run: () => void): () => void {
  if (clock.after) return clock.after(ms, run);
  const timer = setTimeout(run, ms);
  return () => clearTimeout(timer);
}

export interface Random {
  /** In [0, 1). */
  next(): number;
}

export interface Logger {
  info(message: string, fields?: Record<string, unknown>): void;
  warn(message: string, fields?: Record<string, unknown>): void;
  error(message: string, fields?: Record<string, unknown>): void;
  /** Absent unless it is wanted: there is much of it. */
  debug?(message: string, fields?: Record<string, unknown>): void;
  /** The same, with these fields in every event. Absent where events are for people. */
  withFields?(fields: Record<string, unknown>): Logger;
}
