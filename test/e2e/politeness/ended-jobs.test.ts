import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { seine } from '../../support/seine-in-process.ts';
import { lastJson, temporaryFolder } from '../../support/seine-process.ts';
import { type LinkedSite, startLinkedSite } from '../../support/sites/linked-site.ts';

const folder = temporaryFolder();
let site: LinkedSite;

beforeAll(async () => {
  site = await startLinkedSite({ pages: 5 });
});

afterAll(async () => {
  await site.close();
  folder.remove();
});

async function run(name: string, rate: number, pages: number) {
  const politeness = { rate, adaptive: false, robots: false };
  const job = { sources: [site.url], follow: true, allowPrivate: true, politeness, limits: { pages } };
  const file = join(folder.path, `${name}.json`);
  writeFileSync(file, JSON.stringify(job));
  return lastJson(await seine(['run', file, '--json', '--dir', join(folder.path, 'seine')]));
}

test('the gap of a job that is over does not keep the host from another job, whose own gap is kept', async () => {
  // Its next request would be due in 1,000 seconds.
  expect(await run('slow', 0.001, 1)).toMatchObject({ state: 'stopped', done: 1 });
  expect(await run('quick', 2, 10)).toMatchObject({ state: 'done', done: 5 });
  const times = site.log.map(({ at }) => at);
  expect(times).toHaveLength(6);
  for (const [index, at] of times.entries())
    if (index > 0) expect(at - times[index - 1]!).toBeGreaterThan(490);
});
