import { describe, expect, test } from 'vitest';
import { codeOf, createJob, leaseOne, T0, tasksOf } from '../../../support/fixtures.ts';
import { A, type StoreSetup } from '../store-setup.ts';

/** URLs that come from outside of a job's sources, and jobs that wait for them. */
export function testOpenJobs(setup: StoreSetup): void {
  const added = (jobId: number, ...urls: string[]) =>
    setup.store.frontier.enqueue(jobId, tasksOf(...urls), {
      now: T0,
      perTemplateMax: null,
      source: null,
      added: { rejected: 2 },
    });
  const stateOf = async (jobId: number) => (await setup.store.jobs.get(jobId)).state;

  describe('open jobs', () => {
    test('a job belongs to whom it was made for', async () => {
      const given = { ...codeOf('theirs'), name: 'theirs', now: T0, owner: 'key-7' };
      const made = await setup.store.jobs.create(given);
      await setup.reopen();
      expect(await setup.store.jobs.get(made.id)).toMatchObject({ owner: 'key-7', keepOpen: false });
      expect(setup.job).toMatchObject({ owner: null });
    });

    test('a job is finished only when it has nothing left, at that very moment', async () => {
      const { id } = await createJob(setup.store, 'x');
      await added(id, `${A}/1`);
      expect(await setup.store.jobs.finish(id, T0)).toBeNull();
      const batch = await leaseOne(setup.store, { id });
      expect(await setup.store.jobs.finish(id, T0)).toBeNull();
      expect(await stateOf(id)).toBe('running');
      await setup.store.frontier.release(batch.id, { now: T0, blame: 'none', reason: 'x' });
      await setup.store.frontier.failTasksOfHost(id, {
        host: 'a.example',
        code: 'server-error',
        detail: 'x',
        now: T0,
        limit: 10,
      });
      expect(await setup.store.jobs.finish(id, T0 + 5)).toBe('done');
      expect(await setup.store.jobs.get(id)).toMatchObject({ state: 'done', endedAt: T0 + 5, reason: null });
    });

    test('a job that was ended, or is to be, does not become done', async () => {
      const { jobs } = setup.store;
      for (const state of ['stopped', 'tripped', 'cancelled'] as const) {
        const { id } = await createJob(setup.store, state);
        await jobs.update(id, { state, endedAt: T0 });
        expect(await jobs.finish(id, T0 + 5)).toBe(state);
        expect(await jobs.get(id)).toMatchObject({ state, endedAt: T0 });
      }
      const { id } = await createJob(setup.store, 'asked');
      await jobs.update(id, { requestedState: 'cancel' });
      expect(await jobs.finish(id, T0)).toBeNull();
      await jobs.update(id, { requestedState: 'stop' });
      expect(await jobs.finish(id, T0)).toBe('done');
      const open = { ...codeOf('open', { sources: [], keepOpen: true }), name: 'open', now: T0 };
      const kept = await jobs.create(open);
      await jobs.update(kept.id, { requestedState: 'stop' });
      expect(await jobs.finish(kept.id, T0)).toBeNull();
      expect(await stateOf(kept.id)).toBe('running');
    });

    test('a job that is done runs again with a new URL, and not with one that it had', async () => {
      const { id } = await createJob(setup.store, 'x');
      await setup.store.jobs.update(id, { state: 'done', endedAt: T0, reason: 'x' });
      expect(await added(id)).toEqual({ accepted: 0, duplicates: 0, dropped: 0 });
      expect(await stateOf(id)).toBe('done');
      expect(await added(id, `${A}/1`)).toMatchObject({ accepted: 1 });
      expect(await setup.store.jobs.get(id)).toMatchObject({ state: 'running', endedAt: null, reason: null });
      await setup.store.jobs.update(id, { state: 'done' });
      expect(await added(id, `${A}/1`)).toMatchObject({ accepted: 0, duplicates: 1 });
      expect(await stateOf(id)).toBe('done');
      expect(await setup.store.jobs.counters(id)).toMatchObject({ accepted: 1, duplicates: 1, rejected: 6 });
    });

    test('a job that was stopped or cancelled stays so', async () => {
      for (const state of ['stopped', 'tripped', 'cancelled'] as const) {
        const { id } = await createJob(setup.store, state);
        await setup.store.jobs.update(id, { state });
        expect(await added(id, `${A}/1`)).toMatchObject({ accepted: 1 });
        expect(await stateOf(id)).toBe(state);
      }
    });

    test('a job that is kept open waits, costs nothing meanwhile, and is done once it is closed', async () => {
      const given = { ...codeOf('open', { sources: [], keepOpen: true }), name: 'open', now: T0 };
      const { id } = await setup.store.jobs.create(given);
      const isRunning = async () => (await setup.store.jobs.running()).some((job) => job.id === id);
      expect(await setup.store.jobs.finish(id, T0)).toBe('waiting');
      expect(await setup.store.jobs.get(id)).toMatchObject({
        state: 'waiting',
        keepOpen: true,
        endedAt: null,
      });
      expect(await isRunning()).toBe(false);
      expect((await setup.store.jobs.keptOpen('pe')).map((job) => job.id)).toEqual([id]);
      expect(await setup.store.jobs.keptOpen('other')).toEqual([]);
      await added(id, `${A}/1`);
      expect(await isRunning()).toBe(true);
      await setup.store.jobs.closeToMore(id, T0);
      expect(await stateOf(id)).toBe('running');
      await setup.store.jobs.update(id, { state: 'waiting' });
      await setup.store.jobs.closeToMore(id, T0 + 9);
      expect(await setup.store.jobs.get(id)).toMatchObject({
        state: 'done',
        keepOpen: false,
        endedAt: T0 + 9,
      });
      expect(await setup.store.jobs.keptOpen('open')).toEqual([]);
    });
  });
}
