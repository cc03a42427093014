import { expect, test } from 'vitest';
import { changeText, compareJobs } from '../../../../src/core/job-schema/job-change.ts';
import { specOf } from '../../../support/fixtures.ts';

test('another pace and other limits are told apart from another job', () => {
  const before = specOf({ routes: [{ name: 'page', select: { title: 'h1' } }] });
  expect(compareJobs(before, structuredClone(before))).toEqual({ tuned: [], scraped: [] });
  const after = specOf({
    routes: [{ name: 'page', select: { title: 'h2' } }],
    politeness: { rate: 'max', adaptive: false, robots: false, hosts: { 'a.example': { rate: 1 } } },
    limits: { pages: 9, depth: 2, perTemplate: 5 },
    retry: { attempts: 2 },
    follow: true,
  });
  const { tuned, scraped } = compareJobs(before, after);
  expect(tuned.map(changeText).sort()).toEqual([
    'limits.pages: none → 9',
    'politeness.adaptive: true → false',
    'politeness.hosts: {} → {"a.example":{"rate":1}}',
    `politeness.rate: ${before.politeness.rate} → max`,
    `retry.attempts: ${before.retry.attempts} → 2`,
  ]);
  expect(scraped.map(({ field }) => field).sort()).toEqual([
    'follow',
    'limits.depth',
    'limits.perTemplate',
    'politeness.robots',
    'routes',
  ]);
});

test('the order of fields, and fields that are null instead of absent, are no change', () => {
  const before = specOf({ politeness: { hosts: { a: { rate: 1, parallel: 2 } } } });
  const after = specOf({ politeness: { hosts: { a: { parallel: 2, rate: 1 } } } });
  expect(compareJobs(before, { ...after, login: undefined })).toEqual({ tuned: [], scraped: [] });
});

test('long values are cut', () => {
  expect(changeText({ field: 'a', from: 'x'.repeat(100), to: null })).toBe(`a: ${'x'.repeat(60)}… → none`);
});
