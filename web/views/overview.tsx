import { useMemo } from 'preact/hooks';
import { callIfThere } from '../about.ts';
import { call, search, useLoad } from '../api.ts';
import { Choice, Empty, Panel, Stat, Status, Text } from '../components/basics.tsx';
import { Chart } from '../components/chart.tsx';
import { type HeatCell, Heatmap } from '../components/heatmap.tsx';
import { Progress } from '../components/progress.tsx';
import { Sparkline } from '../components/sparkline.tsx';
import { bytes, count, duration, millis, percent, rate, short, time } from '../format.ts';
import { type JobNow, pointsOf, ratesOf, smooth, snapshot } from '../live.ts';
import { query, setQuery, withQuery } from '../router.ts';

/** How a job fares, at one look. */
export function Overview({ job }: { job: JobNow }) {
  const { counts, live } = job;
  const finished = counts.total - counts.pending;
  const share = finished / Math.max(1, counts.total);
  const tried = counts.succeeded + counts.failed;
  const rates = ratesOf(job);
  return (
    <>
      <Progress counts={counts} legend />
      <dl class="stats">
        <Stat
          label="Pages a second"
          value={rate(live ? live.pages_per_second : finished / Math.max(1, tookSeconds(job)))}
          note={live ? `${bytes(live.bytes_per_second)}/s` : 'on average'}
        >
          <Sparkline values={rates} label="Pages a second, lately" />
        </Stat>
        <Stat label="Finished" value={percent(share)} note={`${short(finished)} of ${short(counts.total)}`} />
        <Stat
          label={live ? 'Time left' : 'Took'}
          value={
            live ? (live.eta_seconds === null ? '–' : duration(live.eta_seconds)) : duration(tookSeconds(job))
          }
          note={live?.discovering ? 'at least; links still come in' : undefined}
        />
        <Stat
          label="Success"
          value={tried === 0 ? '–' : percent(counts.succeeded / tried)}
          note={counts.failed > 0 ? `${count(counts.failed)} failed` : 'no failures'}
          tone={tried > 0 && counts.failed / tried > 0.05 ? 'bad' : undefined}
        />
        <Stat label="Records" value={short(counts.records)} note={`${bytes(counts.bytes)} fetched`} />
        <Stat label="Requests" value={short(counts.requests)} note={`${short(counts.retries)} retries`} />
      </dl>
      {live?.waiting_for ? <p class="waiting">{live.waiting_for}</p> : null}
      <div class="grid">
        <TimeCharts job={job} />
        <Explain job={job} />
        <Failures job={job} />
        <BusyHosts job={job} />
        <Quality job={job} />
        <Recent />
      </div>
    </>
  );
}

function tookSeconds({ created_at: from, ended_at: to }: JobNow): number {
  return to === null ? 0 : (Date.parse(to) - Date.parse(from)) / 1_000;
}

