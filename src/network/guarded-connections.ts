import dns from 'node:dns';
import { isIP, type LookupFunction, type Socket } from 'node:net';
import { Agent, buildConnector } from 'undici';
import type { AddressCheck } from '../core/url/address-guard.ts';

type Lookup = typeof dns.lookup;

interface GuardedOptions {
  isAllowed: AddressCheck;
  /** The error of a connection that is not made. */
  refused: (hostname: string) => Error;
  connectMs: number;
  limits?: Pick<Agent.Options, 'headersTimeout' | 'bodyTimeout' | 'connections' | 'webSocket'>;
  /** Told what became of each connection: one that becomes a WebSocket is the agent's no more. */
  onConnect?: (error: Error | null, socket: Socket | null) => void;
  /** Replaces the system resolver, in tests. */
  lookup?: Lookup;
}

export type GuardedConnections = Agent;

/** Connections to addresses that the check permits, and to no others: what is checked is what is dialled. */
export function openGuardedConnections({
  isAllowed,
  refused,
  connectMs,
  ...rest
}: GuardedOptions): GuardedConnections {
  const { limits, onConnect, lookup = dns.lookup } = rest;
  const connect = buildConnector({
    timeout: connectMs,
    lookup: isAllowed === null ? (lookup as LookupFunction) : guardedLookup(isAllowed, refused, lookup),
  });
  return new Agent({
    ...limits,
    connect(options, callback) {
      const { hostname } = options;
      const bare = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
      // Addresses as they stand in a URL are never looked up.
      if (isAllowed !== null && isIP(bare) !== 0 && !isAllowed(bare))
        process.nextTick(callback, refused(hostname), null);
      else if (!onConnect) connect(options, callback);
      else
        connect(options, (...result) => {
          const [error, socket] = result;
          onConnect(error, socket);
          callback(...result);
        });
    },
  });
}

function guardedLookup(
  isAllowed: (ip: string) => boolean,
  refused: (hostname: string) => Error,
  lookup: Lookup,
): LookupFunction {
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
