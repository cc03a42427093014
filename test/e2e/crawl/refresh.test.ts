import { afterAll, beforeAll, expect, test } from 'vitest';
import type { AttemptRow } from '../../../src/core/model.ts';
import { seine } from '../../support/seine-in-process.ts';
import { jsonLines, lastJson, startSeine, temporaryFolder } from '../../support/seine-process.ts';
import { countByPath, type LinkedSite, pathOf, startLinkedSite } from '../../support/sites/linked-site.ts';

const PAGES = 3_000;
const folder = temporaryFolder();
let site: LinkedSite;
let seen = 0;

/** What the site was asked since the last call, but for robots.txt. */
function newRequests() {
  const fresh = site.log.slice(seen).filter(({ path }) => path !== '/robots.txt');
  seen = site.log.length;
  return fresh;
}

const commandLine = (...more: string[]) => [
  'run',
  site.url,
  '--follow',
  ...['--select', 'title=h1', '--rate', 'max', '--allow-private', '--name', 'site', '--json'],
  ...['--dir', folder.path],
  ...more,
];

beforeAll(async () => {
  site = await startLinkedSite({ pages: PAGES, etags: true });
  const first = await seine(commandLine());
  expect(lastJson(first)).toMatchObject({ state: 'done', done: PAGES, pass: 1, records: PAGES });
  newRequests();
});

afterAll(async () => {
  await site.close();
  folder.remove();
});

test('a second visit to an unchanged site of 3,000 pages asks for each once and transfers no bodies', async () => {
  const before = await timeouts();
  const second = lastJson(await seine(commandLine('--refresh')));
  expect(second).toMatchObject({
    state: 'done',
    pass: 2,
    accepted: PAGES,
    unchanged: PAGES,
    done: 0,
    dead: 0,
  });
  expect(second.thisPass).toMatchObject({ bytes: 0, records: 0, accepted: 0 });
  const requests = newRequests();
  // This site is part of a busy process: a request that it does not answer for a second is given up, and made again.
  expect(requests).toHaveLength(PAGES + (await timeouts()) - before);
  expect(new Set(requests.map(({ path }) => path)).size).toBe(PAGES);
  expect(new Set(requests.map(({ status }) => status))).toEqual(new Set([304]));
  expect(requests.reduce((sum, { bytes }) => sum + bytes, 0)).toBe(0);

  const { stdout } = await seine(['page', `${site.url}page/77.html`, '--dir', folder.path]);
  expect(stdout).toBe(site.bodyOf(77));
});

test('only changed pages are taken again, and what they newly link to', async () => {
  site.change(10, '<p>News!</p>');
  site.change(2_500, '<a href="/page/99999.html">gone</a>');
  const third = lastJson(await seine(commandLine('--refresh')));
  expect(third).toMatchObject({ pass: 3, accepted: PAGES + 1, done: 2, unchanged: PAGES - 2, dead: 1 });
  const bodies = newRequests().filter(({ status }) => status === 200);
  expect(bodies.map(({ path }) => path).sort()).toEqual([pathOf(10), pathOf(2_500)]);
  const { stdout } = await seine(['page', `${site.url}page/10.html`, '--dir', folder.path]);
  expect(stdout).toContain('News!');
  const rows = jsonLines(await exported('records'));
  expect(rows).toHaveLength(PAGES);
});

test('a refresh that is killed goes on where it was', async () => {
  const started = startSeine(commandLine('--refresh'));
  await site.requests(seen + 1_500);
  await started.killTree();
  const resumed = lastJson(await seine(['resume', 'site', '--json', '--dir', folder.path]));
  expect(resumed).toMatchObject({ pass: 4, state: 'done', unchanged: PAGES, pending: 0, leased: 0 });
  const requests = newRequests().filter(({ path }) => path !== '/page/99999.html');
  const counts = countByPath(requests);
  expect(counts.size).toBe(PAGES);
  expect(requests.every(({ status }) => status === 304)).toBe(true);
  // Only what was in flight at the kill is asked for twice.
  expect(requests.length - PAGES).toBeLessThan(1_000);
});

/** Attempts that were given up. */
async function timeouts(): Promise<number> {
  const attempts = jsonLines<AttemptRow>(await exported('attempts'));
  return attempts.filter(({ failureCode }) => failureCode === 'headers-timeout').length;
}

async function exported(what: string): Promise<string> {
  return (await seine(['export', 'site', '--what', what, '--dir', folder.path])).stdout;
}
