import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { seine } from '../../support/seine-in-process.ts';
import { temporaryFolder } from '../../support/seine-process.ts';
import { type AddressLog, openAddressLog } from '../../support/servers/address-log.ts';

/** What the author of a job can name, against an operator who forbids private addresses and lists no secrets. */

let site: AddressLog;
const folder = temporaryFolder();
beforeAll(async () => {
  site = await openAddressLog();
});
afterAll(async () => {
  await site.close();
  folder.remove();
});

const PUBLIC = 'http://site.example/';
const JOBS = {
  proxy: (url: string) => `
sources: ${PUBLIC}
allowPrivate: true
proxies: { pools: { p: { from: { list: ['${url}'] } } }, default: p }
`,
  'scraping API': (url: string) => `
sources: ${PUBLIC}
allowPrivate: true
api: { url: '${url}/?{url}' }
routes: [{ name: a, fetcher: api }]
`,
  'scraping API for lists': (url: string) => `
sources: ${PUBLIC}
allowPrivate: true
api: { batch: { submit: '${url}/lists', body: { urls: '{urls}' } } }
routes: [{ name: a, fetcher: api }]
`,
  'source file': (url: string) => `
sources: [{ file: '${url}/list.csv' }]
allowPrivate: true
`,
};

test.each(Object.entries(JOBS))('a %s at a private address is refused', async (kind, jobOf) => {
  const path = join(folder.path, 'job.yaml');
  writeFileSync(path, jobOf(site.url));
  const dir = join(folder.path, kind);
  const env = { SEINE_ALLOW_PRIVATE: 'never' };
  const finished = await seine(['run', path, '--rate', 'max', '--no-robots', '--dir', dir], { env });
  expect(finished.stderr).toMatch(/private (or reserved )?address/);
  expect(finished.stderr).toContain('SEINE_ALLOW_PRIVATE=job');
  expect(finished.code).toBe(2);
  expect(site.requests).toEqual([]);
});

test('a secret of the operator is not sent to a URL of the job', async () => {
  const path = join(folder.path, 'thief.yaml');
  writeFileSync(
    path,
    `
sources: ${PUBLIC}
api: { url: '${site.url}/?k={key}&u={url}', key: { env: AWS_SECRET_ACCESS_KEY } }
routes: [{ name: a, fetcher: api }]
`,
  );
  const env = { AWS_SECRET_ACCESS_KEY: 'not-for-jobs', SEINE_JOB_SECRETS: 'OTHER' };
  const finished = await seine(['run', path, '--no-robots', '--dir', join(folder.path, 'thief')], { env });
  expect(finished.code).toBe(2);
  expect(finished.stderr).toContain('AWS_SECRET_ACCESS_KEY, which is not listed in SEINE_JOB_SECRETS');
  expect(finished.stderr).toContain('set SEINE_JOB_SECRETS=OTHER,AWS_SECRET_ACCESS_KEY');
  expect(site.requests).toEqual([]);
});
