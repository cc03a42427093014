import { describe, expect, test } from 'vitest';
import { change, collect, hostChange, robotsEntry, T0 } from '../../../support/fixtures.ts';
import { A, expectBalance, type StoreSetup } from '../store-setup.ts';

const CDN = 'cdn.example';

/** Hosts that are asked for something on behalf of another. */
export function testPiggybackedHosts(setup: StoreSetup): void {
  const { add, due, settle, reopen, release, counters } = setup;
  const named = async (host = CDN) => (await setup.store.frontier.hostsNamed([host]))[0]!;
  const lease = async (more: { startAt?: number; count?: number } = {}) => {
    const own = (await due())[0]?.id ?? (await named('a.example')).id;
    const grants = [
      { hostId: own, count: more.count ?? 1, nextAt: T0 },
      { hostId: (await named()).id, count: 0, startAt: more.startAt ?? T0, nextAt: T0 + 400 },
    ];
    return (
      await setup.store.frontier.lease(setup.job.id, { batches: [{ grants, leaseMs: 1_000 }], now: T0 })
    )[0]!;
  };

  describe('piggybacked hosts', () => {
    test('are known by name, though they have no tasks, and stay what they are', async () => {
      await add(`${A}/1`);
      const [first] = await setup.store.frontier.hostsNamed([CDN]);
      expect(first).toMatchObject({
        host: CDN,
        ready: 0,
        nextAt: 0,
        crawlDelayMs: null,
        pace: null,
        rests: 0,
      });
      await reopen();
      const both = await setup.store.frontier.hostsNamed(['a.example', CDN]);
      expect(both.map(({ host }) => host).sort()).toEqual(['a.example', CDN]);
      expect(both.find(({ host }) => host === CDN)?.id).toBe(first?.id);
      expect(await setup.hostsDue()).toEqual(['a.example']);
    });

    test('are taken with the tasks of another, for their time, and come back with the report', async () => {
      await add(`${A}/1`, `${A}/2`);
      const batch = await lease();
      expect(batch.tasks).toHaveLength(1);
      expect(batch.piggybacked).toEqual([(await named()).id]);
      expect((await named()).nextAt).toBe(T0 + 400);
      await settle(batch.id, [change.deferred(batch.tasks[0]!.id)], {
        hosts: [hostChange(CDN, { sent: 1, nextAt: T0 + 50, takenUntil: T0 + 400 })],
      });
      expect((await named()).nextAt).toBe(T0 + 50);
      expect(await counters()).toMatchObject({ accepted: 2, pending: 2, leased: 0 });
      await expectBalance(setup.store, setup.job);
    });

    test('are left out when they are taken until later, and when no task goes', async () => {
      await add(`${A}/1`, `${A}/2`);
      expect((await lease({ startAt: T0 })).piggybacked).toBeDefined();
      const late = await lease({ startAt: T0 + 399 });
      expect(late.tasks).toHaveLength(1);
      expect(late.piggybacked).toBeUndefined();
      const empty = await lease({ startAt: T0 + 400 });
      expect(empty).toMatchObject({ tasks: [] });
      expect(empty.piggybacked).toBeUndefined();
      expect((await named()).nextAt).toBe(T0 + 400);
    });

    test('stay taken when the batch is lost', async () => {
      await add(`${A}/1`);
      const { id } = await lease();
      expect(await release(id)).toEqual({ returned: 1, dead: 0 });
      await reopen();
      expect((await named()).nextAt).toBe(T0 + 400);
    });
  });

  test('where robots.txt is to be found is kept, and gone once it is known', async () => {
    await add(`${A}/1`, `${A}/2`);
    const redirectTo = 'https://cdn.example/files/robots.txt?shop=1';
    const { id } = await lease();
    const entry = robotsEntry(A, { text: null, redirectTo, detail: 'elsewhere' });
    const file = robotsEntry(redirectTo, { host: CDN, text: 'User-agent: *' });
    await settle(id, [], { final: false, robots: [entry, file] });
    await reopen();
    expect(await setup.store.hosts.robots(A)).toEqual(entry);
    expect(await setup.store.hosts.robots(redirectTo)).toEqual(file);
    await settle(id, [], { robots: [robotsEntry(A, { text: 'User-agent: *', crawlDelayMs: 2_000 })] });
    expect(await setup.store.hosts.robots(A)).toMatchObject({ text: 'User-agent: *', redirectTo: null });
    const [facts] = await collect(setup.store.hosts.list(setup.job.id));
    expect(facts?.robots).toMatchObject([{ origin: A, redirectTo: null }]);
  });
}
