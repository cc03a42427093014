import { describe, expect, test } from 'vitest';
import type { Batch, Report } from '../../../../src/core/batch/batch.ts';
import { makeReportCheck } from '../../../../src/core/batch/check-report.ts';
import { splitReport } from '../../../../src/core/batch/report.ts';
import type { JobInput } from '../../../../src/core/job-schema/job.ts';
import { batchOf } from '../../../support/coordinator/progress-reports.ts';
import { specOf } from '../../../support/fixtures.ts';
import { linkOf, reportOn } from '../../../support/fleet/report-examples.ts';

function batchWith(spec: Partial<JobInput> = {}, bundle: string | null = null): Batch {
  const batch = batchOf(7, ['a.example', 'b.example'], 7);
  batch.job = { ...batch.job, spec: specOf({ follow: 'host', ...spec }), bundle };
  batch.robots = [{ origin: 'http://a.example', url: 'http://a.example/robots.txt', permit: 0 }];
  batch.proxies = [{ id: 'p', url: 'http://proxy.example:8080' }];
  return batch;
}

const problemOf = (report: unknown, batch = batchWith()) => makeReportCheck(batch)(report);

/** The report with the value at a path replaced; undefined removes it. */
function changed(path: string, value: unknown, batch = batchWith()): unknown {
  const report = JSON.parse(JSON.stringify(reportOn(batch)));
  const steps = path.split('.');
  const last = steps.pop()!;
  const target = steps.reduce((at, step) => at[step], report);
  if (value === undefined) delete target[last];
  else target[last] = value;
  return report;
}

test('a report of a worker is accepted, whole and in parts, as it comes from the wire', () => {
  const report = JSON.parse(JSON.stringify(reportOn(batchWith()))) as Report;
  expect(problemOf(report)).toBeNull();
  for (const part of splitReport(report, 3)) expect(problemOf(part)).toBeNull();
  const { found: _, cookies: __, pack: ___, trouble: ____, proxyFaults: _____, ...least } = report;
  expect(problemOf({ ...least, permits: [], robots: [], outcomes: [], archive: null })).toBeNull();
});

const FILE = 'file:///etc/passwd';
const [OUT, LINK] = ['outcomes.0', 'outcomes.0.links.0'];

