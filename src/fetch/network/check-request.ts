import type { FailureCode } from '../../core/failures.ts';
import { parseProxy } from '../../core/proxies/proxy.ts';
import type { FetchRequest, FetchResult } from '../../ports/fetcher.ts';

type Failure = Extract<FetchResult, { kind: 'failure' }>;

export function failure(code: FailureCode, detail: string, bytes = 0): Failure {
  return { kind: 'failure', code, detail, bytes };
}

/** Where a request goes, or why it cannot be sent. */
export function checkRequest({ url: text, proxy }: FetchRequest): URL | Failure {
  const url = URL.parse(text);
  if (url === null || (url.protocol !== 'http:' && url.protocol !== 'https:'))
    return failure('internal', 'only http and https URLs can be fetched');
  // Never in its place a request without: that would show the own address.
  if (proxy && parseProxy(proxy.url) === null) return failure('proxy', 'the proxy has no usable address');
  return url;
}
