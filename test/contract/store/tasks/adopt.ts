import { describe, expect, test } from 'vitest';
import type { Handover } from '../../../../src/ports/store.ts';
import { change, createJob, leaseOne, T0 } from '../../../support/fixtures.ts';
import { A, B, expectBalance, type StoreSetup } from '../store-setup.ts';

/** Batches whose coordinator ended while their workers went on. */
export function testAdopt(setup: StoreSetup): void {
  const { add, counters, settle, release, reopen } = setup;
  const handover: Handover = { epoch: 'e', needs: 'http', permits: [], robots: [], tasks: [] };

  describe('adopt', () => {
    test('a batch that was noted as sent is taken over with the tasks that it still holds', async () => {
      await add(`${A}/1`, `${A}/2`, `${B}/1`);
      const { id, tasks } = await leaseOne(setup.store, setup.job, { leaseMs: 5_000 });
      await setup.store.frontier.noteSent(id, { replyTo: 'there', handover });
      const [first, ...others] = tasks;
      await settle(id, [change.fetched(first!.id)], { final: false });
      await reopen();
      expect(await setup.store.frontier.orphans(setup.job.id)).toEqual([id]);
      const adopted = await setup.store.frontier.adopt(setup.job.id, id);
      expect(adopted).toMatchObject({ id, leaseUntil: T0 + 5_000, replyTo: 'there', handover });
      const byId = (a: { id: number }, b: { id: number }) => a.id - b.id;
      expect(adopted!.tasks.toSorted(byId)).toEqual(others.toSorted(byId));
      await settle(
        id,
        others.map((task) => change.fetched(task.id)),
      );
      expect(await counters()).toMatchObject({ done: 3, leased: 0, pending: 0 });
      expect(await setup.store.frontier.adopt(setup.job.id, id)).toBeNull();
      await expectBalance(setup.store, setup.job);
    });

    test('one whose worker ended with its coordinator is not, nor one of another job, nor one taken back', async () => {
      await add(`${A}/1`);
      const { id } = await leaseOne(setup.store, setup.job);
      const adopt = (jobId = setup.job.id) => setup.store.frontier.adopt(jobId, id);
      expect(await adopt()).toBeNull();
      await setup.store.frontier.noteSent(id, { replyTo: 'there', handover: null });
      expect(await adopt((await createJob(setup.store, 'other')).id)).toBeNull();
      expect(await adopt()).toMatchObject({ replyTo: 'there', handover: null });
      await release(id);
      expect(await adopt()).toBeNull();
      await settle(id, []);
      expect(await counters()).toMatchObject({ pending: 1, leased: 0 });
    });
  });
}
