import { useMemo } from 'preact/hooks';
import { callIfThere } from '../about.ts';
import { search, useLoad } from '../api.ts';
import { Choice, Empty, Panel } from '../components/basics.tsx';
import { Chart } from '../components/chart.tsx';
import { millis, short } from '../format.ts';
import { type JobNow, pointsOf, smooth } from '../live.ts';
import { query, setQuery } from '../router.ts';

/** Throughput and latency of a job over time. */

interface SeriesPoint {
  at: string | number;
  pages: number;
  succeeded: number;
  failed: number;
  skipped: number;
  requests: number;
  bytes: number;
  latency_ms: { p50: number | null; p95: number | null; p99: number | null };
  failures: Record<string, number>;
  cost_usd: number | null;
}

export interface SeriesAnswer {
  step_seconds: number;
  points: SeriesPoint[];
}

const SPANS = { '15m': 900, '1h': 3_600, '6h': 21_600, all: null } as const;
type Span = keyof typeof SPANS;

const secondsOf = (at: string | number) => (typeof at === 'number' ? at : Date.parse(at)) / 1_000;

/** A run that has just begun is shown by what the page itself has seen, second by second. */
const POINTS_MIN = 9;

/** The last stretch of time is not over: its count would look like a fall. */
function withoutOpen(series: SeriesAnswer): SeriesAnswer {
  const { points, step_seconds: seconds } = series;
  const last = points.at(-1);
  const isOpen = last !== undefined && secondsOf(last.at) + seconds > Date.now() / 1_000;
  return isOpen ? { ...series, points: points.slice(0, -1) } : series;
}

interface Curves {
  times: number[];
  pages: (number | null)[];
  failed: (number | null)[];
}

interface Latencies {
  times: number[];
  p50: (number | null)[];
  p95: (number | null)[];
  p99: (number | null)[] | null;
}

function spanAsked(): Span {
  const asked = query.value.get('span') ?? 'all';
  return asked in SPANS ? (asked as Span) : 'all';
}

/** What is stored of the job for the span that the address asks for. */
function useSeries(job: JobNow): SeriesAnswer | null {
  const span = spanAsked();
  const end = job.live ? Date.now() : Date.parse(job.ended_at ?? job.created_at);
  const length = SPANS[span] ?? (end - Date.parse(job.created_at)) / 1_000;
  const step = length <= 2 * 3_600 ? 10 : length <= 2 * 86_400 ? 60 : 3_600;
  const from = SPANS[span] === null ? undefined : new Date(end - length * 1_000).toISOString();
  const { data } = useLoad(
    `${job.job_id} ${span} ${step} ${job.live ? '' : job.ended_at}`,
    (signal) =>
      callIfThere<SeriesAnswer>('/jobs/{id}/series', `/jobs/${job.job_id}/series${search({ step, from })}`, {
        signal,
      }),
    { everyMs: job.live ? 10_000 : 0 },
  );
  return data && job.live ? withoutOpen(data) : data;
}

export function TimeCharts({ job }: { job: JobNow }) {
  const stored = useSeries(job);
  const seen = pointsOf(job.job_id);
  const has = (points: number) => stored !== null && stored.points.length >= points;
  const isStored = has(job.live ? POINTS_MIN : 2);
  const key = [stored, seen.length, seen.at(-1)?.at];
  const curves = useMemo(() => (isStored ? storedCurves(stored!) : liveCurves(job, seen)), key);
  const latencies = useMemo(() => (has(2) ? storedLatencies(stored!) : liveLatencies(seen)), key);
  return (
    <>
      <Panel title="Throughput" aside={isStored ? <SpanChoice /> : undefined} wide>
        {curves.times.length < 2 ? (
          <NoCurve job={job} />
        ) : (
          <Chart
            label="Pages a second over time"
            times={curves.times}
            series={[
              { label: 'Pages/s', tone: 'accent', values: curves.pages, fill: true },
              { label: 'Failed/s', tone: 'bad', values: curves.failed },
            ]}
            format={short}
          />
        )}
      </Panel>
      <Panel title="Latency">
        {latencies.p50.filter((value) => value !== null).length < 2 ? (
          <NoCurve job={job} />
        ) : (
          <Chart
            label="Time to answer"
            times={latencies.times}
            series={[
              { label: 'p50', tone: 'accent', values: latencies.p50, fill: true },
              { label: 'p95', tone: 'warn', values: latencies.p95 },
              ...(latencies.p99 ? [{ label: 'p99', tone: 'bad', values: latencies.p99, dash: true }] : []),
            ]}
            format={millis}
          />
        )}
      </Panel>
    </>
  );
}

/** A curve needs two measurements: a job that ended within seconds has one, and one whose hosts never answered no latency. */
function NoCurve({ job }: { job: JobNow }) {
  return <Empty title={job.live ? 'No measurements yet' : 'Too few measurements for a curve'} />;
}

function SpanChoice() {
  return (
    <Choice
      label="Time shown"
      options={Object.keys(SPANS) as Span[]}
      value={spanAsked()}
      onChange={(one) => setQuery({ span: one === 'all' ? null : one })}
    />
  );
}

function storedCurves({ points, step_seconds: seconds }: SeriesAnswer): Curves {
  return {
    times: points.map(({ at }) => secondsOf(at)),
    pages: points.map(({ pages }) => pages / seconds),
    failed: points.map(({ failed }) => failed / seconds),
  };
}

function storedLatencies({ points }: SeriesAnswer): Latencies {
  return {
    times: points.map(({ at }) => secondsOf(at)),
    p50: points.map(({ latency_ms: { p50 } }) => p50),
    p95: points.map(({ latency_ms: { p95 } }) => p95),
    p99: points.map(({ latency_ms: { p99 } }) => p99),
  };
}

/** From what this page has seen, and before that from what the run remembers of its last minutes. */
function liveCurves({ live }: JobNow, seen: ReturnType<typeof pointsOf>): Curves {
  const first = seen[0]?.at ?? Date.now();
  const step = live?.history_step_seconds ?? 0;
  const known = live && step > 0 ? live.history : [];
  const before = known.slice(0, Math.max(0, known.length - Math.ceil((Date.now() - first) / 1_000 / step)));
  return {
    times: [
      ...before.map((_, at) => first / 1_000 - (before.length - at) * step),
      ...seen.map(({ at }) => at / 1_000),
    ],
    pages: [...smooth(before), ...seen.map((point) => point.rate)],
    failed: [
      ...before.map(() => null),
      ...seen.map((point, at) => (at === 0 ? null : Math.max(0, point.failed - seen[at - 1]!.failed))),
    ],
  };
}

function liveLatencies(seen: ReturnType<typeof pointsOf>): Latencies {
  return {
    times: seen.map(({ at }) => at / 1_000),
    p50: seen.map(({ p50 }) => p50),
    p95: seen.map(({ p95 }) => p95),
    p99: null,
  };
}
