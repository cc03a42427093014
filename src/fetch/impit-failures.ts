/** What the library's errors mean. Its texts hold URLs and remote words: only ours are shown. */
export const IMPIT_FAILURES = {
  connect: 'the connection failed',
  tls: 'the TLS handshake failed',
  reset: 'the connection broke before the response was complete',
  truncated: 'the body ended before it was complete',
  'bad-encoding': 'the Content-Encoding does not match the body',
  protocol: 'the response is not valid HTTP',
} as const;

type ImpitCode = keyof typeof IMPIT_FAILURES;

/** In this order: the first that an error speaks of. */
const SIGNS: readonly [RegExp, ImpitCode][] = [
  [/Incomplete(?:Body|Message)|UnexpectedEof|unexpected (?:eof|end of file)/i, 'truncated'],
  [/ConnectionReset|BrokenPipe|connection reset/i, 'reset'],
  [/InvalidCertificate|certificate|HandshakeFailure|tls|ssl|AlertReceived/i, 'tls'],
  [/InvalidData|Invalid gzip|corrupt|deflate|brotli|zstd|Decompress/i, 'bad-encoding'],
  [/Parse\(|InvalidHeader|Protocol|Http2|h2::/i, 'protocol'],
  [/SocksConnect|Connect/i, 'connect'],
];

export function codeOfImpitError(error: unknown): ImpitCode {
  const text = error instanceof Error ? `${error.name} ${error.message}` : String(error);
  const code = SIGNS.find(([sign]) => sign.test(text))?.[1] ?? 'protocol';
  // Before the head nothing can be cut short: the connection broke.
  return code === 'truncated' && /SendRequest|IncompleteMessage/.test(text) ? 'reset' : code;
}
