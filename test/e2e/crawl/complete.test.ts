import { afterAll, beforeAll, expect, test } from 'vitest';
import type { AttemptRow } from '../../../src/core/model.ts';
import { checkFolder } from '../../support/crash/check-folder.ts';
import { jsonLines, lastJson, seine, temporaryFolder } from '../../support/seine-process.ts';
import { countByPath, type LinkedSite, pathOf, startLinkedSite } from '../../support/sites/linked-site.ts';

const PAGES = 5_000;
const folder = temporaryFolder();
let site: LinkedSite;

beforeAll(async () => {
  site = await startLinkedSite({ pages: PAGES });
});

afterAll(async () => {
  await site.close();
  folder.remove();
});

test('a linked site of 5,000 pages is fetched completely, each page exactly once', async () => {
  const run = await seine([
    'run',
    site.url,
    '--follow',
    '--rate',
    'max',
    '--allow-private',
    '--dir',
    folder.path,
    '--name',
    'site',
    '--json',
  ]);
  expect(run.stderr).toBe('');
  expect(run.code).toBe(0);
  expect(lastJson(run)).toMatchObject({
    job: 'site',
    state: 'done',
    accepted: PAGES,
    done: PAGES,
    pending: 0,
    leased: 0,
    dead: 0,
  });

  const counts = countByPath(site.log);
  expect(counts.get('/robots.txt')).toBe(1);
  const expected = new Map(Array.from({ length: PAGES }, (_, index) => [pathOf(index), 1]));
  counts.delete('/robots.txt');
  // This site is part of a busy process: a request that it does not answer for a second is given up, and made again.
  const rows = await seine(['export', 'site', '--what', 'attempts', '--dir', folder.path]);
  for (const { url, failureCode } of jsonLines<AttemptRow>(rows.stdout)) {
    const { pathname } = new URL(url);
    if (failureCode === 'headers-timeout') expected.set(pathname, expected.get(pathname)! + 1);
  }
  expect(counts).toEqual(expected);

  const facts = await checkFolder(folder.path, 'site', 1);
  expect(facts.pagesRead).toBe(PAGES);
});

test('its tasks are exported with everything that is promised', async () => {
  const { stdout, code } = await seine(['export', 'site', '--what', 'tasks', '--dir', folder.path]);
  expect(code).toBe(0);
  const rows = jsonLines(stdout);
  expect(rows).toHaveLength(PAGES);
  const home = rows.find((row) => row.url === site.url);
  expect(home).toMatchObject({
    state: 'done',
    httpStatus: 200,
    failureCode: null,
    attempts: 1,
    bytes: Buffer.byteLength(site.bodyOf(0)),
    sha256: expect.stringMatching(/^[0-9a-f]{64}$/),
    contentType: 'text/html',
    archive: {
      key: expect.stringMatching(/\.warc\.gz$/),
      offset: expect.any(Number),
      length: expect.any(Number),
    },
    depth: 0,
    route: null,
    meta: null,
  });
});

test('a page is printed from the archive as it was served', async () => {
  const { stdout } = await seine(['page', `${site.url}page/77.html`, '--dir', folder.path]);
  expect(stdout).toBe(site.bodyOf(77));
});
