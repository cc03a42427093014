import { expect, test } from 'vitest';
import { JobBreaker } from '../../../../src/coordinator/circuit-breaker/job-breaker.ts';
import { OpenPermits } from '../../../../src/coordinator/hosts/open-permits.ts';
import { makeBatch } from '../../../../src/coordinator/plan/open-batch.ts';
import { ReportReceiver } from '../../../../src/coordinator/report-receiver.ts';
import { RobotsCache } from '../../../../src/coordinator/robots/robots-cache.ts';
import { LearnedBatchTimes, LearnedSizes, OpenBatches } from '../../../../src/coordinator/run-state.ts';
import type { SettledReport } from '../../../../src/coordinator/settle/settler.ts';
import type { Permit, Report } from '../../../../src/core/batch/batch.ts';
import { givenBackPart } from '../../../../src/core/batch/report.ts';
import { jobOf, reportOf } from '../../../support/coordinator/batches.ts';
import { specOf } from '../../../support/fixtures.ts';

/** A receiver whose store answers when the test says so. */
function setup() {
  const started: string[] = [];
  const answers: ((settled: SettledReport) => void)[] = [];
  const released: number[] = [];
  const failed: string[] = [];
  const warnings: string[] = [];
  const woken = { count: 0 };
  const clock = { now: () => 0 };
  const logger = { warn: (text: string) => void warnings.push(text) };
  const job = jobOf();
  const batches = new OpenBatches();
  const permits = new OpenPermits();
  const storage = { onReport() {} };
  const breaker = new JobBreaker();
  const receiver = new ReportReceiver({
    store: {
      frontier: {
        async release(batchId) {
          released.push(batchId);
          return { returned: 1, dead: 0 };
        },
        async failTasksOfHost(_, { host }) {
          failed.push(host);
          return failed.length > 1 ? 0 : 7;
        },
      },
    },
    ...{ job, clock, logger, batches, storage, breaker },
    pageSizes: new LearnedSizes(),
    batchTimes: new LearnedBatchTimes(),
    budget: { add: async () => {} },
    progress: { onDelivery() {} },
    accountant: { onReport() {}, onEnd() {} },
    tracer: { onReport() {}, onSettled() {}, onLost() {} },
    permits,
    robots: new RobotsCache({ robots: async () => null }, 'seine', specOf().retry),
    wake: { notify: () => void woken.count++ },
    settler: {
      settle(_, report) {
        started.push(`${report.batchId}.${report.part}`);
        return new Promise((resolve) => answers.push(resolve));
      },
    },
  });
  for (const id of [1, 2])
    batches.add(makeBatch(job, [], { id, tasks: [] }, { budgetMs: 1, epoch: '1', robots: [] }));
  const answer = async (more: Partial<SettledReport> = {}) => {
    answers.shift()?.({ applied: true, failedHosts: [], lostLinks: false, ...more });
    await new Promise((resolve) => setImmediate(resolve));
  };
  return { receiver, batches, permits, breaker, started, answer, released, failed, warnings, woken };
}

const report = (batchId: number, part: number, final = false, more: Partial<Report> = {}) =>
  reportOf({ batchId, part, final, ...more });

test('reports of a batch are written down one after the other, those of others beside them', async () => {
  const { receiver, batches, started, answer, woken } = setup();
  const all = [report(1, 0), report(1, 1), report(2, 0, true), report(1, 2, true)].map((each) =>
    receiver.settle(each),
  );
  await new Promise((resolve) => setImmediate(resolve));
  expect(started).toEqual(['1.0', '2.0']);
  await answer();
  expect(started).toEqual(['1.0', '2.0', '1.1']);
  await answer();
  await answer();
  expect(started).toEqual(['1.0', '2.0', '1.1', '1.2']);
  expect([1, 2].filter((id) => batches.get(id))).toEqual([1]);
  // The next can be planned as soon as one is written down.
  expect(woken.count).toBe(3);
  await answer();
  await Promise.all(all);
  expect(batches.size).toBe(0);
});

test('a batch with only late pages left lets the next ones be planned, before it reports', async () => {
  const { receiver, batches, permits, started, woken } = setup();
  const permit: Permit = { host: 'a.example', startAt: 0, endAt: 1_000, gapMs: 0, parallel: 8 };
  const open = batches.get(1)!;
  open.batch.permits.push(permit);
  open.released.push(false);
  permits.grant(permit, { failuresInRow: 0, rests: 0, pace: null });
  await receiver.settle(givenBackPart(open.batch, report(1, 0), new Map([[0, 2]])));
  expect(permits.load(permit.host)).toEqual({ permits: 0, eased: 1, parallel: 2 });
  expect([started, woken.count]).toEqual([[], 1]);
});

test('what comes after the last report is late', async () => {
  const { receiver, started, answer } = setup();
  const last = receiver.settle(report(1, 0, true));
  await receiver.settle(report(1, 1));
  await receiver.receive({ kind: 'lost', batchId: 1, reason: 'late' });
  await answer();
  await last;
  expect(started).toEqual(['1.0']);
});

test('a batch is taken back only when what it reported before is written down', async () => {
  const { receiver, batches, started, answer, released } = setup();
  const part = receiver.settle(report(1, 0));
  const lost = receiver.lose({ batchId: 1, reason: 'the worker died' });
  await receiver.settle(report(1, 1, true));
  expect(released).toEqual([]);
  expect(batches.get(1)).toBeDefined();
  await answer();
  await Promise.all([part, lost]);
  expect(released).toEqual([1]);
  expect(started).toEqual(['1.0']);
  expect(batches.get(1)).toBeUndefined();
});

test('lost links and lost batches begin an epoch, in which workers report links again', async () => {
  const { receiver, batches, breaker, answer } = setup();
  const epochs = [batches.epoch];
  const settled = receiver.settle(report(1, 0));
  await new Promise((resolve) => setImmediate(resolve));
  await answer({ lostLinks: true });
  await settled;
  epochs.push(batches.epoch);
  await receiver.receive({ kind: 'lost', batchId: 1, reason: 'gone', blameless: true });
  epochs.push(batches.epoch);
  expect(breaker.failedBatchesInRow).toBe(0);
  await receiver.receive({ kind: 'lost', batchId: 2, reason: 'gone' });
  expect(breaker.failedBatchesInRow).toBe(1);
  expect(new Set([...epochs, batches.epoch]).size).toBe(4);
});

test('a batch that a known page took with it does not count against the job', async () => {
  const { receiver, breaker } = setup();
  await receiver.receive({ kind: 'lost', batchId: 1, reason: 'exit', ended: true, running: [7] });
  expect(breaker.failedBatchesInRow).toBe(0);
  // Workers that cannot start are the trouble of all pages, and of none.
  await receiver.receive({ kind: 'lost', batchId: 2, reason: 'cannot start', running: [] });
  expect(breaker.failedBatchesInRow).toBe(1);
});

test('the tasks of a failed host are given up until none is left', async () => {
  const { receiver, failed, warnings, answer } = setup();
  const settled = receiver.settle(report(1, 0));
  await new Promise((resolve) => setImmediate(resolve));
  await answer({ failedHosts: [{ host: 'a.example', code: 'host-down', detail: '6 probes failed' }] });
  await settled;
  expect(failed).toEqual(['a.example', 'a.example']);
  expect(warnings).toEqual(['gave up on a.example: 6 probes failed']);
});