export interface SeriesPoint {
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

function TimeCharts({ job }: { job: JobNow }) {
  const asked = query.value.get('span') ?? 'all';
  const span: Span = asked in SPANS ? (asked as Span) : 'all';
  const end = job.live ? Date.now() : Date.parse(job.ended_at ?? job.created_at);
  const length = SPANS[span] ?? (end - Date.parse(job.created_at)) / 1_000;
  const step = length <= 2 * 3_600 ? 10 : length <= 2 * 86_400 ? 60 : 3_600;
  const from = SPANS[span] === null ? undefined : new Date(end - length * 1_000).toISOString();
  const key = `${job.job_id} ${span} ${step} ${job.live ? '' : job.ended_at}`;
  const { data } = useLoad(
    key,
    (signal) =>
      callIfThere<SeriesAnswer>('/jobs/{id}/series', `/jobs/${job.job_id}/series${search({ step, from })}`, {
        signal,
      }),
    { everyMs: job.live ? 10_000 : 0 },
  );
  const seen = pointsOf(job.job_id);
  const stored = data && job.live ? withoutOpen(data) : data;
  const isStored = stored !== null && stored.points.length >= (job.live ? POINTS_MIN : 2);
  const shown = useMemo(() => {
    if (isStored) {
      const { points, step_seconds: seconds } = stored;
      return {
        times: points.map(({ at }) => secondsOf(at)),
        pages: points.map(({ pages }) => pages / seconds),
        failed: points.map(({ failed }) => failed / seconds),
        p50: points.map(({ latency_ms: { p50 } }) => p50),
        p95: points.map(({ latency_ms: { p95 } }) => p95),
        p99: points.map(({ latency_ms: { p99 } }) => p99),
      };
    }
    return fromLive(job, seen);
  }, [data, isStored, seen.length, seen.at(-1)?.at]);
  const spans = isStored ? (
    <Choice
      label="Time shown"
      options={Object.keys(SPANS) as Span[]}
      value={span}
      onChange={(one) => setQuery({ span: one === 'all' ? null : one })}
    />
  ) : undefined;
  const isEmpty = shown.times.length < 2;
  return (
    <>
      <Panel title="Throughput" aside={spans} wide>
        {isEmpty ? (
          <Empty title="No measurements yet" />
        ) : (
          <Chart
            label="Pages a second over time"
            times={shown.times}
            series={[
              { label: 'Pages/s', tone: 'accent', values: shown.pages, fill: true },
              { label: 'Failed/s', tone: 'bad', values: shown.failed },
            ]}
            format={(value) => short(value)}
          />
        )}
      </Panel>
      <Panel title="Latency">
        {isEmpty || shown.p50.every((value) => value === null) ? (
          <Empty title="No measurements yet" />
        ) : (
          <Chart
            label="Time to answer"
            times={shown.times}
            series={[
              { label: 'p50', tone: 'accent', values: shown.p50, fill: true },
              { label: 'p95', tone: 'warn', values: shown.p95 },
              ...(isStored ? [{ label: 'p99', tone: 'bad', values: shown.p99, dash: true }] : []),
            ]}
            format={(value) => millis(value)}
          />
        )}
      </Panel>
    </>
  );
}

/** From what this page has seen, and before that from what the run remembers of its last minutes. */
function fromLive({ live }: JobNow, seen: ReturnType<typeof pointsOf>) {
  const first = seen[0]?.at ?? Date.now();
  const step = live?.history_step_seconds ?? 0;
  const before =
    step > 0 && live
      ? live.history.slice(
          0,
          Math.max(0, live.history.length - Math.ceil((Date.now() - first) / 1_000 / step)),
        )
      : [];
  const times = [
    ...before.map((_, at) => first / 1_000 - (before.length - at) * step),
    ...seen.map(({ at }) => at / 1_000),
  ];
  const none = before.map(() => null);
  return {
    times,
    pages: [...smooth(before), ...seen.map((point) => point.rate)],
    failed: [
      ...none,
      ...seen.map((point, at) => (at === 0 ? null : Math.max(0, point.failed - seen[at - 1]!.failed))),
    ],
    p50: [...none, ...seen.map(({ p50 }) => p50)],
    p95: [...none, ...seen.map(({ p95 }) => p95)],
    p99: times.map(() => null),
  };
}

interface Explained {
  /** Percent. */
  shares: Record<string, number>;
  limiting: string | null;
  criticalHost: string | null;
  gains: { change: string; gainPercent: number; etaSeconds: number | null }[];
  sentence: string;
}

const SHARE_TONES = ['accent', 'info', 'violet', 'warn', 'good', 'pink', 'bad'];

/** `hostGap` is a name for programs. */
const wordsOf = (name: string) => name.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);

