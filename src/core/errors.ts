/** Exit codes and operator errors: one table for the CLI, the docs and the tests. */
export const EXIT_CODES = {
  success: { code: 0, doc: 'The job finished, and every task has a result.' },
  internal: { code: 1, doc: 'Seine itself failed; the message says where.' },
  'bad-input': {
    code: 2,
    doc: 'An option, file, job or folder cannot be used, so nothing was started; or no row of a list is a URL.',
  },
  'dead-letters': { code: 3, doc: 'The job finished, but some tasks are dead letters: see `seine dead`.' },
  breaker: {
    code: 4,
    doc: 'The circuit breaker stopped the job: see `seine status`, then run `seine resume`. Of `seine calibrate`: no rate held.',
  },
  locked: { code: 5, doc: 'Another coordinator is running in this folder.' },
  'failed-check': {
    code: 6,
    doc: 'What `--fail-on` names has happened, `seine test` found a difference, or `seine verify` found a log that is not whole.',
  },
  interrupted: { code: 130, doc: 'A signal or `seine stop` stopped the job; `seine resume` continues it.' },
} as const;

export type ExitName = keyof typeof EXIT_CODES;

/** An operator can fix this. The message is one sentence; `hint` says what to do. */
export class SeineError extends Error {
  readonly exit: ExitName;
  readonly hint: string | null;
  /** The value of a job that is wrong, as it is written there: the job file is searched for its line. */
  readonly written: string | null;

  constructor(
    message: string,
    options: { exit?: ExitName; hint?: string | undefined; cause?: unknown; written?: string } = {},
  ) {
    super(message, { cause: options.cause });
    this.name = 'SeineError';
    this.exit = options.exit ?? 'bad-input';
    this.hint = options.hint ?? null;
    this.written = options.written ?? null;
  }
}

/** There is no room to store something. Nothing was changed, and the same can be tried again once there is. */
export class StorageFullError extends SeineError {
  constructor(message: string, options: { cause?: unknown } = {}) {
    super(message, { exit: 'breaker', hint: 'free some space, then run `seine resume`', ...options });
    this.name = 'StorageFullError';
  }
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Codes of Node for a server that is away, or that went away. */
export const UNREACHABLE_CODES: ReadonlySet<string> = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EPIPE',
  'ETIMEDOUT',
]);
