import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { seine } from '../../support/seine-in-process.ts';
import {
  jsonLines,
  lastJson,
  type Started,
  startSeine,
  temporaryFolder,
} from '../../support/seine-process.ts';
import { type LinkedSite, startLinkedSite } from '../../support/sites/linked-site.ts';

const PAGES = 20;
const INTERRUPTED = 130;
const folder = temporaryFolder();
let site: LinkedSite;

function writeJob(name: string, more: object): string {
  const path = join(folder.path, `${name}.json`);
  const job = {
    sources: [site.url],
    follow: true,
    allowPrivate: true,
    politeness: { rate: 'max' },
    ...more,
  };
  writeFileSync(path, JSON.stringify(job));
  return path;
}

/** Waits until so many runs have ended, then stops. */
async function runsOf({ child, finished }: Started, count: number) {
  let text = '';
  child.stdout!.on('data', (chunk) => {
    text += chunk;
  });
  while (text.split('\n').length <= count) await once(child.stdout!, 'data');
  child.kill('SIGTERM');
  return { runs: jsonLines(text), code: (await finished).code };
}

beforeAll(async () => {
  site = await startLinkedSite({ pages: PAGES, etags: true });
});

afterAll(async () => {
  await site.close();
  folder.remove();
});

test('run --watch stays and visits the site again at the times of the schedule', async () => {
  const dir = join(folder.path, 'watched');
  const job = writeJob('watched', { schedule: '* * * * * *' });
  const { runs, code } = await runsOf(startSeine(['run', job, '--watch', '--json', '--dir', dir]), 3);
  expect(code).toBe(INTERRUPTED);
  expect(runs.slice(0, 3)).toMatchObject([
    { pass: 1, done: PAGES, unchanged: 0 },
    { pass: 2, done: 0, unchanged: PAGES },
    { pass: 3, done: 0, unchanged: PAGES },
  ]);
});

test('serve keeps the schedules of all jobs of the folder, as new runs where they ask for that', async () => {
  const dir = join(folder.path, 'served');
  const schedule = { cron: '* * * * * *', timeZone: 'Asia/Tokyo', refresh: false };
  expect((await seine(['run', writeJob('served', { schedule }), '--dir', dir])).code).toBe(0);
  const server = startSeine(['serve', '--listen', '127.0.0.1:0', '--json', '--dir', dir]);
  const { runs } = await runsOf(server, 3);
  expect(runs.slice(0, 3)).toMatchObject([
    { listening: expect.stringMatching(/^http:/) },
    { job: 'served', run: 2, pass: 1, done: PAGES },
    { job: 'served', run: 3, pass: 1, done: PAGES },
  ]);
});

test('a refresh leaves alone what was visited too recently', async () => {
  const dir = join(folder.path, 'recent');
  const job = writeJob('recent', { revisit: { afterSeconds: 3_600 } });
  expect((await seine(['run', job, '--dir', dir])).code).toBe(0);
  const before = site.log.length;
  const again = lastJson(await seine(['run', job, '--refresh', '--json', '--dir', dir]));
  expect(again).toMatchObject({ pass: 2, state: 'done', done: PAGES, unchanged: 0 });
  expect(site.log.length).toBe(before);
});

test('a schedule that cannot be read is said, and so is a --watch without one', async () => {
  const dir = join(folder.path, 'none');
  const watched = await seine(['run', writeJob('none', {}), '--watch', '--dir', dir]);
  expect(watched.code).toBe(2);
  expect(watched.stderr).toContain('--watch needs a schedule');
  const wrong = await seine(['run', writeJob('wrong', { schedule: 'at three' }), '--dir', dir]);
  expect(wrong.code).toBe(2);
  expect(wrong.stderr).toContain("invalid schedule 'at three'");
});