function Explain({ job }: { job: JobNow }) {
  const { data } = useLoad(
    `${job.job_id} ${job.status}`,
    (signal) => callIfThere<Explained>('/jobs/{id}/explain', `/jobs/${job.job_id}/explain`, { signal }),
    { everyMs: job.live ? 5_000 : 0 },
  );
  const shares = Object.entries(data?.shares ?? {})
    .filter(([, share]) => share > 0)
    .sort((one, other) => other[1] - one[1]);
  if (!data || shares.length === 0) return null;
  return (
    <Panel title="What limits it">
      <p class="sentence">
        <Text value={data.sentence} />
      </p>
      <div class="share-bar" aria-hidden="true">
        {shares.map(([name, share], at) => (
          <span
            key={name}
            class={`fill-${SHARE_TONES[at % SHARE_TONES.length]}`}
            style={{ flexGrow: share }}
          />
        ))}
      </div>
      <ul class="shares">
        {shares.slice(0, 7).map(([name, share], at) => (
          <li key={name}>
            <span class={`dot fill-${SHARE_TONES[at % SHARE_TONES.length]}`} />
            <span>{wordsOf(name)}</span>
            <b>{percent(share / 100)}</b>
          </li>
        ))}
      </ul>
      {data.gains.length > 0 ? (
        <ul class="gains">
          {data.gains.slice(0, 4).map(({ change, gainPercent, etaSeconds }) => (
            <li key={change}>
              <Text value={change} />
              <b class={gainPercent >= 5 ? 'good' : 'dim'}>
                {gainPercent >= 0 ? '+' : ''}
                {Math.round(gainPercent)} %
              </b>
              <span class="dim">{etaSeconds === null ? '' : duration(etaSeconds)}</span>
            </li>
          ))}
        </ul>
      ) : null}
    </Panel>
  );
}

interface FailureNumbers {
  cells: HeatCell[];
  providers: { provider: string; attempts: number; failures: number }[];
  hours_of_day: { hour: number; pages: number; failures: number }[];
}

const NO_FAILURES: FailureNumbers = { cells: [], providers: [], hours_of_day: [] };

