import { expect, test } from 'vitest';
import type { WorkerHeartbeat } from '../../../src/ports/dispatcher.ts';
import { withoutHeartbeat } from '../../../src/server/api/worker-routes.ts';
import { T0 } from '../../support/fixtures.ts';

const rateOf = (name: string) => ({ name, batches: 1, tasks: 5, tasksPerSecond: 2, lastSeenAt: T0 });
const heartbeatOf = (worker: string, kind: WorkerHeartbeat['kind']): WorkerHeartbeat => ({
  worker,
  kind,
  at: T0,
  software: '0.1.0',
  threads: 2,
  slots: 16,
  batches: 0,
  batchesDone: 0,
  tasksDone: 0,
  cpu: 0,
  memoryBytes: 0,
  isDraining: false,
  hosts: [],
});

test('a worker of a queue that ended leaves no rows of its threads behind', () => {
  const rates = ['gone-1/thread-1', 'gone-1/suspects-1', 'here-2/thread-1'].map(rateOf);
  expect(withoutHeartbeat(rates, [heartbeatOf('here-2', 'http')])).toEqual([]);
  expect(withoutHeartbeat(rates, [])).toEqual([]);
});

test('functions of Lambda, and threads of a process without heartbeat, have rows of their own', () => {
  const rates = ['lambda-4f', 'thread-1'].map(rateOf);
  const kinds = (live: WorkerHeartbeat[]) =>
    withoutHeartbeat(rates, live).map(({ worker, kind }) => [worker, kind]);
  expect(kinds([])).toEqual([
    ['lambda-4f', 'lambda'],
    ['thread-1', 'threads'],
  ]);
  expect(kinds([heartbeatOf('coordinator-1', 'threads')])).toEqual([['lambda-4f', 'lambda']]);
});
