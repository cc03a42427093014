import { describe, expect, test } from 'vitest';
import { KEY_LIMITS_DEFAULT } from '../../../../src/core/keys/api-key.ts';
import type { ApiKey } from '../../../../src/ports/store/key-store.ts';
import { codeOf, enqueue, leaseOne, T0, tasksOf } from '../../../support/fixtures.ts';
import type { StoreSetup } from '../store-setup.ts';

const UNUSED = { pages: 0, cost: 0, requests: 0, browserSeconds: 0 };

export function testKeys(setup: StoreSetup): void {
  describe('keys', () => {
    const key = (id: string, more: Partial<ApiKey> = {}) => ({
      id,
      name: id,
      hash: `hash of ${id}`,
      scope: 'write' as const,
      limits: { ...KEY_LIMITS_DEFAULT, pagesPerDay: 10, requestsPerDay: 7, browserSecondsPerDay: 0.5 },
      createdAt: T0,
      ...more,
    });

    test('are found by their hash until they are revoked', async () => {
      const { keys } = setup.store;
      expect(await keys.hasSome()).toBe(false);
      const made = await keys.create(key('a'));
      expect(made).toEqual({ ...key('a'), revokedAt: null });
      await keys.create(key('b', { createdAt: T0 + 1, scope: 'admin' }));
      expect(await keys.byHash('hash of a')).toEqual(made);
      expect(await keys.byHash('hash of c')).toBeNull();
      expect(await keys.revoke('a', T0 + 5)).toEqual({ ...made, revokedAt: T0 + 5 });
      expect(await keys.revoke('a', T0 + 9)).toEqual({ ...made, revokedAt: T0 + 5 });
      expect(await keys.revoke('c', T0)).toBeNull();
      expect(await keys.byHash('hash of a')).toBeNull();
      expect(await keys.hasSome()).toBe(true);
      expect((await keys.list()).map(({ id }) => id)).toEqual(['b', 'a']);
      await keys.revoke('b', T0);
      expect(await keys.hasSome()).toBe(false);
    });

    test('have a name that no other key in use has', async () => {
      const { keys } = setup.store;
      await keys.create(key('a', { name: 'ci' }));
      expect(await keys.create(key('b', { name: 'ci' }))).toBeNull();
      await keys.revoke('a', T0);
      expect(await keys.create(key('b', { name: 'ci' }))).not.toBeNull();
    });

    test('are replaced by id', async () => {
      const { keys } = setup.store;
      await keys.replace(key('a', { hash: 'old' }));
      await keys.revoke('a', T0);
      await keys.replace(key('a', { hash: 'new' }));
      expect(await keys.byHash('old')).toBeNull();
      expect((await keys.byHash('new'))?.id).toBe('a');
    });

    test('use pages and money of a day up to a limit, never above it', async () => {
      const { keys } = setup.store;
      const max = { pages: 10, cost: 1 };
      expect(await keys.use('a', 1, { pages: 11, cost: 0 }, max)).toBe(false);
      expect(await keys.use('a', 1, { pages: 4, cost: 0.5 }, max)).toBe(true);
      expect(await keys.use('a', 1, { pages: 7, cost: 0 }, max)).toBe(false);
      expect(await keys.use('a', 1, { pages: 0, cost: 0.75 }, max)).toBe(false);
      expect(await keys.use('a', 1, { pages: 6, cost: 0.5 }, max)).toBe(true);
      expect(await keys.usage('a', 1)).toEqual({ ...UNUSED, pages: 10, cost: 1 });
      expect(await keys.use('a', 1, { pages: 5, cost: 2 }, { pages: null, cost: null })).toBe(true);
      expect(await keys.usage('a', 1)).toEqual({ ...UNUSED, pages: 15, cost: 3 });
      expect(await keys.use('a', 2, { pages: 10, cost: 0 }, max)).toBe(true);
      expect(await keys.use('b', 1, { pages: 10, cost: 0 }, max)).toBe(true);
      expect(await keys.usage('c', 1)).toEqual(UNUSED);
    });

    test('count the pages of their own jobs that are not finished', async () => {
      const { store } = setup;
      const own = await store.jobs.create({ ...codeOf('own'), name: 'own', now: T0, owner: 'a' });
      await enqueue(store, own, tasksOf('https://a.example/1', 'https://a.example/2'));
      await setup.add('https://a.example/3');
      expect(await store.keys.pagesUnderWay('a')).toBe(2);
      expect(await store.keys.pagesUnderWay('b')).toBe(0);
      await store.jobs.update(own.id, { state: 'cancelled' });
      expect(await store.keys.pagesUnderWay('a')).toBe(0);
    });

    test('count the tasks of all their running jobs that are out', async () => {
      const { store } = setup;
      for (const name of ['one', 'two']) {
        const job = await store.jobs.create({ ...codeOf(name), name, now: T0, owner: 'a' });
        await enqueue(store, job, tasksOf(`https://${name}.example/1`, `https://${name}.example/2`));
        expect(await store.keys.tasksOut('a')).toBe(name === 'one' ? 0 : 2);
        await leaseOne(store, job);
      }
      await setup.add('https://a.example/3');
      await leaseOne(store, setup.job);
      expect(await store.keys.tasksOut('a')).toBe(4);
      expect(await store.keys.tasksOut('b')).toBe(0);
      await store.jobs.update((await store.jobs.find('two'))!.id, { state: 'cancelled' });
      expect(await store.keys.tasksOut('a')).toBe(2);
    });

    test('of many requests at once never use more than the limit', async () => {
      const { keys } = setup.store;
      const max = { pages: 10, cost: null };
      const taken = await Promise.all(
        Array.from({ length: 20 }, () => keys.use('a', 1, { pages: 3, cost: 0 }, max)),
      );
      expect(taken.filter(Boolean)).toHaveLength(3);
      expect((await keys.usage('a', 1)).pages).toBe(9);
    });
  });
}
