import type { Socket } from 'node:net';
import type { ProxyAddress } from '../../core/proxies/proxy.ts';
import { DialError } from './dial.ts';

/** What a proxy may say before it has connected. */
const PROXY_REPLY_BYTES_MAX = 16 * 1024;

/** The proxy works, but makes no tunnels to this port: plain http can be asked of it in another way. */
export class NoTunnelError extends DialError {}

/** Statuses by which proxies say that they do not want to, rather than that they cannot. */
const UNWILLING = new Set([400, 403, 404, 405, 501]);

export const NO_ACCESS = 'the proxy rejected the credentials (status 407)';

export function credentialsOf({ username, password }: ProxyAddress): string | null {
  if (username === '' && password === '') return null;
  return `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`;
}

/** Asks an http proxy for a tunnel. `authority`: the `host:port` it leads to. */
export function openHttpTunnel(
  socket: Socket,
  proxy: ProxyAddress,
  authority: string,
  done: (error: DialError | null) => void,
): void {
  const credentials = credentialsOf(proxy);
  const lines = [
    `CONNECT ${authority} HTTP/1.1`,
    `Host: ${authority}`,
    ...(credentials === null ? [] : [`Proxy-Authorization: ${credentials}`]),
  ];
  readReply(socket, takeHead, done);
  socket.write(`${lines.join('\r\n')}\r\n\r\n`, 'latin1');
}

function takeHead(bytes: Buffer): number | DialError | null {
  const head = bytes.toString('latin1');
  if (!'HTTP/1.'.startsWith(head.slice(0, 7))) return new DialError('proxy', 'the proxy does not speak HTTP');
  const end = head.indexOf('\r\n\r\n');
  if (end < 0) return null;
  const status = Number(/^HTTP\/1\.\d (\d{3})\b/.exec(head)?.[1] ?? 0);
  if (status >= 200 && status < 300) return end + 4;
  if (status === 407) return new DialError('proxy', NO_ACCESS);
  if (status === 0) return new DialError('proxy', 'the proxy does not speak HTTP');
  const detail = `the proxy did not connect to the host (status ${status})`;
  return new (UNWILLING.has(status) ? NoTunnelError : DialError)('proxy-tunnel', detail);
}

/** What a proxy answers before it is through. `null` from `take`: there is more to come. */
export type Take = (bytes: Buffer) => number | DialError | null;

const CLOSED = 'the proxy closed the connection too early';

/**
 * Gathers bytes until `take` has enough of them; what it leaves is put back, for the next reader of the socket. The
 * connection stays as it is: closing it after an error is up to the caller.
 */
export function readReply(socket: Socket, take: Take, done: (error: DialError | null) => void): void {
  let bytes: Buffer = Buffer.alloc(0);
  const end = (error: DialError | null) => {
    socket.off('readable', onReadable);
    socket.off('close', onClose);
    socket.off('end', onClose);
    done(error);
  };
  const onClose = () => end(new DialError('proxy', CLOSED));
  const onReadable = () => {
    const chunk: Buffer | null = socket.read();
    if (chunk === null) return;
    bytes = bytes.length === 0 ? chunk : Buffer.concat([bytes, chunk]);
    const taken = take(bytes);
    if (taken === null) {
      if (bytes.length > PROXY_REPLY_BYTES_MAX)
        end(new DialError('proxy', 'the reply of the proxy is too large'));
      return;
    }
    if (typeof taken !== 'number') return end(taken);
    if (taken < bytes.length) socket.unshift(bytes.subarray(taken));
    end(null);
  };
  socket.on('readable', onReadable);
  // An error is followed by this.
  socket.once('close', onClose);
  socket.once('end', onClose);
}
