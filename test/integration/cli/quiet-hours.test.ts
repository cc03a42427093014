import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openFolder } from '../../../src/app/folder.ts';
import { addLatency } from '../../../src/core/rollups/histogram.ts';
import { countName, emptyRollup } from '../../../src/core/rollups/rollup.ts';
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
