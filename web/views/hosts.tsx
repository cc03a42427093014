import { useState } from 'preact/hooks';
import type { HostView } from '../../src/coordinator/reports/run-view.ts';
import { callIfThere, may } from '../about.ts';
import { call, search, useLoad } from '../api.ts';
import { Button, Empty, Failure, Loading, Status, Text } from '../components/basics.tsx';
import { Chart } from '../components/chart.tsx';
import { Dialog } from '../components/dialog.tsx';
import { ACTION, Table } from '../components/table.tsx';
import { attempt } from '../components/toast.tsx';
import { count, duration, millis, rate, short, time } from '../format.ts';
import { type JobNow, now, snapshot } from '../live.ts';
import { query, setQuery, withQuery } from '../router.ts';
import type { SeriesAnswer } from './job-charts.tsx';

interface Host {
  host: string;
  requests: number;
  next_at: string;
  failures_in_row: number;
  rate: number | null;
  is_banned: boolean;
  last_error: { at: string; code: string; detail: string } | null;
  ready?: number;
}

interface Page {
  hosts: Host[];
  next_cursor: string | null;
}

/** Hosts of a job, or of all jobs: their pace, and what stands in its way. */
export function HostsView({ job }: { job: JobNow | null }) {
  const cursor = query.value.get('after');
  const chosen = query.value.get('host');
  const base = job ? `/jobs/${job.job_id}/hosts` : '/hosts';
  const { data, error } = useLoad(
    `${base} ${cursor}`,
    (signal) => call<Page>(`${base}${search({ limit: 100, cursor })}`, { signal }),
    { everyMs: 5_000 },
  );
  return (
    <>
      {job ? null : (
        <div class="view-head">
          <div>
            <h1>Hosts</h1>
            <p class="dim">Each has one limit over all jobs.</p>
          </div>
        </div>
      )}
      {job && chosen !== null ? <HostSeries job={job} host={chosen} /> : null}
      <Failure error={error} />
      {data ? <HostTable job={job} page={data} /> : error ? null : <Loading />}
    </>
  );
}

function stateOf(host: Host, at: number): string {
  if (host.is_banned) return 'banned';
  if (host.failures_in_row > 3) return 'failing';
  return Date.parse(host.next_at) > at + 2_000 ? 'resting' : 'ok';
}

function HostTable({ job, page }: { job: JobNow | null; page: Page }) {
  const [slowed, setSlowed] = useState<string | null>(null);
  const live = new Map((job ? (snapshot.value?.details?.hosts ?? []) : []).map((host) => [host.host, host]));
  if (page.hosts.length === 0) return <Empty title="No hosts yet" />;
  return (
    <section class="panel flush">
      <Table
        kind="stack"
        columns={[
          'Host',
          'State',
          { title: 'Learned rate', number: true },
          live.size > 0 && { title: 'req/s', number: true },
          live.size > 0 && { title: 'p95', number: true, wide: true },
          { title: 'Requests', number: true, wide: true },
          job && { title: 'Ready', number: true, wide: true },
          'Last error',
          job && may('write') && ACTION,
        ]}
      >
        {page.hosts.map((host) => (
          <HostRow
            key={host.host}
            job={job}
            host={host}
            seen={live.size > 0 ? (live.get(host.host) ?? null) : undefined}
            onSlowDown={() => setSlowed(host.host)}
          />
        ))}
      </Table>
      <div class="pager">
        <span class="dim">{count(page.hosts.length)} shown</span>
        {page.next_cursor ? (
          <Button onClick={() => setQuery({ after: page.next_cursor })}>More</Button>
        ) : null}
      </div>
      {job && slowed !== null ? <SlowDown job={job} host={slowed} onClose={() => setSlowed(null)} /> : null}
    </section>
  );
}

interface HostRowProps {
  job: JobNow | null;
  host: Host;
  /** What it does now; null where nothing is known of it, undefined where nothing is of any host. */
  seen: HostView | null | undefined;
  onSlowDown: () => void;
}

