import { afterEach, describe, expect, test } from 'vitest';
import type { AddressLog } from '../support/address-log.ts';
import { attemptsOf, closeAll, openProxy, openSite, run } from '../support/proxied-run.ts';
import { closedPort } from '../support/proxy-servers.ts';
import { lastJson } from '../support/seine-process.ts';

afterEach(closeAll);

/** Pages that a site served with a success, for each second between the first and the last. */
function throughputOf({ requests, banned }: AddressLog): number {
  const good = requests.filter(({ address, path }) => !banned.has(address) && path !== '/robots.txt');
  return ((good.length - 1) * 1_000) / (good.at(-1)!.at - good[0]!.at);
}

describe('ten proxies, of which three are dead and two banned', () => {
  test('are nearly as fast as the good ones alone, and nothing leaves without a proxy', async () => {
    const politeness = { rate: 100, parallel: 16, adaptive: false };
    const addresses = [11, 12, 13, 14, 15, 16, 17].map((last) => `127.0.0.${last}`);
    const working = await Promise.all(addresses.map((from) => openProxy({ from })));
    const good = working.slice(2).map((proxy) => proxy.url());
    const dead = [
      `http://127.0.0.1:${await closedPort()}`,
      (await openProxy({ behaves: 'closes' })).url(),
      (await openProxy({ credentials: { username: 'u', password: 'other' } })).url('u:wrong'),
    ];
    const plan = { pages: 800, job: { politeness } };

    const alone = await openSite();
    const first = await run({ ...plan, site: alone, list: good });
    expect(lastJson(first)).toMatchObject({ state: 'done', done: 800, dead: 0 });

    const mixed = await openSite();
    for (const address of addresses.slice(0, 2)) mixed.banned.add(address);
    const list = [...dead, ...working.map((proxy) => proxy.url())];
    const second = await run({ ...plan, site: mixed, list });
    expect(lastJson(second)).toMatchObject({ state: 'done', done: 800, dead: 0 });

    const ratio = throughputOf(mixed) / throughputOf(alone);
    expect(ratio).toBeGreaterThanOrEqual(0.9);
    for (const site of [alone, mixed]) {
      expect(site.requests.length).toBeGreaterThan(800);
      for (const { address } of site.requests) expect(addresses).toContain(address);
    }
    const refused = mixed.requests.filter(({ address }) => mixed.banned.has(address)).length;
    expect(refused).toBeLessThan(60);
    const ids = (await attemptsOf(second.dir)).map(({ proxy }) => proxy);
    expect(ids.every((id) => /^127\.0\.0\.1:\d+#[a-z0-9]{6}$/.test(id))).toBe(true);
    expect(new Set(ids).size).toBeGreaterThan(6);
  }, 120_000);
});
