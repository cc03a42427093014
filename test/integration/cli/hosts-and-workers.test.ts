import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openFolder } from '../../../src/app/folder.ts';
import { explainJob } from '../../../src/coordinator/explain/explain-job.ts';
import { noSums } from '../../../src/core/explain/slot-ledger.ts';
import { addLatency } from '../../../src/core/rollups/histogram.ts';
import { countName, emptyRollup } from '../../../src/core/rollups/rollup.ts';
import { jobMetrics } from '../../../src/observe/metrics/job-metrics.ts';
import { codeOf, tasksOf, temporaryFolder } from '../../support/fixtures.ts';
import { seineHere } from '../../support/seine-in-process.ts';

const HOUR_MS = 3_600_000;

test('`hosts` proposes the hours in which a host refuses less', async () => {
  const folder = await temporaryFolder();
  const dir = join(folder.dir, 'state');
  const opened = await openFolder({ dir, sync: 'normal' }, { create: true, toWork: true });
  try {
    const { store } = opened;
    const now = Date.now();
    const job = await store.jobs.create({ ...codeOf('shop'), name: 'shop', now });
    const task = { url: 'https://shop.example/', host: 'shop.example' };
    await store.frontier.enqueue(job.id, tasksOf(task.url), { now, perTemplateMax: null, source: null });
    const rows = [];
    for (let hour = 1; hour <= 5 * 24; hour++) {
      const at = now - hour * HOUR_MS;
      const rollup = emptyRollup();
      rollup.requests = 120;
      const isQuiet = new Date(at).getUTCHours() < 6;
      if (!isQuiet) rollup.counts.set(countName('failure', 'throttled'), 12);
      for (let answer = 0; answer < 120; answer++) addLatency(rollup.latency, 80);
      rows.push({ host: task.host, at, rollup });
    }
    await store.rollups.add(job.id, rows, now);
  } finally {
    await opened.close();
  }
  const { stdout } = await seineHere('hosts', 'shop', '--dir', dir);
  expect(stdout).toContain('quieter from 00:00 to 06:00 UTC: 0 % refused, ');
  expect(stdout).toContain("As a rule: window: {from: '00:00', to: '06:00'}");
  const json = JSON.parse((await seineHere('hosts', 'shop', '--dir', dir, '--json')).stdout);
  expect(json.quietHours).toMatchObject({ window: { from: '00:00', to: '06:00', timeZone: 'UTC' } });
  expect(json.quietHours.outside.refusedShare).toBeCloseTo(0.1);
  await folder.remove();
});

test('`workers --wanted`, `explain` and the metrics say how many workers a job that runs could use', async () => {
  const folder = await temporaryFolder();
  const dir = join(folder.dir, 'state');
  const opened = await openFolder({ dir, sync: 'normal' }, { create: true, toWork: true });
  const now = Date.now();
  const { store } = opened;
  const job = await store.jobs.create({ ...codeOf('shop'), name: 'shop', now });
  const urls = Array.from({ length: 200 }, (_, page) => `https://shop.example/${page}`);
  await store.frontier.enqueue(job.id, tasksOf(...urls), { now, perTemplateMax: null, source: null });
  await store.jobs.update(job.id, { state: 'running' });
  const none = await seineHere('workers', '--wanted', '--dir', dir);
  expect(none.stdout).toBe('no job that runs has been measured yet\n');
  const decisions = [{ at: Date.UTC(2026, 0, 2, 3, 4, 5), text: '2 threads instead of 1: a reason' }];
  // A minute in which all of 16 slots were taken, and each brought half a page in a second.
  const sums = { ...noSums(), wallMs: 60_000, slotMs: 960_000, fullMs: 60_000, pages: 480 };
  const measured = { ...sums, busy: { network: 960_000 } };
  await store.slotTimes.save(job.id, 'one', {
    ...{ pass: 1, at: now, slots: 16, workers: 2, total: measured, recent: measured, rates: [] },
    ...{ hosts: [], hostsPerSecond: 14, writeMs: null, refusedShare: 0 },
    decisions,
  });
  const wanted = { workers: 5, slots: 40, reason: 'hosts take 14 pages/s, and a batch brings 0.5/s' };
  const json = await seineHere('workers', '--wanted', '--dir', dir, '--json');
  expect(JSON.parse(json.stdout)).toEqual({ workers: 5, jobs: [{ job: 'shop-1', ...wanted, decisions }] });
  const text = `5 workers, 40 batches at once: ${wanted.reason}`;
  const shown = await seineHere('workers', '--wanted', '--dir', dir);
  const decided = '03:04:05 UTC  2 threads instead of 1: a reason';
  expect(shown.stdout).toBe(`wanted: 5\n  shop-1: ${text}\n    ${decided}\n`);
  expect((await seineHere('explain', 'shop', '--dir', dir)).stdout).toContain(`  ${decided}\n`);
  const at = {
    worker: 'm-1',
    kind: 'threads',
    at: now,
    software: '1',
    threads: 2,
    slots: 16,
    isDraining: false,
  };
  const load = { cpu: 1, memoryBytes: 1, batches: 1, batchesDone: 1, tasksDone: 1 };
  await store.workers.note([{ ...at, ...load }], now);
  expect((await seineHere('workers', '--dir', dir)).stdout).toContain(`shop-1: ${decided}\n`);
  const metric = (await jobMetrics(store, { now })).find(({ name }) => name === 'seine_workers_wanted');
  expect(metric!.samples).toEqual([{ labels: { job: 'shop' }, value: 5 }]);
  expect((await explainJob(store, await store.jobs.get(job.id))).wanted).toEqual(wanted);
  await opened.close();
  await folder.remove();
});