test.each([
  ['version', 1],
  ['batchId', -1],
  ['part', 0.5],
  ['final', 'yes'],
  ['worker', 7],
  ['worker', 'x'.repeat(5_000)],
  ['startedAt', null],
  ['durationMs', -1],
  ['trouble', {}],
  ['archive', undefined],
  ['archive.key', 'warc/other-1/000000/000000001-x.warc.gz'],
  ['archive.key', 'batch-7/../../bundles/x'],
  ['archive.key', 'batch-7'],
  ['archive.bytes', Number.MAX_VALUE],
  ['pack.key', 'bundles/x.mjs'],
  ['permits', {}],
  ['permits.0.host', 'c.example'],
  ['permits.0.sent', '1'],
  ['permits.0.lastSentAt', 'now'],
  ['permits.0.lastSentAt', 9e12],
  ['permits.0.finished', 1],
  ['permits.0.probe', 'maybe'],
  ['permits.0.probeFailure', null],
  ['permits.0.probeFailure', { code: 7, detail: '', trace: null }],
  ['permits.0.probeFailure', { code: 'connect', detail: '', trace: {} }],
  ['permits.2', { host: 'a.example', sent: 0, lastSentAt: null, finished: true }],
  ['robots.0.origin', 'http://c.example'],
  ['robots.0.kind', 'odd'],
  ['robots.0.text', 'x'.repeat(500 * 1024 + 1)],
  ['robots.0.trace', null],
  ['robots.0', { kind: 'redirected', origin: 'http://a.example', to: FILE }],
  ['outcomes', null],
  ['outcomes.0', null],
  [`${OUT}.taskId`, 1],
  [`${OUT}.taskId`, '7000'],
  [`${OUT}.taskId`, 7001],
  [`${OUT}.kind`, 'constructor'],
  [`${OUT}.page`, null],
  [`${OUT}.page.sha256`, '../etc'],
  [`${OUT}.page.archive.length`, 1e9],
  [`${OUT}.page.archive.offset`, -1],
  [`${OUT}.page.media.key`, 'bundles/x.mjs'],
  [`${OUT}.page.media.member`, 'x'],
  [`${OUT}.page.contentType`, ['x']],
  [`${OUT}.trace`, null],
  [`${OUT}.trace.bytes`, -5],
  [`${OUT}.trace.httpStatus`, '200'],
  [`${OUT}.trace.via.fetcher`, 'toString'],
  [`${OUT}.trace.shots.0.key`, 'warc/x'],
  [`${OUT}.links`, 'none'],
  [`${LINK}.url`, FILE],
  [`${LINK}.url`, 'ftp://a.example/found/7000'],
  [`${LINK}.url`, 'http://a.example@c.example/'],
  [`${LINK}.url`, 'http://a.example.evil/'],
  [`${LINK}.url`, `http://a.example/${'x'.repeat(3_000)}`],
  [`${LINK}.url`, 'http://a.example/a b'],
  [`${LINK}.url`, 'http://a.example/\0'],
  [`${LINK}.host`, 'c.example'],
  [`${LINK}`, { ...linkOf('http://c.example/', '/'), priority: 0 }],
  [`${LINK}`, { url: 'http://a.ex%61mple/x', host: 'a.ex%61mple', priority: 0, route: null }],
  [`${LINK}.priority`, 0.5],
  [`${LINK}.route`, 5],
  [`${LINK}.listed`, true],
  [`${LINK}.meta`, 'text'],
  [`${LINK}.meta`, JSON.parse(`${'{"x":['.repeat(300)}null${']}'.repeat(300)}`)],
  [`${OUT}.records.0.json`, '{"title":'],
  [`${OUT}.records.0.json`, '[1]'],
  [`${OUT}.records.0.json`, `{"x":${'['.repeat(300)}${']'.repeat(300)}}`],
  [`${OUT}.records.0.key`, 'k'.repeat(5_000)],
  [`${OUT}.records.0.hash`, 'x'],
  [`${OUT}.records.0.merge`, undefined],
  [`${OUT}.shows.0`, 'javascript:alert(1)'],
  [`${OUT}.note`, 1],
  [`${OUT}.rejected.first.0.reason`, null],
  ['outcomes.2.to', FILE],
  ['outcomes.2.to', 'not a URL'],
  ['outcomes.3.code', 'hasOwnProperty'],
  ['outcomes.4.code', null],
  ['outcomes.4.retryAfterMs', 'soon'],
  ['outcomes.4.retryAfterMs', 1e12],
  ['outcomes.6.until', 1],
  ['found.0.taskId', 5],
  ['found.0.links.0.url', FILE],
  ['found', {}],
  ['cookies.0.origin', 'http://c.example'],
  ['cookies.0.cookies.0.value', 5],
  ['cookies.0.cookies.0.expiresAt', 'never'],
  ['proxyFaults.0.id', 'other'],
  ['proxyFaults.0.count', Number.MAX_VALUE],
  ['quality', null],
])('refused: %s = %j', (path, value) => {
  expect(problemOf(changed(path, value))).toEqual(expect.any(String));
});

test.each([undefined, null, 5, 'text', [], {}, [[]]])('refused: %j', (report) => {
  expect(problemOf(report)).toEqual(expect.any(String));
});

describe('a link elsewhere', () => {
  const there = { ...linkOf('http://c.example/', '/x'), meta: {} };
  const check = (link: object, batch: Batch) => problemOf(changed(LINK, link, batch), batch);
  const listed = { ...there, listed: true };

  test('is accepted where the rules of the job allow it', () => {
    expect(check(there, batchWith({ follow: 'any' }))).toBeNull();
    expect(check(there, batchWith({ follow: 'site' }))).toContain('out of the scope');
    expect(check(there, batchWith({ follow: [{ within: 'any', not: '/x' }] }))).toContain('out of the scope');
  });

  test('is accepted from the code of a job, which may follow anything by name', () => {
    expect(check(there, batchWith({}, `bundles/${'0'.repeat(64)}.mjs`))).toBeNull();
    expect(check({ ...there, url: FILE }, batchWith({}, 'bundles/x.mjs'))).toContain('not an http');
  });

  test('is accepted as media of a job that takes media, and not otherwise', () => {
    const media = { ...listed, route: '@media' };
    expect(check(media, batchWith())).toContain('out of the scope');
    const routes = [{ name: 'r', media: ['img'] }];
    expect(check(media, batchWith({ routes }))).toBeNull();
    expect(check(listed, batchWith({ routes }))).toContain('out of the scope');
  });

  test('is accepted from a sitemap, as far as its source reaches', () => {
    const batch = (within: string) => {
      const made = batchWith();
      made.tasks[0] = { ...made.tasks[0]!, route: '@sitemap', meta: { '@within': within } };
      return made;
    };
    expect(check(listed, batch('any'))).toBeNull();
    expect(check(listed, batch('site'))).toContain('out of the scope');
  });
});
