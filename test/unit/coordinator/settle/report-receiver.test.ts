import { expect, test } from 'vitest';
import { makeBatch } from '../../../../src/coordinator/plan/open-batch.ts';
import { ReportReceiver } from '../../../../src/coordinator/report-receiver.ts';
import type { RunState } from '../../../../src/coordinator/run-state.ts';
import type { SettledReport, Settler } from '../../../../src/coordinator/settle/settler.ts';
import type { Report } from '../../../../src/core/batch/batch.ts';
import type { Job } from '../../../../src/ports/store.ts';

const JOB = { id: 1, name: 'test', run: 1, spec: {} } as Job;

/** A settler whose store answers when the test says so. */
function makeDesk() {
  const started: string[] = [];
  const answers: (() => void)[] = [];
  const released: number[] = [];
  const woken = { count: 0 };
  const settler = {
    async settle(_: unknown, report: Report): Promise<SettledReport> {
      started.push(`${report.batchId}.${report.part}`);
      await new Promise<void>((resolve) => answers.push(resolve));
      return { applied: true, failedHosts: [], lostLinks: false } as unknown as SettledReport;
    },
  };
  const store = {
    frontier: {
      async release(batchId: number) {
        released.push(batchId);
        return { returned: 1, dead: 0 };
      },
    },
  };
  const flight = {
    open: new Map(),
    options: { store, progress: { onDelivery() {} }, logger: { warn() {} } },
    wake: { notify: () => void woken.count++ },
    permits: { release: () => null },
    robots: { doneAsking() {} },
    beginEpoch() {},
    now: () => 0,
    failedBatchesInRow: 0,
  } as unknown as RunState;
  for (const id of [1, 2]) {
    const options = { budgetMs: 1, epoch: '1', robots: [] };
    flight.open.set(id, makeBatch(JOB, [], { id, tasks: [] }, options));
  }
  const answer = async () => {
    answers.shift()?.();
    await new Promise((resolve) => setImmediate(resolve));
  };
  return {
    flight,
    inbound: new ReportReceiver(flight, settler as unknown as Settler),
    started,
    answer,
    released,
    woken,
  };
}

const report = (batchId: number, part: number, final = false) => ({ batchId, part, final }) as Report;

test('reports of a batch are written down one after the other, those of others beside them', async () => {
  const { flight, inbound, started, answer, woken } = makeDesk();
  const all = [report(1, 0), report(1, 1), report(2, 0, true), report(1, 2, true)].map((each) =>
    inbound.settle(each),
  );
  await new Promise((resolve) => setImmediate(resolve));
  expect(started).toEqual(['1.0', '2.0']);
  await answer();
  expect(started).toEqual(['1.0', '2.0', '1.1']);
  await answer();
  await answer();
  expect(started).toEqual(['1.0', '2.0', '1.1', '1.2']);
  expect([...flight.open.keys()]).toEqual([1]);
  // The next can be planned as soon as one is written down.
  expect(woken.count).toBe(3);
  await answer();
  await Promise.all(all);
  expect(flight.open.size).toBe(0);
});

test('what comes after the last report is late', async () => {
  const { inbound, started, answer } = makeDesk();
  const last = inbound.settle(report(1, 0, true));
  await inbound.settle(report(1, 1));
  await inbound.receive({ kind: 'lost', batchId: 1, reason: 'late' });
  await answer();
  await last;
  expect(started).toEqual(['1.0']);
});

test('a batch is given up only when what it reported before is written down', async () => {
  const { flight, inbound, started, answer, released } = makeDesk();
  const part = inbound.settle(report(1, 0));
  const lost = inbound.lose(1, 'the worker died');
  await inbound.settle(report(1, 1, true));
  expect(released).toEqual([]);
  expect(flight.open.has(1)).toBe(true);
  await answer();
  await Promise.all([part, lost]);
  expect(released).toEqual([1]);
  expect(started).toEqual(['1.0']);
  expect(flight.open.has(1)).toBe(false);
});
