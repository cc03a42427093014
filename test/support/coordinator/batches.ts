import { type BatchTask, type Report, WIRE_VERSION } from '../../../src/core/batch/batch.ts';
import type { JobInput } from '../../../src/core/job-schema/job.ts';
import type { Job } from '../../../src/ports/store.ts';
import { codeOf, T0 } from '../fixtures.ts';

/** Valid jobs, tasks and reports without a store, of which a test changes only what it is about. */

export function jobOf(input: Partial<JobInput> = {}): Job {
  return {
    ...codeOf('test', input),
    ...{ id: 1, name: 'test', run: 1, pass: 1, passStart: null, state: 'running', requestedState: 'run' },
    ...{ reason: null, createdAt: T0, passStartedAt: T0, endedAt: null, workedMs: 0, priorities: [] },
    ...{ owner: null, keepOpen: false, quote: null, countsPages: false, requestId: null },
  };
}

export function batchTaskOf(id: number, url: string, change: Partial<BatchTask> = {}): BatchTask {
  return {
    ...{ id, url, permit: 0, depth: 0, route: null, attempt: 1, hops: 0, meta: null, lastVisit: null },
    ...change,
  };
}

export function reportOf(change: Partial<Report> = {}): Report {
  return {
    ...{ version: WIRE_VERSION, batchId: 1, part: 0, final: true, worker: 'w', startedAt: T0, durationMs: 1 },
    ...{ permits: [], robots: [], outcomes: [], quality: [], archive: null },
    ...change,
  };
}
