/** What the outside world provides besides the four big ports; injected so that tests own time and chance. */

export interface Clock {
  /** Epoch milliseconds that never run backwards within a process. */
  now(): number;
}

export interface Random {
  /** In [0, 1). */
  next(): number;
}

export interface Logger {
  info(message: string, fields?: Record<string, unknown>): void;
  warn(message: string, fields?: Record<string, unknown>): void;
  error(message: string, fields?: Record<string, unknown>): void;
}
