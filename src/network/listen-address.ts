import { SeineError } from '../core/errors.ts';

/** Where a server of this process listens. */
export interface ListenAddress {
  host: string;
  port: number;
  /** The option that it comes from, for messages. */
  option?: string;
}

export function cannotListen(
  { host, port, option = '--listen' }: ListenAddress,
  error: NodeJS.ErrnoException,
): SeineError {
  const reason =
    error.code === 'EADDRINUSE' ? 'another program listens there' : (error.code ?? error.message);
  return new SeineError(`cannot listen on ${host}:${port}: ${reason}`, {
    hint: `choose another address with ${option}; port 0 takes a free one`,
    cause: error,
  });
}
