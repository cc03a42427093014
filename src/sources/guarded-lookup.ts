import { lookup } from 'node:dns';
import { isIP, type LookupFunction } from 'node:net';
import { SeineError } from '../core/errors.ts';

/** Resolves names to addresses that may be dialled, and to no others: what is checked is what is dialled. */
export function guardedLookup(isAllowed: (ip: string) => boolean): LookupFunction {
  return (hostname, options, callback) => {
    lookup(hostname, { ...options, all: true }, (error, addresses) => {
      const allowed = error ? [] : addresses.filter(({ address }) => isAllowed(address));
      const [first] = allowed;
      if (error) callback(error, '');
      else if (first === undefined) callback(refused(hostname), '');
      else if (options.all) callback(null, allowed);
      else callback(null, first.address, first.family);
    });
  };
}

/** Addresses as they stand in a URL are never looked up. */
export function checkLiteral(hostname: string, isAllowed: (ip: string) => boolean): void {
  const bare = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
  if (isIP(bare) !== 0 && !isAllowed(bare)) throw refused(hostname);
}

function refused(hostname: string): SeineError {
  return new SeineError(`a source redirects to ${hostname}, which has a private or reserved address`, {
    hint: 'use the final URL of the file, or allow private addresses with --allow-private',
  });
}
