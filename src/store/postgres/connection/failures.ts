import { messageOf, SeineError, StorageFullError } from '../../../core/errors.ts';

interface DriverError {
  code?: unknown;
  message?: unknown;
}

/** Of SQLSTATE and of the system: the connection is gone or cannot be made, which is mostly a matter of time. */
const UNREACHABLE = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EAI_AGAIN',
  // The server is shutting down, has crashed, or is starting.
  '57P01',
  '57P02',
  '57P03',
  '57P05',
  '25P03',
  // All its connections are taken.
  '53300',
]);

/** The transaction was given up in favour of another, or waited for too long: done again it works. */
const AGAIN = new Set(['40001', '40P01', '55P03', '57014', '25P02', '26000']);

/** No room on the disk. Whoever asked is told at once: it knows how to wait without holding a connection. */
const DISK_FULL = '53100';

/** Out of memory, or a failing disk: somebody must help, and then it goes on. */
const FAILING = new Set(['53200', '58030']);

const DROPPED =
  /connection (terminated|ended|error)|query read timeout|timeout exceeded|connection timeout|not queryable|socket/i;

/** Somebody else was faster: the transaction must be done again. */
export class ConflictError extends Error {
  readonly code = '40001';
}

const NO_PASSWORD = /SASL|password must be a string/i;

/** Said by statements behind one that failed: that one knows why. */
export function isAftermath(error: unknown): boolean {
  return (error as DriverError)?.code === '25P02' || isUnprepared(error);
}

/** A statement that was to be prepared with those that failed. */
export function isUnprepared(error: unknown): boolean {
  return (error as DriverError)?.code === '26000';
}

type Trouble =
  /** The connection must be made anew. */
  | 'lost'
  /** The connection is fine; the transaction must be done again. */
  | 'again'
  | 'failing'
  | 'fatal';

export function troubleOf(error: unknown): Trouble {
  if (error instanceof SeineError) return 'fatal';
  const { code } = (error ?? {}) as DriverError;
  if (typeof code === 'string') {
    if (UNREACHABLE.has(code) || code.startsWith('08')) return 'lost';
    if (AGAIN.has(code)) return 'again';
    if (FAILING.has(code)) return 'failing';
    if (/^[0-9A-Z]{5}$/.test(code)) return 'fatal';
  }
  return DROPPED.test(messageOf(error)) ? 'lost' : 'fatal';
}

/** What the database says or does, and not a fault of ours. */
function isFromDatabase(error: unknown): error is Error & DriverError {
  if (!(error instanceof Error) || error instanceof SeineError) return false;
  return (
    typeof (error as DriverError).code === 'string' ||
    DROPPED.test(error.message) ||
    NO_PASSWORD.test(error.message)
  );
}

/** What went wrong, in one sentence and with what to do; the URL is shown without its password. */
export function toSeineError(error: unknown, shown: string): unknown {
  if (!isFromDatabase(error)) return error;
  const { code } = error;
  const say = (message: string, hint: string) => new SeineError(message, { hint, cause: error });
  switch (code) {
    case '28P01':
    case '28000':
      return say(
        `the database at ${shown} rejected the login`,
        'check the user in the URL and the password in the URL, PGPASSWORD or SEINE_STORE_PASSWORD_FILE',
      );
    case '3D000':
      return say(`no such database: ${shown}`, 'create it with `createdb`, or correct the name');
    case '42501':
      return say(
        `the user lacks a permission in the database at ${shown}: ${messageOf(error)}`,
        'grant CREATE on the database, or make the user the owner of the schema',
      );
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return say(`unknown host of the database at ${shown}`, 'correct the host name');
    case DISK_FULL:
      return new StorageFullError(`the disk of the database at ${shown} is full`, { cause: error });
    case '53300':
      return say(
        `the database at ${shown} has no connection left`,
        'raise max_connections, or lower SEINE_STORE_CONNECTIONS',
      );
  }
  if (NO_PASSWORD.test(error.message))
    return say(
      `the database at ${shown} requires a password`,
      'set it in the URL, in PGPASSWORD or with SEINE_STORE_PASSWORD_FILE',
    );
  if (troubleOf(error) === 'lost')
    return say(
      `cannot reach the database at ${shown}: ${messageOf(error)}`,
      'check that it is running and listens there',
    );
  return say(`the database at ${shown} failed: ${messageOf(error)}`, 'see the log of the database');
}
