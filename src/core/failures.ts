/** One table feeds retry decisions, dead-letter groups and docs/failure-codes.md; a test compares. */

/**
 * transient  try again after a backoff
 * throttled  the host asked for fewer requests: pause the host, then try again
 * blocked    the site sent a block page: escalate if the route allows it, otherwise try again later
 * permanent  a retry would give the same answer
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
  connect: {
    retry: 'transient',
    hostFault: true,
    doc: 'The connection was refused, or the host is unreachable.',
  },
  'connect-timeout': {
    retry: 'transient',
    hostFault: true,
    doc: 'The connection was not established within the connect timeout.',
  },
  tls: {
    retry: 'permanent',
    hostFault: true,
    doc: 'The TLS handshake failed, or the certificate is not valid.',
  },
  reset: {
    retry: 'transient',
    hostFault: true,
    doc: 'The connection broke before the response was complete.',
  },
  'headers-timeout': {
    retry: 'transient',
    hostFault: true,
    doc: 'The response headers did not arrive within the headers timeout.',
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
    doc: 'The body is larger than the limit, before or after decoding.',
  },
  'bad-encoding': {
    retry: 'permanent',
    hostFault: false,
    doc: 'The Content-Encoding is unknown or does not match the body.',
  },
  'not-found': { retry: 'permanent', hostFault: false, doc: 'Status 404 or 410.' },
  unauthorized: { retry: 'permanent', hostFault: false, doc: 'Status 401 or 407.' },
  forbidden: { retry: 'permanent', hostFault: false, doc: 'Status 403 or 451.' },
  blocked: {
    retry: 'blocked',
    hostFault: true,
    doc: 'The site sent the block page of a bot protection instead of the content.',
  },
  captcha: {
    retry: 'blocked',
    hostFault: true,
    doc: 'The site asks for a CAPTCHA. Seine never solves CAPTCHAs.',
  },
  'soft-block': {
    retry: 'blocked',
    hostFault: true,
    doc: 'The status is a success, but the page is a block page, or URLs that had different pages now return the same one.',
  },
  throttled: { retry: 'throttled', hostFault: false, doc: 'Status 429: the host asked for fewer requests.' },
  unavailable: { retry: 'throttled', hostFault: true, doc: 'Status 503: the host is overloaded or down.' },
  'server-error': { retry: 'transient', hostFault: true, doc: 'Another 5xx status.' },
  'client-error': { retry: 'permanent', hostFault: false, doc: 'Another 4xx status.' },
  'bad-status': {
    retry: 'permanent',
    hostFault: false,
    doc: 'The status is outside 200 to 599, or not expected here.',
  },
  'bad-redirect': {
    retry: 'permanent',
    hostFault: false,
    doc: 'The redirect has no usable http(s) Location, or points to itself.',
  },
  'redirect-limit': {
    retry: 'permanent',
    hostFault: false,
    doc: 'There were more redirects in a row than the limit allows.',
  },
  'private-address': {
    retry: 'permanent',
    hostFault: false,
    doc: 'The address is private or reserved. Use --allow-private to allow it.',
  },
  proxy: {
    retry: 'transient',
    hostFault: false,
    doc: 'The proxy is unreachable or rejected the credentials. Another proxy is tried; failures of a proxy that is down do not count as attempts.',
  },
  'proxy-tunnel': {
    retry: 'transient',
    hostFault: true,
    doc: 'The proxy works, but could not connect to the host.',
  },
  'no-proxy': {
    retry: 'permanent',
    hostFault: false,
    doc: 'The row names a country in which its pool has no proxy, so nothing was requested. Add one to the list, resume, and use `dead --retry`.',
  },
  api: {
    retry: 'transient',
    hostFault: false,
    doc: 'The remote scraping API refused the request, failed, or is unreachable.',
  },
  browser: {
    retry: 'transient',
    hostFault: false,
    doc: 'The browser crashed, stopped responding, or could not start.',
  },
  render: {
    retry: 'transient',
    hostFault: false,
    doc: 'The page loaded, but a wait or an action of the job failed in the browser.',
  },
  'robots-unreachable': {
    retry: 'permanent',
    hostFault: false,
    doc: 'robots.txt kept answering 5xx, or its redirect target could not be fetched, so no page of the host may be fetched.',
  },
  'host-down': {
    retry: 'permanent',
    hostFault: false,
    doc: 'The host failed every probe of its circuit breaker.',
  },
  'parse-error': {
    retry: 'permanent',
    hostFault: false,
    doc: 'The handler or an extraction rule threw an error. The page is archived.',
  },
  validation: {
    retry: 'transient',
    hostFault: false,
    doc: 'A required element or field is missing, or a record does not match its schema. The page is archived.',
  },
  'script-only': {
    retry: 'permanent',
    hostFault: false,
    doc: 'The page has no content without JavaScript, and a browser could not render it. With `fetcher: auto` a browser is tried first; that does not count as an attempt.',
  },
  'media-type': {
    retry: 'permanent',
    hostFault: false,
    doc: 'The job does not accept this media type.',
  },
  'worker-lost': {
    retry: 'permanent',
    hostFault: false,
    doc: 'The worker died each time it processed this task.',
  },
  internal: {
    retry: 'transient',
    hostFault: false,
    doc: 'Seine itself failed on this task. Please report it.',
  },
} as const satisfies Record<string, FailureKind>;

export type FailureCode = keyof typeof FAILURES;

/** Why policy, not a failure, kept a task from being fetched or its response from being stored. */
export const SKIPS = {
  robots: 'robots.txt disallows the URL, or X-Robots-Tag forbids storing the file.',
  scope: 'The URL, or the URL it redirects to, is outside the scope of the job.',
} as const;

export type SkipCode = keyof typeof SKIPS;

const JUDGED_BY_CONTENT: ReadonlySet<string> = new Set<FailureCode>([
  'parse-error',
  'validation',
  'blocked',
  'captcha',
  'soft-block',
]);

/** Whether what a page says failed it: other code or other rules of blocking may read the stored page. */
export function isJudgedByContent(code: string | null): boolean {
  return code !== null && JUDGED_BY_CONTENT.has(code);
}

export function failureKind(code: FailureCode): FailureKind {
  return FAILURES[code];
}

/** Failures of ours and of what stands between: they say nothing about the host. */
export function isOwnFailure(code: FailureCode): boolean {
  return (
    code === 'internal' || code === 'proxy' || code === 'no-proxy' || code === 'api' || code === 'browser'
  );
}

/**
 * Whether the site refused how it was asked, so that another way may get an answer. A host that asks for fewer requests
 * (429) is asked less, not otherwise.
 */
export function isRefusal(code: FailureCode, httpStatus: number | null): boolean {
  return FAILURES[code].retry === 'blocked' || code === 'forbidden' || httpStatus === 406;
}

/** Whether the host asked for fewer requests, also where a challenge page came with its 429. */
export function isThrottling(code: FailureCode, httpStatus: number | null): boolean {
  return FAILURES[code].retry === 'throttled' || httpStatus === 429;
}

/**
 * Whether the host itself asked for fewer requests: status 429, or a 503 that says for how long. A bare 503 is the trouble
 * of its page as long as other pages of the host answer.
 */
export function isHostThrottling(
  code: FailureCode,
  httpStatus: number | null,
  retryAfterMs: number | null,
): boolean {
  return isThrottling(code, httpStatus) && (code !== 'unavailable' || retryAfterMs !== null);
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
