import { connect, createServer, type Server } from 'node:net';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { isPublicAddress } from '../../../../src/core/url/address.ts';
import { openBrowserFetcher } from '../../../../src/fetch/browser/browser-fetcher.ts';
import { openHttpFetcher } from '../../../../src/fetch/http/http-fetcher.ts';
import { openImpersonateFetcher } from '../../../../src/fetch/impersonate/impersonate-fetcher.ts';
import { openRemoteApiFetcher } from '../../../../src/fetch/remote-api/remote-api-fetcher.ts';
import type { Fetcher, FetchRequest, FetchResult } from '../../../../src/ports/fetcher.ts';
import { requestOf } from '../../../contract/fetcher-contract.ts';
import { afterThis, clock, lookupOf } from '../../../support/fetch/http-fetcher-setup.ts';
import { specOf } from '../../../support/fixtures.ts';

/** A worker whose operator forbids private addresses dials none of what a job names, under whatever name. */

let connections = 0;
let server: Server;
let port: number;
beforeAll(async () => {
  server = createServer((socket) => {
    connections++;
    socket.on('error', () => {}).destroy();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  port = (server.address() as { port: number }).port;
});
afterAll(() => new Promise((resolve) => server.close(resolve)));
beforeEach(() => {
  connections = 0;
});

const options = () => ({
  clock,
  isPublicAddress,
  forbidsPrivate: true,
  // Every name is one of this machine.
  lookup: lookupOf(['127.0.0.1']).lookup,
});

async function fetchWith(
  open: (given: ReturnType<typeof options>) => Fetcher | Promise<Fetcher>,
  draft: Partial<FetchRequest>,
): Promise<FetchResult> {
  const fetcher = await open(options());
  afterThis(() => fetcher.close());
  return fetcher.fetch(requestOf('http://site.example/', { allowPrivate: true, ...draft }));
}

/** Connections so far: the server takes them in their order, so the one that is made here is the last. */
async function connectionsOfOthers(): Promise<number> {
  const own = connect(port, '127.0.0.1');
  await new Promise((resolve) =>
    own
      .on('error', () => {})
      .once('close', resolve)
      .resume(),
  );
  return --connections;
}

const NAMES = ['127.0.0.1', 'proxy.example', '[::ffff:127.0.0.1]'];

describe.each([
  ['http', openHttpFetcher],
  ['impersonate', openImpersonateFetcher],
  ['browser', openBrowserFetcher],
] as const)('the %s fetcher', (kind, open) => {
  const schemes = kind === 'http' ? ['http', 'https', 'socks5', 'socks5h'] : ['http'];
  test.each(schemes.flatMap((scheme) => NAMES.map((name) => `${scheme}://${name}`)))(
    'dials no proxy at %s',
    async (place) => {
      const result = await fetchWith(open, { proxy: { id: 'p', url: `${place}:${port}` } });
      expect(result.kind).toBe('failure');
      expect(await connectionsOfOthers()).toBe(0);
      if (kind !== 'http' || place.startsWith('socks5:')) return;
      const detail = 'the proxy has a private or reserved address, which this worker refuses';
      expect(result).toMatchObject({ code: 'proxy', detail });
    },
  );

  test('fetches no page there, whatever the request says', async () => {
    const result = await fetchWith(open, { url: `http://site.example:${port}/` });
    expect(result).toMatchObject({ kind: 'failure', code: 'private-address' });
    expect(await connectionsOfOthers()).toBe(0);
  });
});

describe('the fetcher for scraping APIs', () => {
  const apiOf = (host: string, input: object) => {
    const text = JSON.stringify(input).replaceAll('HOST', `${host}:${port}`);
    return { spec: specOf({ api: JSON.parse(text) }).api!, key: null };
  };

  test.each(NAMES)('asks no API at %s', async (host) => {
    for (const spec of [
      { url: 'http://HOST/?{url}' },
      { batch: { submit: 'http://HOST/lists', body: { urls: '{urls}' }, gatherMs: 1 } },
    ]) {
      const result = await fetchWith(openRemoteApiFetcher, { api: apiOf(host, spec) });
      const detail = 'the API has a private or reserved address, which this worker refuses';
      expect(result).toMatchObject({ kind: 'failure', code: 'api', detail });
      expect(await connectionsOfOthers()).toBe(0);
    }
  });
});
