/** One table feeds retry decisions, dead-letter groups and docs/failure-codes.md; a test compares. */

/**
 * transient  try again after a backoff
 * throttled  the host asked for less: pause the host, then try again
 * blocked    a page of the site's defences came instead: try another way where the route allows one, else again later
 * permanent  trying again would give the same answer
 */
type RetryClass = 'transient' | 'throttled' | 'blocked' | 'permanent';

interface FailureKind {
  retry: RetryClass;
  /** Counts against the health of the host (its circuit breaker). */
  hostFault: boolean;
  doc: string;
}

export const FAILURES = {
  dns: { retry: 'transient', hostFault: true, doc: 'The host name could not be resolved.' },
  connect: { retry: 'transient', hostFault: true, doc: 'The connection was refused or unreachable.' },
  'connect-timeout': {
    retry: 'transient',
    hostFault: true,
    doc: 'No connection within the connect timeout.',
  },
  tls: {
    retry: 'permanent',
    hostFault: true,
    doc: 'The TLS handshake failed or the certificate is not valid.',
  },
  reset: {
    retry: 'transient',
    hostFault: true,
    doc: 'The connection broke before the response was complete.',
  },
  'headers-timeout': {
    retry: 'transient',
    hostFault: true,
    doc: 'No response headers within the headers timeout.',
  },
  'body-timeout': {
    retry: 'transient',
    hostFault: true,
    doc: 'The body stalled for longer than the body timeout.',
  },
  'task-timeout': {
    retry: 'transient',
    hostFault: true,
    doc: 'The whole task took longer than the task timeout.',
  },
  protocol: { retry: 'transient', hostFault: true, doc: 'The response is not valid HTTP.' },
  truncated: { retry: 'transient', hostFault: false, doc: 'The body ended before it was complete.' },
  'too-large': {
    retry: 'permanent',
    hostFault: false,
    doc: 'The body is larger than the limit, as sent or once decoded.',
  },
  'bad-encoding': {
    retry: 'permanent',
    hostFault: false,
    doc: 'The Content-Encoding is unknown or does not fit the bytes.',
  },
  'not-found': { retry: 'permanent', hostFault: false, doc: 'Status 404 or 410.' },
  unauthorized: { retry: 'permanent', hostFault: false, doc: 'Status 401 or 407.' },
  forbidden: { retry: 'permanent', hostFault: false, doc: 'Status 403 or 451.' },
  blocked: {
    retry: 'blocked',
    hostFault: true,
    doc: 'The site refused us by name: a page of its defences came instead of the content.',
  },
  captcha: {
    retry: 'blocked',
    hostFault: true,
    doc: 'The site wants proof of a human; CAPTCHAs are never solved.',
  },
  'soft-block': {
    retry: 'blocked',
    hostFault: true,
    doc: 'The status says success, but the page is a refusal, or the same for URLs that had pages of their own.',
  },
  throttled: { retry: 'throttled', hostFault: false, doc: 'Status 429: the host asked for fewer requests.' },
  unavailable: { retry: 'throttled', hostFault: true, doc: 'Status 503: the host is overloaded or down.' },
  'server-error': { retry: 'transient', hostFault: true, doc: 'Another 5xx status.' },
  'client-error': { retry: 'permanent', hostFault: false, doc: 'Another 4xx status.' },
  'bad-status': {
    retry: 'permanent',
    hostFault: false,
    doc: 'A status outside 200 to 599, or one that makes no sense here.',
  },
  'bad-redirect': {
    retry: 'permanent',
    hostFault: false,
    doc: 'A redirect without a usable http(s) Location, or to itself.',
  },
  'redirect-limit': { retry: 'permanent', hostFault: false, doc: 'More redirects in a row than the limit.' },
  'private-address': {
    retry: 'permanent',
    hostFault: false,
    doc: 'The address is private or reserved; --allow-private permits it.',
  },
  proxy: {
    retry: 'transient',
    hostFault: false,
    doc: 'The proxy could not be reached or did not let us in; another is tried, and it is no attempt while the proxy is down.',
  },
  'proxy-tunnel': {
    retry: 'transient',
    hostFault: true,
    doc: 'The proxy works, but did not connect to the host.',
  },
  api: {
    retry: 'transient',
    hostFault: false,
    doc: 'The remote scraping API refused, failed or could not be reached.',
  },
  browser: {
    retry: 'transient',
    hostFault: false,
    doc: 'The browser crashed, did not react any more, or could not be started.',
  },
  render: {
    retry: 'transient',
    hostFault: false,
    doc: 'The page came, but something that the job waits for or does in the browser did not work out.',
  },
  'robots-unreachable': {
    retry: 'permanent',
    hostFault: false,
    doc: 'robots.txt kept answering 5xx, or what it redirects to could not be had, so nothing may be fetched.',
  },
  'host-down': {
    retry: 'permanent',
    hostFault: false,
    doc: 'The host failed every probe of its circuit breaker.',
  },
  'parse-error': {
    retry: 'permanent',
    hostFault: false,
    doc: 'The handler or an extraction rule threw; the page is archived.',
  },
  validation: {
    retry: 'transient',
    hostFault: false,
    doc: 'A required element or field is missing, or a record does not fit its schema; the page is archived.',
  },
  'script-only': {
    retry: 'permanent',
    hostFault: false,
    doc: 'The page is nothing without its scripts, and a browser could not make it; under `fetcher: auto` a browser is tried first, which is no attempt.',
  },
  'media-type': {
    retry: 'permanent',
    hostFault: false,
    doc: 'The object is of a type that the job does not take.',
  },
  'worker-lost': {
    retry: 'permanent',
    hostFault: false,
    doc: 'The worker died each time it processed this task.',
  },
  internal: {
    retry: 'transient',
    hostFault: false,
    doc: 'Seine itself failed on this task; please report it.',
  },
} as const satisfies Record<string, FailureKind>;

