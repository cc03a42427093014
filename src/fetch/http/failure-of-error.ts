import type { FailureCode } from '../../core/failures.ts';
import { codeOf, DialError } from '../network/dial.ts';

/** How far the exchange had come when undici reported the error. */
export type Progress = 'unanswered' | 'answering' | 'headers';

interface Failure {
  code: FailureCode;
  detail: string;
  /** The strict parser refused what a lenient one may be able to read. */
  isRefused?: true;
}

const TRUNCATED: Failure = {
  code: 'truncated',
  detail: 'the connection closed before the body was complete',
};
const BROKEN = new Set(['ECONNRESET', 'EPIPE', 'ECONNABORTED', 'ETIMEDOUT', 'EHOSTUNREACH', 'ENETUNREACH']);

/**
 * Only codes and fixed texts go into the detail: messages may quote what the site sent.
 * Told apart by code, and by message where undici has nothing else; tests pin those.
 */
export function failureOfError(error: Error, progress: Progress): Failure {
  if (error instanceof DialError) return { code: error.failure, detail: error.message };
  const code = codeOf(error);
  if (code === 'UND_ERR_SOCKET') return failureOfSocket(error, progress);
  if (code === 'UND_ERR_HEADERS_OVERFLOW')
    return { code: 'protocol', detail: 'the response headers are too large' };
  // undici reports every parser error as this one as soon as a Content-Length was seen.
  if (isLengthMismatch(error)) {
    if (progress === 'headers') return TRUNCATED;
    return { code: 'protocol', detail: 'the Content-Length of the response is invalid', isRefused: true };
  }
  if (error.name === 'HTTPParserError') return failureOfParser(error);
  // An assertion of undici, for example on status 099.
  if (code === 'ERR_ASSERTION') return { code: 'protocol', detail: 'the response is not valid HTTP' };
  if (BROKEN.has(code)) return { code: 'reset', detail: `the connection broke (${code})` };
  // An alert or a bad record after the handshake.
  if (code.startsWith('ERR_SSL_') || code === 'EPROTO')
    return { code: 'tls', detail: `TLS failed (${code})` };
  return { code: 'internal', detail: `the request could not be made (${code})` };
}

function failureOfSocket(error: Error, progress: Progress): Failure {
  if (error.message === 'bad response' || error.message === 'bad upgrade') {
    return {
      code: 'protocol',
      detail: 'the response is an unexpected interim or upgrade response',
      // An unsolicited `100 Continue`; nothing is read behind an upgrade.
      ...(error.message === 'bad response' ? { isRefused: true } : {}),
    };
  }
  if (progress === 'headers') return TRUNCATED;
  return { code: 'reset', detail: 'the connection closed before the response headers were complete' };
}

/** The code of these is lost in undici; the reason in brackets is one of the parser's own fixed texts. */
function failureOfParser(error: Error): Failure {
  const reason = /\(([\w ,/'-]{1,80})\)$/.exec(error.message)?.[1];
  if (reason === 'Invalid EOF state') return TRUNCATED;
  return {
    code: 'protocol',
    detail: `the response is not valid HTTP${reason ? ` (${reason})` : ''}`,
    isRefused: true,
  };
}

export function isLengthMismatch(error: Error): boolean {
  return codeOf(error) === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH';
}

/** A server may close an idle connection just as the next request is on its way. */
export function isStaleConnection(error: Error): boolean {
  const code = codeOf(error);
  if (code === 'UND_ERR_SOCKET') return error.message === 'other side closed' || error.message === 'closed';
  return code === 'ECONNRESET' || code === 'EPIPE';
}
