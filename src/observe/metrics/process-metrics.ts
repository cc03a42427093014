import { readdirSync } from 'node:fs';
import { performance } from 'node:perf_hooks';
import type { Metric } from './text-format.ts';

/** What every process tells, under the names that client libraries of Prometheus use. */
export function processMetrics(): Metric[] {
  const { user, system } = process.cpuUsage();
  const { rss, heapUsed } = process.memoryUsage();
  const gauge = (name: string, help: string, value: number | null): Metric => ({
    name,
    type: 'gauge',
    help,
    samples: value === null ? [] : [{ value }],
  });
  return [
    {
      name: 'process_cpu_seconds_total',
      type: 'counter',
      help: 'CPU time of this process with its threads.',
      samples: [{ value: (user + system) / 1e6 }],
    },
    gauge('process_resident_memory_bytes', 'Memory of this process.', rss),
    gauge(
      'process_start_time_seconds',
      'When this process began, since 1970.',
      performance.timeOrigin / 1_000,
    ),
    gauge('process_open_fds', 'Open files and connections.', openFiles()),
    gauge('nodejs_heap_size_used_bytes', 'JavaScript objects of the main thread.', heapUsed),
    gauge(
      'nodejs_eventloop_utilization_ratio',
      'Share of time in which the main thread was busy.',
      performance.eventLoopUtilization().utilization,
    ),
  ];
}

/** Null where the system does not tell. */
function openFiles(): number | null {
  try {
    return readdirSync('/proc/self/fd').length;
  } catch {
    return null;
  }
}
