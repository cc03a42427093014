import { Panel, Stat, Status, Text } from '../components/basics.tsx';
import { Progress } from '../components/progress.tsx';
import { Sparkline } from '../components/sparkline.tsx';
import { Table } from '../components/table.tsx';
import { bytes, count, counted, duration, millis, percent, rate, short, time } from '../format.ts';
import { type JobNow, ratesOf, snapshot } from '../live.ts';
import { withQuery } from '../router.ts';
import { TimeCharts } from './job-charts.tsx';
import { Failures } from './job-failures.tsx';
import { Limits } from './job-limits.tsx';
import { Quality } from './job-quality.tsx';

/** How a job fares, at one look. */
export function Overview({ job }: { job: JobNow }) {
  return (
    <>
      <Progress counts={job.counts} legend />
      <Figures job={job} />
      {job.live?.waiting_for ? <p class="waiting">{job.live.waiting_for}</p> : null}
      <div class="grid">
        <TimeCharts job={job} />
      </div>
      <div class="columns-of-panels">
        <div>
          <Limits job={job} />
          {job.live ? <Quality job={job} /> : null}
        </div>
        <div class="wide">
          <Failures job={job} />
          <BusyHosts job={job} />
          <Recent />
          {/* Of a job that has ended there are neither hosts nor news: here is room. */}
          {job.live ? null : <Quality job={job} />}
        </div>
      </div>
    </>
  );
}

function Figures({ job }: { job: JobNow }) {
  const { counts, live } = job;
  const finished = counts.total - counts.pending;
  const tried = counts.succeeded + counts.failed;
  return (
    <dl class="stats of-six">
      <Stat
        label="Pages a second"
        value={rate(live ? live.pages_per_second : finished / Math.max(1, tookSeconds(job)))}
        note={live ? `${bytes(live.bytes_per_second)}/s` : 'on average'}
      >
        <Sparkline values={ratesOf(job)} label="Pages a second, lately" />
      </Stat>
      <Stat
        label="Finished"
        value={percent(finished / Math.max(1, counts.total))}
        note={`${short(finished)} of ${short(counts.total)}`}
      />
      <TimeLeft job={job} />
      <Stat
        label="Success"
        value={tried === 0 ? '–' : percent(counts.succeeded / tried)}
        note={
          tried === 0 ? 'nothing yet' : counts.failed > 0 ? `${count(counts.failed)} failed` : 'no failures'
        }
        tone={tried > 0 && counts.failed / tried > 0.05 ? 'bad' : undefined}
      />
      <Stat label="Records" value={short(counts.records)} note={`${bytes(counts.bytes)} fetched`} />
      <Stat
        label="Requests"
        value={short(counts.requests)}
        note={counted(counts.retries, 'retry', 'retries')}
      />
    </dl>
  );
}

function TimeLeft({ job }: { job: JobNow }) {
  const { live } = job;
  if (!live) return <Stat label="Took" value={duration(tookSeconds(job))} />;
  const { eta_seconds: seconds, eta_band_seconds: band, discovering } = live;
  if (seconds === null) return <Stat label="Time left" value="–" />;
  const between = band ? `${duration(band.low)} to ${duration(band.high)}` : undefined;
  return (
    <Stat
      label="Time left"
      value={`${discovering ? '≥ ' : ''}${duration(seconds)}`}
      note={discovering ? 'links still come in' : between}
    />
  );
}

function tookSeconds({ created_at: from, ended_at: to }: JobNow): number {
  return to === null ? 0 : (Date.parse(to) - Date.parse(from)) / 1_000;
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
      <Table
        kind="compact"
        columns={[
          'Host',
          'State',
          { title: 'req/s', number: true },
          { title: 'p95', number: true, wide: true },
          { title: 'Failed', number: true },
        ]}
      >
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
            <td class="number wide-only">{millis(host.p95Ms)}</td>
            <td class={`number ${host.failed > 0 ? 'bad' : 'dim'}`}>{short(host.failed)}</td>
          </tr>
        ))}
      </Table>
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
      <ul class="notices recent">
        {notices.slice(0, 8).map(({ at, level, text }) => (
          <li key={`${at} ${text}`} class={`notice-${level}`}>
            <time>{time(new Date(at).toISOString())}</time> <Text value={text} />
          </li>
        ))}
      </ul>
    </Panel>
  );
}
