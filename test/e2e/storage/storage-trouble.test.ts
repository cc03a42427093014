import { once } from 'node:events';
import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { checkFolder } from '../../support/crash/check-folder.ts';
import { lastJson, startSeine, temporaryFolder } from '../../support/seine-process.ts';
import { type LinkedSite, startLinkedSite } from '../../support/sites/linked-site.ts';

const PAGES = 200;
const folder = temporaryFolder();
let site: LinkedSite;

beforeAll(async () => {
  site = await startLinkedSite({ pages: PAGES });
});

afterAll(async () => {
  await site.close();
  folder.remove();
});

test('a run whose pages cannot be stored waits with a clear message, and loses nothing when they can', async () => {
  const dir = join(folder.path, 'seine');
  mkdirSync(dir);
  // Where the folder of archives should be there is a file: nothing can be written below it.
  const obstacle = join(dir, 'warc');
  writeFileSync(obstacle, '');
  const args = ['run', site.url, '--follow', '--rate', 'max', '--allow-private', '--dir', dir];
  const run = startSeine([...args, '--name', 'site', '--json']);
  let warnings = '';
  run.child.stderr!.on('data', (chunk) => {
    warnings += chunk;
  });
  while (!warnings.includes('waiting')) await once(run.child.stderr!, 'data');
  expect(warnings).toMatch(/cannot write the archive: .*; waiting 1 s/);
  rmSync(obstacle);

  const result = await run.finished;
  expect(result.code).toBe(0);
  expect(lastJson(result)).toMatchObject({
    state: 'done',
    accepted: PAGES,
    done: PAGES,
    dead: 0,
    retries: 0,
  });
  expect((await checkFolder(dir, 'site', 1)).pagesRead).toBe(PAGES);
});
