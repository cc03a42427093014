import { describe, expect, test } from 'vitest';
import { zeroCounters } from '../../../../src/core/model.ts';
import { createJob, specOf, T0 } from '../../../support/fixtures.ts';
import type { StoreSetup } from '../store-setup.ts';

/** Jobs and their runs. */
export function testJobs(setup: StoreSetup): void {
  const { reopen } = setup;

  describe('jobs', () => {
    test('a new job runs, and everything it was given comes back', async () => {
      const spec = specOf({
        name: 'shop',
        routes: [{ name: 'p', match: '/p/*', select: { title: 'h1' } }],
      });
      const made = await setup.store.jobs.create({
        name: 'shop',
        spec,
        specHash: 'x',
        bundle: 'bundles/1.mjs',
        file: '/jobs/shop.ts',
        now: T0,
      });
      expect(made).toMatchObject({ name: 'shop', run: 1, specHash: 'x', bundle: 'bundles/1.mjs' });
      expect(made).toMatchObject({ file: '/jobs/shop.ts', pass: 1, passStart: null, passStartedAt: T0 });
      expect(made).toMatchObject({
        state: 'running',
        requestedState: 'run',
        reason: null,
        endedAt: null,
        workedMs: 0,
      });
      expect(made.createdAt).toBe(T0);
      expect(made.spec).toEqual(spec);
      expect(await setup.store.jobs.find('shop')).toEqual(made);
      expect(await setup.store.jobs.counters(made.id)).toEqual(zeroCounters());
      await reopen();
      expect(await setup.store.jobs.find('shop')).toEqual(made);
    });

    test('runs of a name are counted, each name for itself', async () => {
      expect((await createJob(setup.store, 'x')).run).toBe(1);
      expect((await createJob(setup.store, 'x')).run).toBe(2);
      expect((await createJob(setup.store, 'y')).run).toBe(1);
      await reopen();
      expect((await createJob(setup.store, 'x')).run).toBe(3);
    });

    test('found by name, by name and run, and as the newest', async () => {
      const first = await createJob(setup.store, 'x');
      const second = await createJob(setup.store, 'x');
      const other = await createJob(setup.store, 'dash-ed');
      expect((await setup.store.jobs.find('x'))?.id).toBe(second.id);
      expect((await setup.store.jobs.find('x-1'))?.id).toBe(first.id);
      expect((await setup.store.jobs.find('x-2'))?.id).toBe(second.id);
      expect((await setup.store.jobs.find('dash-ed'))?.id).toBe(other.id);
      expect((await setup.store.jobs.find('dash-ed-1'))?.id).toBe(other.id);
      expect((await setup.store.jobs.find(null))?.id).toBe(other.id);
      for (const unknown of ['x-3', 'x-0', 'x-', '-1', '', 'X', 'x%', 'x-99999999999999999999']) {
        expect(await setup.store.jobs.find(unknown)).toBeNull();
      }
    });

    test('no job in an empty store', async () => {
      const empty = await setup.open(`${setup.place}/empty`);
      expect(await empty.jobs.find(null)).toBeNull();
      expect(await empty.jobs.list(10)).toEqual([]);
      await empty.close();
    });

    test('a list has the newest first and no more than asked', async () => {
      for (const each of ['x', 'y', 'z']) await createJob(setup.store, each);
      expect((await setup.store.jobs.list(2)).map((each) => each.name)).toEqual(['z', 'y']);
      expect(await setup.store.jobs.list(100)).toHaveLength(4);
    });

    test('an update changes what it names and nothing else', async () => {
      const other = await createJob(setup.store, 'other');
      await setup.store.jobs.update(setup.job.id, {
        state: 'stopped',
        reason: 'because',
        endedAt: T0 + 5,
        workedMs: 17,
      });
      await setup.store.jobs.update(setup.job.id, {});
      expect(await setup.store.jobs.find('test')).toEqual({
        ...setup.job,
        state: 'stopped',
        reason: 'because',
        endedAt: T0 + 5,
        workedMs: 17,
      });
      const spec = { ...setup.job.spec, batchSize: 7 };
      await setup.store.jobs.update(setup.job.id, { spec, reason: null, endedAt: null });
      expect(await setup.store.jobs.find('test')).toMatchObject({
        spec,
        reason: null,
        endedAt: null,
        state: 'stopped',
      });
      expect(await setup.store.jobs.find('other')).toEqual(other);
    });

    test('the requested state is read back', async () => {
      expect(await setup.store.jobs.requestedState(setup.job.id)).toBe('run');
      await setup.store.jobs.update(setup.job.id, { requestedState: 'cancel' });
      expect(await setup.store.jobs.requestedState(setup.job.id)).toBe('cancel');
    });
  });
}