export type FailureCode = keyof typeof FAILURES;

/** Why a task was not fetched, or its response not kept, by policy rather than by failure. */
export const SKIPS = {
  robots: 'robots.txt disallows the URL, or X-Robots-Tag forbids to keep the object.',
  scope: 'The URL, or the place it redirects to, is outside the scope of the job.',
} as const;

export type SkipCode = keyof typeof SKIPS;

export function failureKind(code: FailureCode): FailureKind {
  return FAILURES[code];
}

/** Failures of ours and of what stands between: they say nothing about the host. */
export function isOwnFailure(code: FailureCode): boolean {
  return code === 'internal' || code === 'proxy' || code === 'api' || code === 'browser';
}

/**
 * Whether the site refused how it was asked, so that another way may get an answer. A host that asks for fewer requests
 * (429) is asked less, not otherwise.
 */
export function isRefusal(code: FailureCode, httpStatus: number | null): boolean {
  return FAILURES[code].retry === 'blocked' || code === 'forbidden' || httpStatus === 406;
}

/** Whether the host asked for fewer requests, also where a challenge page came with its 429. */
export function asksForLess(code: FailureCode, httpStatus: number | null): boolean {
  return FAILURES[code].retry === 'throttled' || httpStatus === 429;
}

/** The failure that an HTTP status stands for, or null when the status is a success. */
export function failureOfStatus(status: number): FailureCode | null {
  if (status >= 200 && status < 300) return null;
  if (status === 404 || status === 410) return 'not-found';
  if (status === 401 || status === 407) return 'unauthorized';
  if (status === 403 || status === 451) return 'forbidden';
  if (status === 429) return 'throttled';
  if (status === 503) return 'unavailable';
  if (status >= 500 && status < 600) return 'server-error';
  if (status >= 400 && status < 500) return 'client-error';
  return 'bad-status';
}
