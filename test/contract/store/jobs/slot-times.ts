import { describe, expect, test } from 'vitest';
import type { SlotAccount } from '../../../../src/core/explain/explain.ts';
import { noSums } from '../../../../src/core/explain/slot-ledger.ts';
import { SLOT_TIME_RUNS_MAX } from '../../../../src/ports/store/slot-time-store.ts';
import { change, createJob, leaseOne, T0 } from '../../../support/fixtures.ts';
import { A, B, type StoreSetup } from '../store-setup.ts';

function accountOf(at: number): SlotAccount {
  const sums = { ...noSums(), wallMs: 1.5, busy: { network: 0.25 } };
  const hosts = [{ host: 'a.example', ready: 3, gapMs: 250, parallel: 4, latencyMs: null }];
  return {
    pass: 1,
    at,
    slots: 16,
    workers: 2,
    total: sums,
    recent: noSums(),
    rates: [1.5],
    hosts,
    hostsPerSecond: null,
    writeMs: 2,
  };
}

/** Where the time of slots went, and what is due next. */
export function testSlotTimes(setup: StoreSetup): void {
  const { add, settle, reopen } = setup;

  describe('the time of slots', () => {
    test('is kept for each run of a coordinator, the newest of them first, and not for ever', async () => {
      const { job } = setup;
      const other = await createJob(setup.store, 'other');
      await setup.store.slotTimes.save(job.id, 'one', accountOf(1_000.5));
      await setup.store.slotTimes.save(job.id, 'one', accountOf(2_000));
      await setup.store.slotTimes.save(job.id, 'two', accountOf(3_000));
      await setup.store.slotTimes.save(other.id, 'one', accountOf(4_000));
      await reopen();
      expect(await setup.store.slotTimes.load(job.id)).toEqual([accountOf(3_000), accountOf(2_000)]);
      for (let run = 0; run < SLOT_TIME_RUNS_MAX; run++)
        await setup.store.slotTimes.save(job.id, `later-${run}`, accountOf(5_000 + run));
      const kept = await setup.store.slotTimes.load(job.id);
      expect(kept).toHaveLength(SLOT_TIME_RUNS_MAX);
      expect(kept.at(-1)!.at).toBe(5_000);
      expect(await setup.store.slotTimes.load(other.id)).toHaveLength(1);
    });

    test('what is due next is a host, or a task that waits', async () => {
      const { job } = setup;
      const { frontier } = setup.store;
      expect(await frontier.nextDue(job.id)).toEqual({ host: null, taskAt: null });
      await add(`${A}/1`, `${A}/2`, `${B}/1`);
      const { id, tasks } = await leaseOne(setup.store, job, { count: 1, nextAt: 9_000 });
      const host = { host: new URL(A).host, at: 9_000 };
      expect(await frontier.nextDue(job.id)).toEqual({ host, taskAt: null });
      await settle(id, [{ ...change.deferred(tasks[0]!.id), dueAt: T0 + 7_000 }]);
      expect((await frontier.nextDue(job.id)).taskAt).toBe(T0 + 7_000);
    });
  });
}
