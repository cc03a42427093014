import { describe, expect, test } from 'vitest';
import { codeOf, T0 } from '../../../support/fixtures.ts';
import type { StoreSetup } from '../store-setup.ts';

export function testRequests(setup: StoreSetup): void {
  describe('requests', () => {
    const begin = (holder: string, now: number, key = 'a') =>
      setup.store.requests.begin(key, {
        id: `${holder} ${now}`,
        holder,
        now,
        until: now + 60,
        forgetBefore: now - 1_000,
      });

    test('one is answered by one process at a time, and once', async () => {
      const { requests } = setup.store;
      expect(await begin('one', T0)).toEqual({ kind: 'begun', id: `one ${T0}` });
      expect(await begin('two', T0 + 59)).toEqual({ kind: 'in-flight' });
      expect(await begin('two', T0, 'b')).toMatchObject({ kind: 'begun' });
      await requests.extend(['a'], 'two', T0 + 999);
      await requests.extend(['a'], 'one', T0 + 100);
      expect(await begin('two', T0 + 99)).toEqual({ kind: 'in-flight' });
      // The first one is gone: another goes on with what it has made.
      expect(await begin('two', T0 + 100)).toEqual({ kind: 'begun', id: `one ${T0}` });
      await requests.answer('a', 'one', { payload: 'x', reply: 'late' });
      expect(await begin('one', T0 + 101)).toEqual({ kind: 'in-flight' });
      await requests.answer('a', 'two', { payload: 'p', reply: 'r' });
      expect(await begin('one', T0 + 500)).toEqual({ kind: 'answered', payload: 'p', reply: 'r' });
      await requests.release('a', 'two');
      expect(await begin('one', T0 + 1_000)).toMatchObject({ kind: 'answered' });
      expect(await begin('one', T0 + 1_001)).toEqual({ kind: 'begun', id: `one ${T0 + 1_001}` });
      expect(await requests.forget(T0 + 1, 10)).toBe(1);
      expect(await requests.forget(T0 + 1, 10)).toBe(0);
    });

    test('one that was given back, or whose process was alone and is gone, begins at once', async () => {
      const { requests } = setup.store;
      await begin('one', T0);
      await requests.release('a', 'two');
      expect(await begin('two', T0 + 1)).toEqual({ kind: 'in-flight' });
      await requests.release('a', 'one');
      expect(await begin('two', T0 + 1)).toEqual({ kind: 'begun', id: `one ${T0}` });
      await requests.releaseAll();
      expect(await begin('one', T0 + 2)).toEqual({ kind: 'begun', id: `one ${T0}` });
    });

    test('one makes one job', async () => {
      const { jobs } = setup.store;
      const given = { ...codeOf('x'), now: T0, owner: 'key-1', countsPages: true };
      const made = await jobs.create({ ...given, name: 'x', requestId: 'r1' });
      expect(made).toMatchObject({ owner: 'key-1', countsPages: true });
      expect(await jobs.create({ ...given, name: 'y', requestId: 'r1' })).toEqual(made);
      expect((await jobs.create({ ...given, name: 'x', requestId: 'r2' })).id).not.toBe(made.id);
      expect((await jobs.create({ ...given, name: 'x', requestId: null })).run).toBe(3);
    });

    test('one may make a job that waits until it is let go', async () => {
      const { jobs } = setup.store;
      const { id } = await jobs.create({ ...codeOf('x'), name: 'x', now: T0, stopped: 'not yet' });
      expect(await jobs.get(id)).toMatchObject({
        state: 'stopped',
        requestedState: 'run',
        reason: 'not yet',
      });
      const running = async () => (await jobs.running()).some((job) => job.id === id);
      expect(await running()).toBe(false);
      await jobs.update(id, { state: 'running', reason: null });
      expect(await running()).toBe(true);
    });
  });
}
