import { FAILURES, type FailureCode, failureKind, SKIPS } from '../../../core/failures.ts';

interface ProblemKind {
  status: number;
  title: string;
  /** What the caller can do about it. */
  remedy: string;
}

/** Errors of the API by their stable code, which is the `type` of the problem (RFC 9457). */
export const PROBLEMS = {
  'bad-json': {
    status: 400,
    title: 'The body is not JSON.',
    remedy: 'Send valid JSON in UTF-8, with lists and objects at most 64 deep.',
  },
  'bad-yaml': {
    status: 400,
    title: 'The body is not YAML.',
    remedy: 'Correct the line that the detail names.',
  },
  'bad-request': {
    status: 400,
    title: 'The request cannot be read.',
    remedy: 'See the detail, and /docs for every call.',
  },
  'bad-option': {
    status: 400,
    title: 'A field or parameter is wrong.',
    remedy: 'Correct what the detail and `errors` name; /docs has all fields.',
  },
  'bad-url': {
    status: 400,
    title: 'The URL cannot be used.',
    remedy: 'Send an absolute http or https URL without credentials.',
  },
  'bad-cursor': {
    status: 400,
    title: 'The cursor is not one of this call.',
    remedy: 'Start without a cursor, and send `next_cursor` back unchanged.',
  },
  unauthorized: {
    status: 401,
    title: 'An API key is needed.',
    remedy: 'Send it as `x-api-key` or `Authorization: Bearer`; `seine keys create` makes one.',
  },
  forbidden: {
    status: 403,
    title: 'The key may not do this.',
    remedy: 'Use a key with the scope that the detail names.',
  },
  'not-allowed': {
    status: 403,
    title: 'Jobs of the API may not do this.',
    remedy: 'Leave the field out, or run the job on the machine of the server.',
  },
  'read-only': {
    status: 403,
    title: 'Nothing can be changed here.',
    remedy: 'Use the commands on the machine of the run, or start `seine serve`.',
  },
  'foreign-origin': {
    status: 403,
    title: 'Requests of other web pages are refused.',
    remedy: 'Call the API from a program, by the address that the server printed.',
  },
  'not-found': {
    status: 404,
    title: 'There is nothing at this address.',
    remedy: 'Check the path and the id; a key sees only its own jobs.',
  },
  'wrong-method': {
    status: 405,
    title: 'The method is not one of this path.',
    remedy: 'Use a method that the header `Allow` names.',
  },
  'too-slow': {
    status: 408,
    title: 'The request took too long to arrive.',
    remedy: 'Send it faster, or in smaller parts.',
  },
  conflict: {
    status: 409,
    title: 'The job is not in a state for this.',
    remedy: 'Look at the job first; the detail says what it is doing.',
  },
  'over-budget': {
    status: 409,
    title: 'It would probably cost more than `max_cost_usd`.',
    remedy: 'See `quote`; allow more, or ask for less.',
  },
  'in-flight': {
    status: 409,
    title: 'A request with this Idempotency-Key is being answered.',
    remedy: 'Wait for `Retry-After`, then send the same request again.',
  },
  'too-large-body': {
    status: 413,
    title: 'The body is too large.',
    remedy: 'Send fewer URLs at once, or stream them as application/x-ndjson.',
  },
  'wrong-media-type': {
    status: 415,
    title: 'The Content-Type is not supported.',
    remedy: 'Send application/json; POST /batch takes application/x-ndjson, too.',
  },
  'key-reused': {
    status: 422,
    title: 'The Idempotency-Key was used for another request.',
    remedy: 'Use a new key for each request, and the same only to repeat it.',
  },
  'nothing-accepted': {
    status: 422,
    title: 'No URL could be accepted.',
    remedy: 'See `rejected` for the reasons.',
  },
  'rate-limited': {
    status: 429,
    title: 'The key has sent too many requests.',
    remedy: 'Wait for `Retry-After` seconds.',
  },
  'too-many-open': {
    status: 429,
    title: 'The key has too many requests open at once.',
    remedy: 'Close some of them, or wait for `Retry-After` seconds.',
  },
  'too-large-headers': {
    status: 431,
    title: 'The headers are too large.',
    remedy: 'Send less than 16 KB of headers.',
  },
  'internal-error': {
    status: 500,
    title: 'The server failed.',
    remedy: 'Try again; if it stays, look into the log of the server.',
  },
  busy: {
    status: 503,
    title: 'The server has no room for this now.',
    remedy: 'Wait for `Retry-After` seconds.',
  },
  'no-room': {
    status: 507,
    title: 'The disk of the server is full.',
    remedy: 'Free some space, then send the request again.',
  },
} as const satisfies Record<string, ProblemKind>;

export type ProblemCode = keyof typeof PROBLEMS;

interface ProblemDetails {
  type: string;
  title: string;
  status: number;
  detail: string;
  remedy: string;
  [extension: string]: unknown;
}

/** Where the table of codes is, for people. */
const TYPE_BASE = '/docs#';

/** An answer that is not what was asked for. `detail` is for people: never a stack, a path or SQL. */
export class Problem extends Error {
  readonly code: ProblemCode;
  readonly headers: Readonly<Record<string, string>>;
  readonly extensions: Readonly<Record<string, unknown>>;

  constructor(
    code: ProblemCode,
    detail: string = PROBLEMS[code].title,
    given: { headers?: Record<string, string>; extensions?: Record<string, unknown> } = {},
  ) {
    super(detail);
    this.name = 'Problem';
    this.code = code;
    this.headers = given.headers ?? {};
    this.extensions = given.extensions ?? {};
  }

  get status(): number {
    return PROBLEMS[this.code].status;
  }

  get body(): ProblemDetails {
    const { status, title, remedy } = PROBLEMS[this.code];
    const type = `${TYPE_BASE}${this.code}`;
    return { type, code: this.code, title, status, detail: this.message, remedy, ...this.extensions };
  }
}

/** What became of a URL that has no page: one shape for failures and skips. */
export interface UrlError {
  type: string;
  code: string;
  title: string;
  detail: string | null;
  retryable: boolean;
  http_status: number | null;
}

export function urlError(code: string, detail: string | null, httpStatus: number | null): UrlError {
  const shared = { type: `${TYPE_BASE}${code}`, code, detail, http_status: httpStatus };
  if (Object.hasOwn(FAILURES, code)) {
    const { doc, retry } = failureKind(code as FailureCode);
    return { ...shared, title: doc, retryable: retry !== 'permanent' };
  }
  const title = Object.hasOwn(SKIPS, code) ? SKIPS[code as keyof typeof SKIPS] : 'The page was not fetched.';
  return { ...shared, title, retryable: false };
}