function Failures({ job }: { job: JobNow }) {
  const { data } = useLoad(
    `${job.job_id} ${Math.floor(job.counts.failed / 10)} ${job.status}`,
    async (signal) => {
      const stored = await callIfThere<FailureNumbers>(
        '/jobs/{id}/failures',
        `/jobs/${job.job_id}/failures`,
        { signal },
      );
      if (stored) return stored;
      const dead = await callIfThere<{ groups: HeatCell[] }>('/jobs/{id}/dead', `/jobs/${job.job_id}/dead`, {
        signal,
      });
      return { cells: dead?.groups ?? [], providers: [], hours_of_day: [] };
    },
    { everyMs: job.live ? 10_000 : 0 },
  );
  const { cells, providers, hours_of_day: hours } = data ?? NO_FAILURES;
  const isSeveralHours = hours.filter(({ pages, failures }) => pages + failures > 0).length > 1;
  return (
    <Panel
      title="Failures by host and reason"
      aside={job.counts.failed > 0 ? <a href={`/jobs/${job.job_id}/dead`}>Dead letters</a> : undefined}
    >
      {cells.length === 0 ? (
        <Empty title={data ? 'Nothing failed' : 'Loading…'} />
      ) : (
        <Heatmap
          cells={cells}
          linkOf={({ host, code }) =>
            withQuery(`/jobs/${job.job_id}/tasks`, { status: 'failed', host, code })
          }
        />
      )}
      {isSeveralHours ? (
        <figure class="after">
          <figcaption class="dim">By hour of the day (UTC)</figcaption>
          <Sparkline
            values={hours.map(({ failures }) => failures)}
            tone="bad"
            label={`Failures by hour of the day: ${hours.map(({ hour, failures }) => `${hour} h: ${failures}`).join(', ')}`}
          />
        </figure>
      ) : null}
      {providers.length > 0 ? (
        <div class="table-box after">
          <table class="table compact">
            <thead>
              <tr>
                <th>Proxy provider</th>
                <th class="number">Attempts</th>
                <th class="number">Failed</th>
              </tr>
            </thead>
            <tbody>
              {providers.slice(0, 8).map(({ provider, attempts, failures }) => (
                <tr key={provider}>
                  <td class="main-cell">
                    <Text value={provider} />
                  </td>
                  <td class="number">{short(attempts)}</td>
                  <td class="number">{percent(failures / attempts)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      ) : null}
    </Panel>
  );
}

function BusyHosts({ job }: { job: JobNow }) {
  const details = snapshot.value?.details;
  if (!job.live || !details || details.hosts.length === 0) return null;
  return (
    <Panel
      title="Hosts"
      aside={<a href={`/jobs/${job.job_id}/hosts`}>All {count(details.hosts_total)}</a>}
      flush
    >
      <div class="table-box">
        <table class="table compact">
          <thead>
            <tr>
              <th>Host</th>
              <th>State</th>
              <th class="number">req/s</th>
              <th class="number">p95</th>
              <th class="number">Failed</th>
            </tr>
          </thead>
          <tbody>
            {details.hosts.slice(0, 8).map((host) => (
              <tr key={host.host}>
                <td class="main-cell">
                  <a href={withQuery(`/jobs/${job.job_id}/tasks`, { host: host.host })}>
                    <Text value={host.host} />
                  </a>
                </td>
                <td>
                  <Status value={host.state} />
                </td>
                <td class="number">{rate(host.requestsPerSecond)}</td>
                <td class="number">{millis(host.p95Ms)}</td>
                <td class={`number ${host.failed > 0 ? 'bad' : 'dim'}`}>{short(host.failed)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Panel>
  );
}

interface QualityAnswer {
  pass: number | null;
  routes: {
    route: string;
    score: number;
    records: number;
    invalid: number;
    fields: Record<string, number>;
    drops: { field: string | null; before: number; now: number }[];
  }[];
}

function Quality({ job }: { job: JobNow }) {
  const { data } = useLoad(
    `${job.job_id} ${job.status}`,
    (signal) => call<QualityAnswer>(`/jobs/${job.job_id}/quality`, { signal }),
    { everyMs: job.live ? 10_000 : 0 },
  );
  const routes = data?.routes ?? [];
  if (routes.length === 0) return null;
  return (
    <Panel title="Quality of records">
      {routes.map(({ route, score, records, invalid, fields, drops }) => (
        <div key={route} class="quality">
          <div class="quality-head">
            <Text value={route} class="strong" />
            <span class={`score ${score >= 90 ? 'good' : score >= 60 ? 'warn' : 'bad'}`}>{score}</span>
            <span class="dim">
              {count(records)} records{invalid > 0 ? `, ${count(invalid)} invalid` : ''}
            </span>
          </div>
          <ul class="fills">
            {Object.entries(fields).map(([field, share]) => {
              const drop = drops.find((one) => one.field === field);
              return (
                <li key={field}>
                  <Text value={field} />
                  <span class="fill-bar" aria-hidden="true">
                    <span
                      class={share >= 0.9 ? 'fill-good' : share >= 0.6 ? 'fill-warn' : 'fill-bad'}
                      style={{ width: `${share * 100}%` }}
                    />
                  </span>
                  <b>{percent(share)}</b>
                  {drop ? <span class="bad drift">was {percent(drop.before)}</span> : null}
                </li>
              );
            })}
          </ul>
        </div>
      ))}
    </Panel>
  );
}

function Recent() {
  const details = snapshot.value?.details;
  const notices = [...(details?.warnings ?? []), ...(details?.recent ?? [])].sort(
    (one, other) => other.at - one.at,
  );
  if (notices.length === 0) return null;
  return (
    <Panel title="Lately">
      <ul class="notices">
        {notices.slice(0, 8).map(({ at, level, text }) => (
          <li key={`${at} ${text}`} class={`notice-${level}`}>
            <time>{time(new Date(at).toISOString())}</time> <Text value={text} />
          </li>
        ))}
      </ul>
    </Panel>
  );
}
