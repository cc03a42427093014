import type { LookupAddress } from 'node:dns';
import net from 'node:net';
import tls from 'node:tls';
import type { FailureCode } from '../../core/failures.ts';
import type { AddressCheck } from '../../core/url/address-guard.ts';
import type { DnsCache } from './dns-cache.ts';

/**
 * Makes one connection, to an address that was checked, and to no other: literals are checked as they
 * stand, names are resolved here and the socket gets the answers that passed, so nothing resolves twice.
 */
export interface DialTarget {
  hostname: string;
  port: number;
  secure: boolean;
  isAllowed: AddressCheck;
  /** Lets later handshakes with the same origin be short. */
  tlsSession: Buffer | undefined;
}

export type DialCallback = (error: Error | null, socket: net.Socket | null) => void;

export class DialError extends Error {
  /** undici reconnects for ever on its own codes; any other one fails the request. */
  readonly code = 'SEINE_DIAL';
  readonly failure: FailureCode;

  constructor(failure: FailureCode, detail: string) {
    super(detail);
    this.failure = failure;
  }
}

export function privateAddress(): DialError {
  const detail =
    'the host has a private or reserved address; --allow-private allows it, unless the worker forbids it';
  return new DialError('private-address', detail);
}

export class Dial {
  /** Says which timeout it was when the dial takes too long. */
  stage: 'dns' | 'tcp' | 'tls' = 'dns';
  #target: DialTarget;
  #callback: DialCallback | null;
  #socket: net.Socket | null = null;

  constructor(target: DialTarget, names: DnsCache, callback: DialCallback) {
    this.#target = target;
    this.#callback = callback;
    const literal = literalOf(target.hostname);
    if (literal !== null) this.#connect([{ address: literal, family: net.isIP(literal) }]);
    else names.resolve(target.hostname, (error, addresses) => this.#resolved(error, addresses));
  }

  /** Gives up; the callback is not called any more. */
  cancel(): void {
    this.#callback = null;
    this.#socket?.destroy();
  }

  #resolved(error: NodeJS.ErrnoException | null, addresses: LookupAddress[]): void {
    if (error !== null || addresses.length === 0) {
      this.#fail(new DialError('dns', `the host name could not be resolved (${codeOf(error)})`));
    } else {
      this.#connect(addresses);
    }
  }

  #connect(addresses: LookupAddress[]): void {
    if (this.#callback === null) return;
    const { isAllowed, port } = this.#target;
    const checked = isAllowed === null ? addresses : addresses.filter((each) => isAllowed(each.address));
    if (checked.length === 0) {
      this.#fail(privateAddress());
      return;
    }
    this.stage = 'tcp';
    const single = checked.length === 1 ? checked[0]! : null;
    const where = {
      port,
      host: single === null ? this.#target.hostname : single.address,
      // Node tries several addresses in turn, and asks this for them instead of the resolver.
      lookup: answerWith(checked),
      noDelay: true,
    };
    const socket = this.#target.secure ? this.#secure(where) : net.connect(where);
    this.#socket = socket;
    socket.once('connect', () => {
      if (this.#target.secure) this.stage = 'tls';
      else this.#succeed(socket);
    });
    socket.once('secureConnect', () => this.#succeed(socket));
    socket.on('error', (error) => this.#fail(this.#errorOf(error)));
    // A socket that is closed without an error must not leave the caller waiting.
    socket.once('close', () =>
      this.#fail(new DialError('reset', 'the connection closed before it was ready')),
    );
  }

  #secure(where: { port: number; host: string; lookup: net.LookupFunction }): tls.TLSSocket {
    return tls.connect({ ...where, ...tlsOptionsOf(this.#target) });
  }

  #errorOf(error: Error): DialError {
    const code = codeOf(error);
    if (code === 'ETIMEDOUT') return new DialError('connect-timeout', 'the connection timed out (ETIMEDOUT)');
    if (this.stage === 'tcp') return new DialError('connect', `the connection failed (${code})`);
    return tlsErrorOf(error);
  }

  #succeed(socket: net.Socket): void {
    const callback = this.#callback;
    this.#callback = null;
    callback?.(null, socket);
  }

  #fail(error: DialError): void {
    const callback = this.#callback;
    this.#callback = null;
    if (callback === null) return;
    // undici loses requests when a connector fails within the call that started it.
    process.nextTick(callback, error, null);
  }
}

export function tlsOptionsOf({ hostname, tlsSession }: DialTarget): tls.ConnectionOptions {
  return {
    // Certificates for literals are checked by address, and SNI knows names only.
    servername: literalOf(hostname) !== null ? '' : hostname.endsWith('.') ? hostname.slice(0, -1) : hostname,
    // HTTP/1.1 only: a permit counts connections, and the limits and completeness checks here were
    // verified against that protocol; over HTTP/2 one connection would carry any number of requests.
    ALPNProtocols: ['http/1.1'],
    ...(tlsSession === undefined ? {} : { session: tlsSession }),
  };
}

export function tlsErrorOf(error: Error): DialError {
  const code = codeOf(error);
  if (code === 'ECONNRESET' || code === 'EPIPE') {
    return new DialError('reset', `the connection broke during the TLS handshake (${code})`);
  }
  return new DialError('tls', `the TLS handshake failed (${code})`);
}

/** Codes are made of capitals, digits and underscores; messages may hold anything. */
export function codeOf(error: unknown): string {
  const code = (error as NodeJS.ErrnoException | null)?.code;
  return typeof code === 'string' && /^\w{1,64}$/.test(code) ? code : 'unknown';
}

/** The address that a host name of a URL is, without the brackets of IPv6; null for names. */
export function literalOf(hostname: string): string | null {
  const bare = hostname.startsWith('[') ? hostname.slice(1, -1) : hostname;
  return net.isIP(bare) === 0 ? null : bare;
}

function answerWith(addresses: LookupAddress[]): net.LookupFunction {
  return (_hostname, options, callback) => {
    if (options.all) callback(null, addresses);
    else callback(null, addresses[0]!.address, addresses[0]!.family);
  };
}
