import http from 'node:http';
import type { Socket } from 'node:net';
import { LIMITS } from '../../../core/limits.ts';
import { codeOf, DialError, literalOf } from '../../network/dial.ts';
import type { ProxyTicket } from './proxy-ticket.ts';

/** Says in the proxy's own answers which ticket they are for. */
export const MARK_HEADER = 'x-seine-proxy';

/** What is meant for the next hop only. */
const HOP_HEADERS = new Set([
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]);

/** Carries one request for a plain http URL, and its answer. What goes wrong is kept with the ticket. */
export function forwardPlain(
  request: http.IncomingMessage,
  response: http.ServerResponse,
  url: URL,
  ticket: ProxyTicket,
  agent: http.Agent,
): void {
  const host = literalOf(url.hostname) ?? url.hostname;
  const port = Number(url.port || 80);
  const authority = `${host}:${port}`;
  let isRefused = false;
  const refuse = (error: DialError) => {
    // The first reason is the true one; the others follow from it.
    if (isRefused) return;
    isRefused = true;
    ticket.failed(authority, error);
    if (response.headersSent) cut(response.socket);
    else response.writeHead(502, { [MARK_HEADER]: ticket.mark, 'Content-Length': '0' }).end();
  };
  // Only what the site says is passed on.
  response.sendDate = false;
  let upstream: http.ClientRequest;
  try {
    upstream = http.request({
      agent,
      host,
      port,
      method: request.method,
      path: url.pathname + url.search,
      headers: sendable(request.rawHeaders),
      setHost: false,
      maxHeaderSize: LIMITS.headerBytesMax,
    });
  } catch {
    refuse(new DialError('protocol', 'the request cannot be sent over HTTP'));
    return;
  }
  let isAnswered = false;
  upstream.on('error', (error) => refuse(isAnswered ? broken(error) : unanswered(error)));
  upstream.on('response', (answer) => {
    isAnswered = true;
    try {
      response.writeHead(answer.statusCode ?? 0, answer.statusMessage, sendable(answer.rawHeaders));
    } catch {
      upstream.destroy();
      refuse(new DialError('protocol', 'the response is not valid HTTP'));
      return;
    }
    answer.on('error', (error) => refuse(broken(error)));
    answer.pipe(response);
  });
  // The browser may lose interest; what it has not asked for any more is not fetched on.
  response.once('close', () => {
    if (!response.writableFinished) upstream.destroy();
  });
  request.pipe(upstream);
}

function sendable(rawHeaders: string[]): string[] {
  const named = new Set<string>();
  for (let at = 0; at < rawHeaders.length; at += 2)
    if (rawHeaders[at]!.toLowerCase() === 'connection')
      for (const name of rawHeaders[at + 1]!.split(',')) named.add(name.trim().toLowerCase());
  const kept: string[] = [];
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!.toLowerCase();
    if (!HOP_HEADERS.has(name) && !named.has(name)) kept.push(rawHeaders[at]!, rawHeaders[at + 1]!);
  }
  return kept;
}

/** A cut connection must not look like the end of a whole answer. */
function cut(socket: Socket | null): void {
  socket?.resetAndDestroy();
}

function unanswered(error: Error): DialError {
  if (error instanceof DialError) return error;
  const code = codeOf(error);
  if (code === 'HPE_HEADER_OVERFLOW') return new DialError('protocol', 'the response headers are too large');
  if (code.startsWith('HPE_')) return new DialError('protocol', `the response is not valid HTTP (${code})`);
  return new DialError('reset', `the connection closed before the response headers were complete (${code})`);
}

function broken(error: Error): DialError {
  const code = codeOf(error);
  if (code.startsWith('HPE_') && code !== 'HPE_INVALID_EOF_STATE')
    return new DialError('protocol', `the response is not valid HTTP (${code})`);
  // Node calls an early end a reset, too, and says so in its message only.
  if (code === 'ECONNRESET' && error.message !== 'aborted')
    return new DialError('reset', 'the connection broke before the body was complete');
  return new DialError('truncated', 'the connection closed before the body was complete');
}
