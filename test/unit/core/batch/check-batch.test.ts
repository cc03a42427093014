import { expect, test } from 'vitest';
import type { Batch } from '../../../../src/core/batch/batch.ts';
import { batchProblem } from '../../../../src/core/batch/check-batch.ts';
import { batchOf } from '../../../support/coordinator/progress-reports.ts';
import { T0 } from '../../../support/fixtures.ts';

function wholeBatch(): Batch {
  const batch = batchOf(7, ['a.example', 'b.example'], 4);
  const cookie = { name: 'a', value: 'b', domain: 'a.example', path: '/', expiresAt: null };
  Object.assign(batch, {
    ...{ archiveKey: 'warc/test-1/000000/000000007', packKey: 'shards/test-1/000000/000000007' },
    proxies: [{ id: 'p', url: 'socks5://user:password@proxy.example:1080' }],
    apiKey: 'key',
    secretHeaders: { 'https://a.example': { authorization: 'x' } },
    loginState: '{}',
    cookies: [
      { origin: 'https://a.example', identity: null, cookies: [{ ...cookie, secure: true, hostOnly: true }] },
    ],
    robots: [
      {
        ...{ origin: 'https://a.example', url: 'https://a.example/robots.txt', permit: 0, for: 1 },
        through: { among: [0], perWorker: true },
      },
    ],
  } satisfies Partial<Batch>);
  batch.job.bundle = `bundles/${'0'.repeat(64)}.mjs`;
  Object.assign(batch.tasks[0]!, {
    ...{ route: 'r', meta: { a: 1 }, referrer: 'https://a.example/' },
    lastVisit: { etag: null, lastModified: 'x', sha256: 'ab'.repeat(32) },
    fetchMethod: { level: 0, fetcher: 'browser', headers: 'full', identity: 'seed', pool: 'p' },
    through: { among: [0] },
  });
  return batch;
}

test('a batch of a coordinator is accepted, with all that may be in it and with none of it', () => {
  expect(batchProblem(JSON.parse(JSON.stringify(wholeBatch())))).toBeNull();
  const least = batchOf(1, ['a.example'], 1);
  expect(batchProblem({ ...least, archiveKey: 'warc/t-1/1', packKey: 'shards/t-1/1' })).toBeNull();
});

const DEEP = JSON.parse(`${'{"x":['.repeat(300)}null${']}'.repeat(300)}`);

test.each([
  ['version', 1],
  ['id', '7'],
  ['needs', 'gpu'],
  ['budgetMs', 1e300],
  ['budgetMs', null],
  ['archiveKey', 'bundles/x'],
  ['archiveKey', 'warc/../bundles/x'],
  ['archiveKey', '/etc/passwd'],
  ['packKey', 'warc/test-1/1'],
  ['packKey', 'shards/a\0b'],
  ['job', null],
  ['job.spec', []],
  ['job.spec.routes', null],
  ['job.bundle', 'bundles/evil.mjs'],
  ['job.bundle', `media/ab/${'0'.repeat(64)}.mjs`],
  ['job.epoch', 5],
  ['permits', {}],
  ['permits.0.host', null],
  ['permits.0.endAt', 'later'],
  ['permits.0.gapMs', -1],
  ['permits.0.parallel', 0],
  ['proxies.0.url', 5],
  ['proxies', {}],
  ['apiKey', ['x']],
  ['secretHeaders', { a: 'b' }],
  ['loginState', {}],
  ['cookies.0.cookies.0.name', null],
  ['robots.0.url', 'file:///etc/passwd'],
  ['robots.0.permit', 2],
  ['robots.0.through.among', [1]],
  ['robots.0.through.among', []],
  ['tasks', 'all'],
  ['tasks.0.id', 7001],
  ['tasks.0.url', 'file:///etc/passwd'],
  ['tasks.0.url', 'gopher://a.example/'],
  ['tasks.0.permit', -1],
  ['tasks.0.attempt', 0.5],
  ['tasks.0.meta', []],
  ['tasks.0.meta', DEEP],
  ['tasks.0.referrer', 'javascript:x'],
  ['tasks.0.lastVisit', 'x'],
  ['tasks.0.fetchMethod.fetcher', 'shell'],
  ['tasks.0.through.among.0', 1],
  ['tasks.0.lastVisit.sha256', T0],
])('refused: %s = %j', (path, value) => {
  const batch = JSON.parse(JSON.stringify(wholeBatch()));
  const steps = path.split('.');
  const last = steps.pop()!;
  steps.reduce((at, step) => at[step], batch)[last] = value;
  expect(batchProblem(batch)).toEqual(expect.any(String));
});

test.each([undefined, null, 1, 'x', [], {}])('refused: %j', (batch) => {
  expect(batchProblem(batch)).toEqual(expect.any(String));
});
