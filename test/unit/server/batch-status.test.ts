import { expect, test } from 'vitest';
import { zeroCounters } from '../../../src/core/model.ts';
import type { Job } from '../../../src/ports/store.ts';
import { statusOf } from '../../../src/server/api/scrape/results.ts';

const id = '0a'.repeat(12);

test.each([
  ['its list is still read', `batch-${id}`, true, 'running'],
  ['its list is still read, of a key', `key_1.batch-${id}`, true, 'running'],
  ['its list has ended', `batch-${id}`, false, 'completed'],
  ['it is a job that is kept open', 'batch-of-mine', true, 'completed'],
])('a job that waits, when %s', (_, name, keepOpen, status) => {
  const job = { name, keepOpen, state: 'waiting' } as Job;
  expect(statusOf(job, zeroCounters())).toBe(status);
});
