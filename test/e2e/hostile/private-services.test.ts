import { existsSync, readFileSync, writeFileSync } from 'node:fs';
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
  WebSocket: (url: string) => `
sources: [{ websocket: '${url.replace('http', 'ws')}/ticker' }]
allowPrivate: true
`,
  notification: (url: string) => `
sources: 'http://127.0.0.1:9/'
notify: { url: '${url}/hook' }
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

test('a notification goes to no private address that a secret or a redirect names', async () => {
  const path = join(folder.path, 'told.yaml');
  writeFileSync(path, "sources: 'http://127.0.0.1:9/'\nnotify: { url: { env: SEINE_SECRET_HOOK } }\n");
  const told = (hook: string, allowed: string) => {
    const env = { SEINE_ALLOW_PRIVATE: allowed, SEINE_SECRET_HOOK: hook };
    return seine(['run', path, '--fresh', '--dir', join(folder.path, 'told')], { env });
  };
  const refused = await told(`${site.url}/hook`, 'never');
  expect(refused.stderr).toContain('could not notify the URL of notify: 127.0.0.1 has a private');
  expect(site.requests).toEqual([]);
  const elsewhere = await openAddressLog({
    answer: (_, response) => !!response.writeHead(302, { location: `${site.url}/inside` }).end(),
  });
  const redirected = await told(`${elsewhere.url}/hook`, 'job');
  await elsewhere.close();
  expect(redirected.stderr).toContain('could not notify the URL of notify: status 302');
  expect(elsewhere.requests).not.toEqual([]);
  expect(site.requests).toEqual([]);
});

test('where the operator says so, a job without code runs only programs that are listed, with the variables of a job', async () => {
  const program = join(folder.path, 'tell.sh');
  const seen = join(folder.path, 'seen.txt');
  writeFileSync(program, `#!/bin/sh\nenv > '${seen}'\n`, { mode: 0o755 });
  const path = join(folder.path, 'runs.yaml');
  writeFileSync(path, "sources: 'http://127.0.0.1:9/'\nnotify: { command: [./tell.sh] }\n");
  const run = (...listed: string[]) => {
    const env = {
      ...{ OPERATORS_TOKEN: 'hush', JOB_SITE: 'here' },
      ...(listed.length > 0 ? { SEINE_JOB_COMMANDS: listed.join(',') } : { SEINE_ALLOW_PRIVATE: 'never' }),
    };
    return seine(['run', path, '--fresh', '--dir', join(folder.path, 'runs')], { env });
  };
  // Another program of the same name, in the folder where the operator is.
  for (const listed of [[], ['tell.sh'], ['./tell.sh']]) {
    const refused = await run(...listed);
    expect(refused.code).toBe(2);
    expect(refused.stderr).toContain('the job runs ./tell.sh, which is not listed in SEINE_JOB_COMMANDS');
    expect(refused.stderr).toContain(`set SEINE_JOB_COMMANDS=${[...listed, program].join(',')}`);
  }
  expect(existsSync(seen)).toBe(false);
  expect((await run(program)).code).toBe(3);
  expect(readFileSync(seen, 'utf8')).toContain('JOB_SITE=here');
  expect(readFileSync(seen, 'utf8')).not.toContain('hush');
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
