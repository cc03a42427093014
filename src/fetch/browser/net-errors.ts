import type { FailureCode } from '../../core/failures.ts';

interface NetFailure {
  code: FailureCode;
  detail: string;
}

/** Chromium's names for what went wrong, in this order: the first that fits. Only our own words are shown. */
const SIGNS: readonly [RegExp, FailureCode, string][] = [
  [/^NAME_|^DNS_|^ICANN_/, 'dns', 'The host name could not be resolved'],
  [/^CERT_|^SSL_|^BAD_SSL|^ECH_/, 'tls', 'The TLS handshake failed'],
  [/^(CONNECTION_TIMED_OUT|TIMED_OUT)$/, 'connect-timeout', 'The connection timed out'],
  [
    /^CONTENT_LENGTH_MISMATCH|^INCOMPLETE_CHUNKED/,
    'truncated',
    'The connection closed before the body was complete',
  ],
  [/^CONTENT_DECODING/, 'bad-encoding', 'The Content-Encoding does not fit the bytes'],
  [
    /^(CONNECTION_RESET|CONNECTION_CLOSED|CONNECTION_ABORTED|EMPTY_RESPONSE|SOCKET_NOT_CONNECTED)$/,
    'reset',
    'The connection broke before the response was complete',
  ],
  [/^(PROXY_|TUNNEL_|SOCKS_|MANDATORY_PROXY)/, 'connect', 'The connection failed'],
  [/^(CONNECTION_|ADDRESS_|INTERNET_|NETWORK_)/, 'connect', 'The connection failed'],
  [/^UNSAFE_PORT$/, 'connect', 'Browsers do not connect to this port'],
  [
    /^(INVALID_|HTTP2_|HTTP_|QUIC_|RESPONSE_HEADERS|UNEXPECTED)/,
    'protocol',
    'The response is not valid HTTP',
  ],
  [/^(ABORTED|FAILED|INSUFFICIENT_RESOURCES|OUT_OF_MEMORY)$/, 'browser', 'The browser gave the page up'],
  [/^(BLOCKED|TOO_MANY_REDIRECTS|UNKNOWN_URL_SCHEME)/, 'protocol', 'The browser did not take the response'],
];

/** What Playwright says when a navigation fails holds `net::ERR_…`; null when it says something else. */
export function failureOfNavigation(error: unknown): NetFailure | null {
  const name = /net::ERR_([A-Z0-9_]{2,64})/.exec(error instanceof Error ? error.message : '')?.[1];
  if (name === undefined) return null;
  for (const [sign, code, words] of SIGNS)
    if (sign.test(name)) return { code, detail: `${words} (${name}).` };
  return { code: 'protocol', detail: `The browser could not load the page (${name}).` };
}
