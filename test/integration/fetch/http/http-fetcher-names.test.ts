import { once } from 'node:events';
import net from 'node:net';
import { describe, expect, test } from 'vitest';
import { ORIGINS_PER_WORKER_MAX } from '../../../../src/fetch/http/http-fetcher.ts';
import { DNS_TTL_MS } from '../../../../src/fetch/network/dns-cache.ts';
import { codeOf, requestOf, responseOf } from '../../../contract/fetcher-contract.ts';
import {
  afterThis,
  clock,
  lookupOf,
  openFetcher,
  openOrigin,
} from '../../../support/fetch/http-fetcher-setup.ts';
import { reply, sends } from '../../../support/servers/raw-origin.ts';

describe('names and addresses', () => {
  const hello = { '/': sends(reply('200 OK', ['Connection: close'], 'hello')) };
  /** 127.0.0.1 stands for the public Internet here, so that a test can connect to it. */
  const isLocalPublic = (ip: string) => ip === '127.0.0.1';

  test('one look-up serves many connections', async () => {
    const origin = await openOrigin(hello);
    const { asked, lookup } = lookupOf(['127.0.0.1']);
    const fetcher = openFetcher({ lookup });
    const request = requestOf(`http://site.test:${origin.port}/`, { parallel: 8 });
    await Promise.all(Array.from({ length: 20 }, async () => responseOf(await fetcher.fetch(request))));
    expect(asked).toEqual(['site.test']);
    expect(origin.accepted()).toBe(20);
  });

  test('a look-up is repeated after its time', async () => {
    const origin = await openOrigin(hello);
    const { asked, lookup } = lookupOf(['127.0.0.1']);
    let offset = 0;
    const fetcher = openFetcher({ lookup, clock: { now: () => clock.now() + offset } });
    const url = `http://site.test:${origin.port}/`;
    responseOf(await fetcher.fetch(requestOf(url)));
    offset += DNS_TTL_MS + 1;
    responseOf(await fetcher.fetch(requestOf(url)));
    expect(asked.length).toBe(2);
  });

  test('a name without answer fails with dns, and one without end too', async () => {
    const fetcher = openFetcher({ lookup: lookupOf([]).lookup });
    expect(codeOf(await fetcher.fetch(requestOf('http://none.test/')))).toBe('dns');
    const silent = openFetcher({ lookup: () => {} });
    const request = requestOf('http://never.test/', { timeouts: { connectMs: 100 } });
    expect(codeOf(await silent.fetch(request))).toBe('dns');
  });

  test('the next address is tried when one refuses', async () => {
    const origin = await openOrigin(hello);
    const fetcher = openFetcher({ lookup: lookupOf(['127.0.0.9', '127.0.0.1']).lookup });
    expect(responseOf(await fetcher.fetch(requestOf(`http://site.test:${origin.port}/`))).status).toBe(200);
  });

  test.each([
    'http://127.0.0.1/',
    'http://2130706433/',
    'http://0x7f.1/',
    'http://0177.0.0.1/',
    'http://[::1]/',
  ])('%s is refused as it stands', async (url) => {
    const { asked, lookup } = lookupOf(['127.0.0.1']);
    const result = await openFetcher({ lookup }).fetch(requestOf(url, { allowPrivate: false }));
    expect(codeOf(result)).toBe('private-address');
    expect(asked).toEqual([]);
  });

  test('only the public ones among the answers are dialled', async () => {
    const origin = await openOrigin(hello);
    // The same port at the address that must not be reached.
    let trapped = 0;
    const trap = net.createServer((socket) => {
      trapped += 1;
      socket.destroy();
    });
    trap.listen(origin.port, '127.0.0.2');
    await once(trap, 'listening');
    afterThis(() => void trap.close());
    const { lookup } = lookupOf(['127.0.0.2', '127.0.0.9', '127.0.0.1'], ['127.0.0.2', '127.0.0.1']);
    const isAllowed = (ip: string) => ip === '127.0.0.1' || ip === '127.0.0.9';
    const fetcher = openFetcher({ lookup, isPublicAddress: isAllowed });
    for (const name of ['two.test', 'one.test']) {
      const request = requestOf(`http://${name}:${origin.port}/`, { allowPrivate: false });
      expect(responseOf(await fetcher.fetch(request)).status).toBe(200);
    }
    expect(trapped).toBe(0);
  });

  test('a name that turns private is refused at the next connection', async () => {
    const origin = await openOrigin(hello);
    const { lookup } = lookupOf(['127.0.0.1'], ['127.0.0.2']);
    let offset = 0;
    const fetcher = openFetcher({
      lookup,
      isPublicAddress: isLocalPublic,
      clock: { now: () => clock.now() + offset },
    });
    const request = requestOf(`http://rebind.test:${origin.port}/`, { allowPrivate: false });
    expect(responseOf(await fetcher.fetch(request)).status).toBe(200);
    // Within its time the first answer is used, and nobody asks again.
    expect(responseOf(await fetcher.fetch(request)).status).toBe(200);
    offset += DNS_TTL_MS + 1;
    expect(codeOf(await fetcher.fetch(request))).toBe('private-address');
    expect(origin.accepted()).toBe(2);
  });
});

describe('many origins', () => {
  test('the idle ones used longest ago are closed', async () => {
    const origin = await openOrigin({ '/': sends(reply('200 OK', [], 'hello')) });
    const fetcher = openFetcher({ lookup: lookupOf(['127.0.0.1']).lookup });
    const count = ORIGINS_PER_WORKER_MAX + 20;
    for (let index = 0; index < count; index += 1) {
      responseOf(await fetcher.fetch(requestOf(`http://h${index}.test:${origin.port}/`)));
    }
    await expect.poll(() => origin.open()).toBe(ORIGINS_PER_WORKER_MAX);
    responseOf(await fetcher.fetch(requestOf(`http://h${count - 1}.test:${origin.port}/`)));
    expect(origin.accepted()).toBe(count);
    responseOf(await fetcher.fetch(requestOf(`http://h0.test:${origin.port}/`)));
    expect(origin.accepted()).toBe(count + 1);
  });

  test('more at once than the limit wait for each other', async () => {
    const origin = await openOrigin({ '/': sends(reply('200 OK', [], 'hello')) });
    const fetcher = openFetcher({ lookup: lookupOf(['127.0.0.1']).lookup });
    const urls = Array.from(
      { length: ORIGINS_PER_WORKER_MAX * 2 },
      (_, index) => `http://h${index}.test:${origin.port}/`,
    );
    const results = await Promise.all(urls.map((url) => fetcher.fetch(requestOf(url))));
    expect(results.every((result) => result.kind === 'response')).toBe(true);
    expect(origin.openMax()).toBeLessThanOrEqual(ORIGINS_PER_WORKER_MAX + 5);
  });
});
