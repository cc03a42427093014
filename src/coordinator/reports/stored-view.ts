import type { Explanation } from '../../core/explain/explain.ts';
import { FAILURES, type FailureCode } from '../../core/failures.ts';
import type { Counters, JobState } from '../../core/model.ts';
import { ALL_HOSTS, countsOf, latencyOf, pagesOf, stretchOf } from '../../core/rollups/rollup.ts';
import type { Job, Store } from '../../ports/store.ts';
import { explainJob } from '../explain/explain-job.ts';
import type { HostView, RunView, Tally } from './run-view.ts';

/** What happened in a stretch of time. */
interface Point {
  at: number;
  pages: number;
  bytes: number;
}

/** What is known of a run without being in its process. */
export interface StoredFigures {
  name: string;
  state: JobState;
  dir: string | null;
  /** When its pass began, and how long it has worked since. */
  startedAt: number;
  workedMs: number;
  counters: Counters;
  /** Of `STEP_SECONDS`, the oldest first; those without anything are left out. */
  points: readonly Point[];
  hosts: HostView[];
  failures: Tally[];
  dead: Tally[];
  skips: Tally[];
  reason: string | null;
  explanation: Pick<Explanation, 'sentence' | 'eta'> | null;
}

const STEP_SECONDS = 10;
const STEP_MS = STEP_SECONDS * 1_000;
const POINTS_MAX = 60;
/** Rates are of the last whole steps and the present one. */
const RATE_STEPS = 2;
const HOSTS_MAX = 12;
const FAILURES_MAX = 200;

/** The dashboard of a run from what is stored of it, whoever runs it. */
export function viewOfFigures(figures: StoredFigures, now: number): RunView {
  const { counters, points, state } = figures;
  const from = stretchOf(now, STEP_SECONDS) - RATE_STEPS * STEP_MS;
  const sinceMs = Math.max(1_000, now - Math.max(from, figures.startedAt));
  const recent = points.filter(({ at }) => at >= from);
  const isRunning = state === 'running';
  const perSecond = (name: 'pages' | 'bytes') =>
    isRunning ? (recent.reduce((sum, point) => sum + point[name], 0) * 1_000) / sinceMs : 0;
  const rate = perSecond('pages');
  const finished = counters.done + counters.unchanged + counters.skipped + counters.dead;
  const remaining = counters.pending + counters.leased;
  const eta = figures.explanation?.eta ?? null;
  return {
    job: { name: figures.name, state, dir: figures.dir, unit: 'pages' },
    waitingFor: figures.reason,
    explanation: figures.explanation?.sentence ?? null,
    at: now,
    startedAt: figures.startedAt,
    elapsedMs: figures.workedMs,
    counters,
    fraction: counters.accepted === 0 ? 0 : finished / counters.accepted,
    pagesPerSecond: rate,
    averagePagesPerSecond: (finished * 1_000) / Math.max(1_000, figures.workedMs),
    bytesPerSecond: perSecond('bytes'),
    history: historyOf(points, now),
    historyStepMs: STEP_MS,
    etaMs:
      remaining === 0
        ? 0
        : isRunning && eta
          ? eta.seconds * 1_000
          : rate > 0
            ? Math.ceil((remaining * 1_000) / rate)
            : null,
    etaBandMs: isRunning && eta ? { low: eta.low * 1_000, high: eta.high * 1_000 } : null,
    discovering: false,
    openBatches: 0,
    hosts: figures.hosts,
    hostsTotal: figures.hosts.length,
    failures: figures.failures.filter((tally): tally is Tally<FailureCode> =>
      Object.hasOwn(FAILURES, tally.code),
    ),
    skips: figures.skips,
    dead: figures.dead,
    workers: [],
    workersTotal: 0,
    recent: [],
    warnings: [],
  };
}

/** Pages per second from the first stretch on, with those in which nothing happened; without the present one. */
function historyOf(points: readonly Point[], now: number): number[] {
  const [first] = points;
  const end = stretchOf(now, STEP_SECONDS);
  if (!first || first.at >= end) return [];
  const start = Math.max(first.at, end - POINTS_MAX * STEP_MS);
  const pages = new Map(points.map((point) => [point.at, point.pages]));
  return Array.from(
    { length: (end - start) / STEP_MS },
    (_, index) => (pages.get(start + index * STEP_MS) ?? 0) / STEP_SECONDS,
  );
}

/** Only reads. */
export async function storedFigures(
  store: Store,
  job: Job,
  { now, dir, isAlive }: { now: number; dir: string | null; isAlive: boolean },
): Promise<StoredFigures> {
  const range = { step: STEP_SECONDS, from: now - POINTS_MAX * STEP_MS, to: now + STEP_MS } as const;
  const points = await store.rollups.series(job.id, { ...range, host: ALL_HOSTS });
  const failures = new Map<string, number>();
  for (const { code, count } of await store.rollups.failures(job.id, { limit: FAILURES_MAX }))
    failures.set(code, (failures.get(code) ?? 0) + count);
  const hosts: HostView[] = [];
  for (const { host, rollup } of await store.rollups.hosts(job.id, { limit: HOSTS_MAX })) {
    const lately = await store.rollups.series(job.id, { ...range, from: now - 3 * STEP_MS, host });
    const requests = lately.reduce((sum, point) => sum + point.rollup.requests, 0);
    const failed = countsOf(rollup, 'failure').reduce((sum, [, count]) => sum + count, 0);
    const { p50, p95 } = latencyOf(rollup);
    hosts.push({
      host,
      state: requests > 0 ? 'active' : 'idle',
      requests: rollup.requests,
      done: rollup.succeeded,
      failed,
      requestsPerSecond: isAlive ? requests / (3 * STEP_SECONDS) : 0,
      p50Ms: p50,
      p95Ms: p95,
    });
  }
  const tallies = await store.views.tallies(job.id);
  const of = (state: string) =>
    tallies.filter((one) => one.state === state).map(({ code, count }) => ({ code, count }));
  const explained = await explainJob(store, job, { isAlive });
  return {
    name: job.name,
    state: job.state,
    dir,
    startedAt: job.passStartedAt,
    workedMs: job.workedMs,
    counters: await store.jobs.counters(job.id),
    points: points.map(({ at, rollup }) => ({ at, pages: pagesOf(rollup), bytes: rollup.bytes })),
    hosts,
    failures: [...failures].map(([code, count]) => ({ code, count })).sort((a, b) => b.count - a.count),
    dead: of('dead'),
    skips: of('skipped'),
    reason: job.reason,
    explanation: explained.limiting === null ? null : explained,
  };
}
