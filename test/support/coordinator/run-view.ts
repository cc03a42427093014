import type { RunView } from '../../../src/coordinator/reports/progress.ts';
import { zeroCounters } from '../../../src/core/model.ts';

/** A run half-way, with something in every part of the dashboard. */

export const START = 1_700_000_000_000;

export function viewOf(change: Partial<RunView> = {}): RunView {
  return {
    job: { name: 'shop', state: 'running', dir: '/home/ana/.seine', unit: 'pages' },
    waitingFor: null,
    warnings: [],
    at: START + 42_000,
    startedAt: START,
    elapsedMs: 42_000,
    counters: {
      ...zeroCounters(),
      ...{ accepted: 400, done: 250, skipped: 10, dead: 2, pending: 100, leased: 38 },
      ...{ records: 240, bytes: 12_345_678, requests: 270, retries: 7 },
    },
    fraction: 262 / 400,
    pagesPerSecond: 12.34,
    averagePagesPerSecond: 5.95,
    bytesPerSecond: 250_000,
    history: [0, 2, 4, 6, 8, 10, 12, 14, 16, 14, 12],
    historyStepMs: 500,
    etaMs: 11_200,
    discovering: false,
    openBatches: 2,
    hosts: [
      {
        host: 'shop.example',
        state: 'active',
        requests: 260,
        done: 246,
        failed: 9,
        requestsPerSecond: 12.3,
        p50Ms: 21,
        p95Ms: 430,
      },
      {
        host: 'cdn.example',
        state: 'throttled',
        requests: 10,
        done: 4,
        failed: 6,
        requestsPerSecond: 0,
        p50Ms: null,
        p95Ms: null,
      },
    ],
    hostsTotal: 2,
    failures: [
      { code: 'server-error', count: 8 },
      { code: 'not-found', count: 2 },
    ],
    skips: [{ code: 'robots', count: 10 }],
    dead: [{ code: 'not-found', count: 2 }],
    workers: [
      { name: 'thread-1', batches: 4, tasks: 140, tasksPerSecond: 6.1, lastSeenAt: START + 41_900 },
      { name: 'thread-2', batches: 3, tasks: 122, tasksPerSecond: 6.2, lastSeenAt: START + 39_000 },
    ],
    workersTotal: 2,
    recent: [
      { at: START + 3_000, level: 'warn', text: 'server-error  http://shop.example/product/7' },
      { at: START + 40_000, level: 'error', text: 'not-found  http://shop.example/gone' },
      { at: START + 41_000, level: 'info', text: 'stopping soon' },
    ],
    ...change,
  };
}
