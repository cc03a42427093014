import type { LookupAddress } from 'node:dns';
import net from 'node:net';
import { afterEach } from 'vitest';
import { type HttpFetcherOptions, openHttpFetcher } from '../../../src/fetch/http/http-fetcher.ts';
import type { Fetcher, FetchResult } from '../../../src/ports/fetcher.ts';
import { type RequestDraft, requestOf } from '../../contract/fetcher-contract.ts';
import {
  openRawOrigin,
  type RawHandler,
  type RawOrigin,
  type RawOriginOptions,
} from '../servers/raw-origin.ts';

/** Fetchers and origins that close by themselves after each test, in reverse order. */

export const clock = { now: () => performance.timeOrigin + performance.now() };
export const isPublicAddress = (ip: string) => !ip.startsWith('127.') && ip !== '::1';

const closers: (() => void | Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

export function afterThis(close: () => void | Promise<void>): void {
  closers.push(close);
}

export function openFetcher(options: Partial<HttpFetcherOptions> = {}): Fetcher {
  const fetcher = openHttpFetcher({ clock, isPublicAddress, ...options });
  closers.push(() => fetcher.close());
  return fetcher;
}

export async function openOrigin(
  handlers: Record<string, RawHandler>,
  options?: RawOriginOptions,
): Promise<RawOrigin> {
  const origin = await openRawOrigin(handlers, options);
  closers.push(() => origin.close());
  return origin;
}

/** Fetches `/` of an origin that has only that. */
export async function fetchFrom(handler: RawHandler, draft?: RequestDraft): Promise<FetchResult> {
  const origin = await openOrigin({ '/': handler });
  return openFetcher().fetch(requestOf(origin.url, draft));
}

/** Answers each look-up with the next of the given lists, and the last one for ever. */
export function lookupOf(...answers: string[][]) {
  const asked: string[] = [];
  const lookup: HttpFetcherOptions['lookup'] = (hostname, _options, callback) => {
    const addresses = answers[Math.min(asked.length, answers.length - 1)]!;
    asked.push(hostname);
    const found: LookupAddress[] = addresses.map((address) => ({ address, family: net.isIP(address) }));
    setImmediate(() => {
      if (found.length > 0) callback(null, found);
      else callback(Object.assign(new Error('no such name'), { code: 'ENOTFOUND' }), []);
    });
  };
  return { asked, lookup };
}
