import { randomBytes } from 'node:crypto';
import type net from 'node:net';
import { BoundedMap } from '../../../core/lru.ts';
import { Dial, DialError, type DialTarget } from '../../network/dial.ts';
import type { DnsCache } from '../../network/dns-cache.ts';
import { type DialProxy, ProxyDial } from '../../network/proxy-dial.ts';

/** All that one page may load in a browser: far more than any page needs, and less than a film. */
const BROWSER_PAGE_BYTES_MAX = 256 * 1024 * 1024;

/** What one tab of the browser may reach, and through what. */
export interface TicketRoute {
  isAllowed: DialTarget['isAllowed'];
  proxy: DialProxy | null;
  /** Hosts that are not connected to, such as advertisers. */
  isBlocked: ((hostname: string) => boolean) | null;
}

type Dialled = (error: DialError | null, socket: net.Socket | null) => void;

const FAILURES_MAX = 1_000;

/** The right of one tab to use the filtering proxy, and what came of it. */
export class ProxyTicket {
  readonly name: string;
  /** Marks the proxy's own answers, which no site can know. */
  readonly mark = randomBytes(16).toString('hex');
  connectMs = 10_000;
  /** Told when a connection to a host is wanted, and when it is made. */
  onDial: ((authority: string, isDone: boolean) => void) | null = null;
  readonly #route: TicketRoute;
  readonly #names: DnsCache;
  readonly #failures = new BoundedMap<string, DialError>(FAILURES_MAX);
  readonly #sockets = new Set<net.Socket>();
  #closedBytes = 0;
  #bytesBefore = 0;
  #isFlooded = false;

  constructor(name: string, route: TicketRoute, names: DnsCache) {
    this.name = name;
    this.#route = route;
    this.#names = names;
  }

  /** What comes from now on is of the next page. */
  turnPage(): void {
    this.#failures.clear();
    this.#isFlooded = false;
    this.#bytesBefore = this.#total();
  }

  /** Received for the present page, also what scripts and pictures took. */
  get bytes(): number {
    return this.#total() - this.#bytesBefore;
  }

  /** Why the last connection or answer of a host failed; null when it did not. */
  failureOf(authority: string): DialError | null {
    return this.#failures.get(authority) ?? null;
  }

  failed(authority: string, error: DialError): void {
    this.#failures.set(authority, error);
  }

  /** Makes one checked connection. The function it gives ends the attempt. */
  dial(hostname: string, port: number, done: Dialled): () => void {
    const authority = `${hostname}:${port}`;
    const refusal = this.#refusal(hostname);
    if (refusal !== null) {
      this.failed(authority, refusal);
      process.nextTick(done, refusal, null);
      return () => {};
    }
    this.onDial?.(authority, false);
    const target = {
      hostname,
      port,
      secure: false,
      isAllowed: this.#route.isAllowed,
      tlsSession: undefined,
    };
    const dialled = (error: Error | null, socket: net.Socket | null) => {
      clearTimeout(timer);
      this.onDial?.(authority, true);
      if (socket === null) return this.#fail(authority, error, done);
      this.#failures.delete(authority);
      this.#keep(socket);
      done(null, socket);
    };
    const dial =
      this.#route.proxy === null
        ? new Dial(target, this.#names, dialled)
        : new ProxyDial(target, this.#route.proxy, this.#names, dialled);
    const timer = setTimeout(() => {
      dial.cancel();
      dialled(slowDial(dial.stage, this.connectMs), null);
    }, this.connectMs);
    return () => {
      clearTimeout(timer);
      dial.cancel();
    };
  }

  /** Cuts a page off that loads without end. Checked from time to time: the bytes are not watched as they pass. */
  isFlooded(): boolean {
    if (!this.#isFlooded && this.bytes > BROWSER_PAGE_BYTES_MAX) {
      this.#isFlooded = true;
      this.close();
    }
    return this.#isFlooded;
  }

  /** Ends every connection made under it. */
  close(): void {
    for (const socket of this.#sockets) socket.destroy();
  }

  #refusal(hostname: string): DialError | null {
    if (this.#isFlooded) return new DialError('too-large', 'the page loads more than the size limit');
    if (this.#route.isBlocked?.(hostname)) return new DialError('connect', 'the host is blocked');
    return null;
  }

  #fail(authority: string, error: Error | null, done: Dialled): void {
    const failure = error instanceof DialError ? error : new DialError('connect', 'the connection failed');
    this.failed(authority, failure);
    done(failure, null);
  }

  #total(): number {
    let bytes = this.#closedBytes;
    for (const socket of this.#sockets) bytes += socket.bytesRead;
    return bytes;
  }

  #keep(socket: net.Socket): void {
    this.#sockets.add(socket);
    socket.on('error', () => socket.destroy());
    socket.once('close', () => {
      this.#sockets.delete(socket);
      this.#closedBytes += socket.bytesRead;
    });
  }
}

function slowDial(stage: Dial['stage'] | ProxyDial['stage'], connectMs: number): DialError {
  if (stage === 'dns') return new DialError('dns', `the host name was not resolved within ${connectMs} ms`);
  if (stage === 'proxy')
    return new DialError('proxy', `the proxy could not be reached within ${connectMs} ms`);
  if (stage === 'tunnel')
    return new DialError('proxy-tunnel', `the proxy did not connect to the host within ${connectMs} ms`);
  return new DialError('connect-timeout', `no connection within ${connectMs} ms`);
}
