import { afterAll } from 'vitest';
import { type BrowserFetcher, openBrowserFetcher } from '../../../../src/fetch/browser/browser-fetcher.ts';
import type { Fetcher } from '../../../../src/ports/fetcher.ts';
import { runFetcherContract } from '../../../contract/fetcher-contract.ts';
import { clock, isPublicAddress } from '../../../support/fetch/http-fetcher-setup.ts';

/** What every fetcher promises; a browser leaves HTTP and its codings to itself. */

let shared: Promise<BrowserFetcher> | null = null;
afterAll(async () => (await shared)?.close());

async function openWarm(): Promise<BrowserFetcher> {
  const fetcher = await openBrowserFetcher({
    clock,
    isPublicAddress,
    browser: { path: 'bundled', pages: 9 },
  });
  await fetcher.prepare();
  return fetcher;
}

/** One browser for all tests but those that close it with work to do: a start takes longer than most of them. */
function openShared(): Fetcher {
  shared ??= openWarm();
  const opening = shared;
  let pending = 0;
  return {
    async fetch(request) {
      pending++;
      return (await opening).fetch(request).finally(() => pending--);
    },
    async close() {
      if (pending === 0) return;
      shared = null;
      await (await opening).close();
    },
  };
}

runFetcherContract('the browser fetcher', openShared, { rawHead: false, rawBody: false, browser: true });
