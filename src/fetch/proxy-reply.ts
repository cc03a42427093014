import type { Socket } from 'node:net';
import { LIMITS } from '../core/limits.ts';
import { DialError } from './dial.ts';

/** What a proxy answers before it is through. `null` from `take`: there is more to come. */
export type Take = (bytes: Buffer) => number | DialError | null;

const CLOSED = 'the proxy closed the connection too early';

/**
 * Gathers bytes until `take` has enough of them; what it leaves is put back, for whoever reads the socket next. The
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
      if (bytes.length > LIMITS.proxyReplyBytesMax)
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
