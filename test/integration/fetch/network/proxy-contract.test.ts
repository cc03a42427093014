import { afterAll, beforeAll } from 'vitest';
import { openHttpFetcher } from '../../../../src/fetch/http/http-fetcher.ts';
import { runFetcherContract } from '../../../contract/fetcher-contract.ts';
import { clock, isPublicAddress } from '../../../support/fetch/http-fetcher-setup.ts';
import { type ProxyServer, startProxy } from '../../../support/servers/proxy-servers.ts';

/** What every fetcher promises holds through a proxy, too. */

let proxy: ProxyServer;
beforeAll(async () => {
  proxy = await startProxy();
});
afterAll(() => proxy.close());

runFetcherContract('the HTTP fetcher through a proxy', () => {
  const fetcher = openHttpFetcher({ clock, isPublicAddress });
  return {
    fetch: (request) => fetcher.fetch({ ...request, proxy: { id: 'one', url: proxy.url() } }),
    close: () => fetcher.close(),
  };
});
