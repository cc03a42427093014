import { effect, signal } from '@preact/signals';
import type { LiveDetails, LiveJob, Snapshot } from '../src/server/api/jobs/snapshot.ts';
import { call, type Job, needsKey } from './api.ts';

/** The stream of snapshots. A page that is hidden has none. */

export type JobNow = Job & { live: LiveJob | null };

/** What was seen of a job while the page was open, one point a second. */
interface Point {
  at: number;
  rate: number;
  p50: number | null;
  p95: number | null;
  finished: number;
  failed: number;
}

const POINTS_MAX = 900;
/** A stream that says nothing for so long is broken. */
const SILENCE_MS = 8_000;

export const snapshot = signal<Snapshot<Job> | null>(null);
export const connection = signal<'connecting' | 'live' | 'lost' | 'paused'>('connecting');
/** The job that the page is about, of which more is sent. */
export const watchedJob = signal<string | null>(null);
export const now = signal(Date.now());

const points = new Map<string, Point[]>();

export function pointsOf(jobId: string): Point[] {
  return points.get(jobId) ?? [];
}

let source: EventSource | null = null;
let heardAt = 0;

function close(): void {
  source?.close();
  source = null;
}

function open(): void {
  close();
  if (document.hidden) {
    connection.value = 'paused';
    return;
  }
  if (needsKey.peek()) return;
  const job = watchedJob.peek();
  heardAt = Date.now();
  source = new EventSource(`/api/v1/snapshots${job === null ? '' : `?job=${encodeURIComponent(job)}`}`);
  source.addEventListener('snapshot', (event) => {
    heardAt = Date.now();
    connection.value = 'live';
    take(JSON.parse((event as MessageEvent<string>).data));
  });
  source.addEventListener('error', () => {
    connection.value = 'lost';
    // The stream itself does not say why it was refused.
    if (source?.readyState === EventSource.CLOSED) void call('/jobs?limit=1').catch(() => {});
  });
}

function take(next: Snapshot<Job>): void {
  const at = Date.parse(next.at);
  now.value = at;
  for (const { job_id: id, counts, live } of next.jobs) {
    const known = points.get(id) ?? [];
    points.set(id, known);
    if (!live && known.length === 0) continue;
    const hosts = id === watchedJob.peek() ? (next.details?.hosts ?? []) : [];
    known.push({
      at,
      rate: live?.pages_per_second ?? 0,
      p50: weighted(hosts, 'p50Ms'),
      p95: weighted(hosts, 'p95Ms'),
      finished: counts.total - counts.pending,
      failed: counts.failed,
    });
    if (known.length > POINTS_MAX) known.splice(0, known.length - POINTS_MAX);
  }
  snapshot.value = next;
}

/** Over all hosts, each by its requests. */
function weighted(hosts: LiveDetails['hosts'], name: 'p50Ms' | 'p95Ms'): number | null {
  let sum = 0;
  let weight = 0;
  for (const host of hosts) {
    const value = host[name];
    if (value === null) continue;
    sum += value * host.requestsPerSecond;
    weight += host.requestsPerSecond;
  }
  return weight === 0 ? null : sum / weight;
}

export function startLive(): void {
  document.addEventListener('visibilitychange', open);
  effect(() => {
    void watchedJob.value;
    void needsKey.value;
    open();
  });
  setInterval(() => {
    if (document.hidden || needsKey.peek()) return;
    if (connection.peek() !== 'live') now.value = Date.now();
    if (Date.now() - heardAt > SILENCE_MS) open();
  }, 2_000);
}

export function jobNow(id: string): JobNow | null {
  return snapshot.value?.jobs.find((job) => job.job_id === id) ?? null;
}

/** Steps of half a second say more about how reports arrive than about the pace. */
const SMOOTH = 7;

export function smooth(values: readonly number[]): number[] {
  return values.map((_, at) => {
    const near = values.slice(Math.max(0, at - SMOOTH + 1), at + 1);
    return near.reduce((sum, value) => sum + value, 0) / near.length;
  });
}

/** Pages a second, lately. */
export function ratesOf({ job_id: id, live }: JobNow): number[] {
  return live && live.history.length > 1 ? smooth(live.history) : pointsOf(id).map(({ rate }) => rate);
}
