import type { Socket } from 'node:net';
import tls from 'node:tls';
import { isLocalName, type ProxyAddress } from '../../core/proxies/proxy.ts';
import type { AddressCheck } from '../../core/url/address-guard.ts';
import {
  Dial,
  type DialCallback,
  DialError,
  type DialTarget,
  literalOf,
  privateAddress,
  tlsErrorOf,
  tlsOptionsOf,
} from './dial.ts';
import type { DnsCache } from './dns-cache.ts';
import { openHttpTunnel } from './proxy-connect.ts';
import { openSocksTunnel } from './proxy-socks.ts';

/** A proxy as a pool of connections uses it. */
export interface DialProxy {
  address: ProxyAddress;
  /** The connection to the proxy itself. */
  dial: DialTarget;
  /** It makes no tunnels for plain http, and gets whole URLs instead. */
  wantsWholeUrls: boolean;
}

/** `isAllowed`: where the proxy itself may be. */
export function dialProxyOf(address: ProxyAddress, isAllowed: AddressCheck): DialProxy {
  const { scheme, host, port } = address;
  return {
    address,
    dial: { hostname: host, port, secure: scheme === 'https', isAllowed, tlsSession: undefined },
    wantsWholeUrls: false,
  };
}

/**
 * Makes one connection through a proxy. Names are looked up by the proxy, except for `socks5`, where they are looked up
 * and checked here; so addresses and names that are plainly private are refused before anything is sent.
 */
export class ProxyDial {
  /** `proxy` until it has our request, `tunnel` until it has connected. */
  stage: 'proxy' | 'tunnel' | 'tls' = 'proxy';
  readonly #target: DialTarget;
  readonly #proxy: DialProxy;
  readonly #names: DnsCache;
  #callback: DialCallback | null;
  #dial: Dial | null = null;
  #socket: Socket | null = null;

  constructor(target: DialTarget, proxy: DialProxy, names: DnsCache, callback: DialCallback) {
    this.#target = target;
    this.#proxy = proxy;
    this.#names = names;
    this.#callback = callback;
    const { hostname, isAllowed } = target;
    const literal = literalOf(hostname);
    if (isAllowed !== null && (literal === null ? isLocalName(hostname) : !isAllowed(literal))) {
      this.#fail(privateAddress());
    } else if (literal === null && proxy.address.scheme === 'socks5') this.#resolve();
    else this.#connect(literal ?? hostname);
  }

  /** Gives up; the callback is not called any more. */
  cancel(): void {
    this.#callback = null;
    this.#dial?.cancel();
    this.#socket?.destroy();
  }

  #resolve(): void {
    const { hostname, isAllowed } = this.#target;
    this.#names.resolve(hostname, (error, addresses) => {
      const found = isAllowed === null ? addresses : addresses.filter(({ address }) => isAllowed(address));
      if (error !== null || addresses.length === 0)
        this.#fail(new DialError('dns', 'the host name could not be resolved'));
      else if (found.length === 0) this.#fail(privateAddress());
      else this.#connect(found[0]!.address);
    });
  }

  #connect(host: string): void {
    if (this.#callback === null) return;
    this.#dial = new Dial(this.#proxy.dial, this.#names, (error, socket) => {
      this.#dial = null;
      this.#socket = socket;
      if (socket === null) this.#fail(unreachable(error));
      else if (this.#proxy.wantsWholeUrls) this.#succeed(socket);
      else this.#tunnel(socket, host);
    });
  }

  #tunnel(socket: Socket, host: string): void {
    const { address } = this.#proxy;
    const { hostname, port, secure } = this.#target;
    this.stage = 'tunnel';
    const done = (error: DialError | null) => {
      if (error) this.#fail(error);
      else if (secure) this.#secure(socket);
      else this.#succeed(socket);
    };
    if (address.scheme === 'http' || address.scheme === 'https')
      openHttpTunnel(socket, address, `${hostname}:${port}`, done);
    else openSocksTunnel(socket, address, { host, port }, done);
  }

  #secure(inner: Socket): void {
    this.stage = 'tls';
    const host = literalOf(this.#target.hostname);
    const socket = tls.connect({
      socket: inner,
      ...(host === null ? {} : { host }),
      ...tlsOptionsOf(this.#target),
    });
    this.#socket = socket;
    socket.once('secureConnect', () => this.#succeed(socket));
    socket.on('error', (error) => this.#fail(tlsErrorOf(error)));
    socket.once('close', () =>
      this.#fail(new DialError('reset', 'the connection closed before it was ready')),
    );
  }

  #succeed(socket: Socket): void {
    const callback = this.#callback;
    this.#callback = null;
    callback?.(null, socket);
  }

  #fail(error: DialError): void {
    const callback = this.#callback;
    this.#callback = null;
    if (callback === null) return;
    this.#socket?.destroy();
    // undici loses requests when a connector fails within the call that started it.
    process.nextTick(callback, error, null);
  }
}

/** Whatever went wrong on the way to the proxy is the proxy's: only the code in brackets is kept. */
function unreachable(error: Error | null): DialError {
  if (error instanceof DialError && error.failure === 'private-address')
    return new DialError('proxy', 'the proxy has a private or reserved address, which this worker refuses');
  const code = /\((\w+)\)/.exec(error?.message ?? '')?.[1];
  return new DialError('proxy', `the proxy could not be reached${code ? ` (${code})` : ''}`);
}
