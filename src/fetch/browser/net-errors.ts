import type { FailureCode } from '../../core/failures.ts';

interface NetFailure {
  code: FailureCode;
  detail: string;
}

/** Chromium's names for what went wrong, in this order: the first that fits. Only our own words are shown. */
const SIGNS: readonly [RegExp, FailureCode, string][] = [
  [/^NAME_|^DNS_|^ICANN_/, 'dns', 'the host name could not be resolved'],
  [/^CERT_|^SSL_|^BAD_SSL|^ECH_/, 'tls', 'the TLS handshake failed'],
  [/^(CONNECTION_TIMED_OUT|TIMED_OUT)$/, 'connect-timeout', 'the connection timed out'],
  [
    /^CONTENT_LENGTH_MISMATCH|^INCOMPLETE_CHUNKED/,
    'truncated',
    'the connection closed before the body was complete',
  ],
  [/^CONTENT_DECODING/, 'bad-encoding', 'the Content-Encoding does not match the body'],
  [
    /^(CONNECTION_RESET|CONNECTION_CLOSED|CONNECTION_ABORTED|EMPTY_RESPONSE|SOCKET_NOT_CONNECTED)$/,
    'reset',
    'the connection broke before the response was complete',
  ],
  [/^(PROXY_|TUNNEL_|SOCKS_|MANDATORY_PROXY)/, 'connect', 'the connection failed'],
  [/^(CONNECTION_|ADDRESS_|INTERNET_|NETWORK_)/, 'connect', 'the connection failed'],
  [/^UNSAFE_PORT$/, 'connect', 'browsers do not connect to this port'],
  [
    /^(INVALID_|HTTP2_|HTTP_|QUIC_|RESPONSE_HEADERS|UNEXPECTED)/,
    'protocol',
    'the response is not valid HTTP',
  ],
  [/^(ABORTED|FAILED|INSUFFICIENT_RESOURCES|OUT_OF_MEMORY)$/, 'browser', 'the browser gave up on the page'],
  [/^(BLOCKED|TOO_MANY_REDIRECTS|UNKNOWN_URL_SCHEME)/, 'protocol', 'the browser rejected the response'],
];

/** What Playwright says when a navigation fails holds `net::ERR_…`; null when it says something else. */
export function failureOfNavigation(error: unknown): NetFailure | null {
  const name = /net::ERR_([A-Z0-9_]{2,64})/.exec(error instanceof Error ? error.message : '')?.[1];
  if (name === undefined) return null;
  for (const [sign, code, words] of SIGNS) if (sign.test(name)) return { code, detail: `${words} (${name})` };
  return { code: 'protocol', detail: `the browser could not load the page (${name})` };
}
