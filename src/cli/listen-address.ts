import { SeineError } from '../core/errors.ts';
import type { ListenAddress } from '../network/listen-address.ts';

/** `127.0.0.1:7420`, `[::1]:7420`, or a port of 127.0.0.1. */
export function toListenAddress(text: string, option = '--listen'): ListenAddress {
  const [, host, port] = /^(?:(\[[0-9a-f:]+\]|[^:[\]]+):)?(\d{1,5})$/i.exec(text) ?? [];
  if (port === undefined || Number(port) > 65_535)
    throw new SeineError(`${option} needs an address and a port, got '${text}'`, {
      hint: 'for example 127.0.0.1:7420, or 127.0.0.1:0 for a free port',
    });
  return { host: (host ?? '127.0.0.1').replace(/^\[|\]$/g, ''), port: Number(port), option };
}