function HostRow({ job, host, seen, onSlowDown }: HostRowProps) {
  const wait = (Date.parse(host.next_at) - now.value) / 1_000;
  return (
    <tr>
      <td class="main-cell">
        {job ? (
          <a href={withQuery(`/jobs/${job.job_id}/hosts`, { host: host.host })}>
            <Text value={host.host} />
          </a>
        ) : (
          <Text value={host.host} class="strong" />
        )}
        {wait > 2 ? <span class="cell-note">asked again in {duration(wait)}</span> : null}
      </td>
      <td>
        <Status value={stateOf(host, now.value)} />
      </td>
      <td class="number" data-label="Learned rate">
        {host.rate === null ? '–' : `${rate(host.rate)}/s`}
      </td>
      {seen === undefined ? null : (
        <td class="number" data-label="req/s">
          {seen ? rate(seen.requestsPerSecond) : '–'}
        </td>
      )}
      {seen === undefined ? null : (
        <td class="number wide-only" data-label="p95">
          {millis(seen?.p95Ms)}
        </td>
      )}
      <td class="number wide-only" data-label="Requests">
        {short(host.requests)}
      </td>
      {job ? (
        <td class="number wide-only" data-label="Ready">
          {short(host.ready ?? 0)}
        </td>
      ) : null}
      <td class="value-cell dim error-cell" data-label="Last error">
        {host.last_error ? (
          <>
            <span class="mono">{host.last_error.code}</span> <Text value={host.last_error.detail} />
            <span class="cell-note">{time(host.last_error.at)}</span>
          </>
        ) : (
          '–'
        )}
      </td>
      {job && may('write') ? (
        <td class="number action-cell">
          <Button label={`Slow down ${host.host}`} onClick={onSlowDown}>
            Slow down
          </Button>
        </td>
      ) : null}
    </tr>
  );
}

function SlowDown({ job, host, onClose }: { job: JobNow; host: string; onClose: () => void }) {
  const [value, setValue] = useState('0.5');
  const [parallel, setParallel] = useState('1');
  const accept = () =>
    void attempt(`${host} is asked at most ${value} times a second.`, () =>
      call(`/jobs/${job.job_id}`, {
        method: 'PATCH',
        body: { hosts: { [host]: { rate: Number(value), parallel: Number(parallel) } } },
      }),
    );
  return (
    <Dialog title="Slow this host down" action="Slow down" onClose={onClose} onAccept={accept}>
      <p>
        <Text value={host} class="strong" />
      </p>
      <label>
        Requests a second, at most
        <input
          type="number"
          min="0.01"
          max="100000"
          step="any"
          required
          value={value}
          onInput={(event) => setValue(event.currentTarget.value)}
        />
      </label>
      <label>
        Concurrent requests, at most
        <input
          type="number"
          min="1"
          max="1000"
          required
          value={parallel}
          onInput={(event) => setParallel(event.currentTarget.value)}
        />
      </label>
    </Dialog>
  );
}

function HostSeries({ job, host }: { job: JobNow; host: string }) {
  const { data } = useLoad(
    `${job.job_id} ${host}`,
    (signal) =>
      callIfThere<SeriesAnswer>(
        '/jobs/{id}/series',
        `/jobs/${job.job_id}/series${search({ step: 10, host })}`,
        { signal },
      ),
    { everyMs: job.live ? 10_000 : 0 },
  );
  if (!data || data.points.length < 2) return null;
  return (
    <section class="panel host-series">
      <header class="panel-head">
        <h2>
          <Text value={host} /> <span class="dim">pace over time</span>
        </h2>
        <Button onClick={() => setQuery({ host: null })}>Close</Button>
      </header>
      <Chart
        label={`Requests a second to ${host}`}
        times={data.points.map(({ at }) => Date.parse(String(at)) / 1_000)}
        series={[
          {
            label: 'Requests/s',
            tone: 'accent',
            fill: true,
            values: data.points.map(({ requests }) => requests / data.step_seconds),
          },
          {
            label: 'Failed/s',
            tone: 'bad',
            values: data.points.map(({ failed }) => failed / data.step_seconds),
          },
        ]}
        format={short}
        height={180}
      />
    </section>
  );
}
