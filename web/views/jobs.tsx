import { may } from '../about.ts';
import { call, type Job, useLoad } from '../api.ts';
import { Empty, Failure, Loading, Status, Text } from '../components/basics.tsx';
import { Icon } from '../components/icons.tsx';
import { Progress } from '../components/progress.tsx';
import { Sparkline } from '../components/sparkline.tsx';
import { Table } from '../components/table.tsx';
import { ago, bytes, count, duration, percent, rate, short } from '../format.ts';
import { type JobNow, now, ratesOf, snapshot } from '../live.ts';
import { query, setQuery } from '../router.ts';

export function JobsView() {
  const jobs = snapshot.value?.jobs ?? null;
  const cursor = query.value.get('before');
  if (cursor !== null) return <OlderJobs cursor={cursor} />;
  if (!jobs) return <Loading />;
  const running = jobs.filter(isActive);
  const ended = jobs.filter((job) => !isActive(job));
  const last = jobs.at(-1);
  return (
    <>
      <Head jobs={jobs} />
      {jobs.length === 0 ? (
        <Empty title="No jobs yet">
          <p>
            Start one here, with <code>seine run https://…</code>, or by the API.
          </p>
          {may('write') ? (
            <a class="button primary" href="/new">
              <Icon name="plus" /> New job
            </a>
          ) : null}
        </Empty>
      ) : null}
      {running.length > 0 ? (
        <div class="cards">
          {running.map((job) => (
            <JobCard key={job.job_id} job={job} />
          ))}
        </div>
      ) : null}
      {ended.length > 0 ? (
        <section class="panel flush">
          <header class="panel-head">
            <h2>Ended</h2>
          </header>
          <JobList jobs={ended} />
        </section>
      ) : null}
      {jobs.length >= 30 && last ? (
        <div class="pager">
          <button
            type="button"
            class="button"
            onClick={() => setQuery({ before: last.job_id.replace('job_', '') })}
          >
            Older jobs
          </button>
        </div>
      ) : null}
    </>
  );
}

function OlderJobs({ cursor }: { cursor: string }) {
  const { data, error } = useLoad(cursor, (signal) =>
    call<{ jobs: Job[]; next_cursor: string | null }>(`/jobs?limit=50&cursor=${cursor}`, { signal }),
  );
  return (
    <>
      <Head jobs={snapshot.value?.jobs ?? []} />
      <Failure error={error} />
      {data ? <JobList jobs={data.jobs.map((job) => ({ ...job, live: null }))} /> : <Loading />}
      <div class="pager">
        <button type="button" class="button" onClick={() => setQuery({ before: null })}>
          Newest
        </button>
        {data?.next_cursor ? (
          <button type="button" class="button" onClick={() => setQuery({ before: data.next_cursor })}>
            Older
          </button>
        ) : null}
      </div>
    </>
  );
}

const isActive = ({ status }: JobNow) => status === 'running' || status === 'queued';

function Head({ jobs }: { jobs: JobNow[] }) {
  const running = jobs.filter(isActive);
  const sum = (of: (job: JobNow) => number) => running.reduce((total, job) => total + of(job), 0);
  return (
    <div class="view-head">
      <div>
        <h1>Jobs</h1>
        <p class="dim">
          {running.length === 0
            ? 'Nothing runs now.'
            : `${running.length} running, ${rate(sum(({ live }) => live?.pages_per_second ?? 0))} pages/s, ${bytes(sum(({ live }) => live?.bytes_per_second ?? 0))}/s, ${count(sum(({ counts }) => counts.pending))} waiting`}
        </p>
      </div>
      {may('write') ? (
        <a class="button primary" href="/new">
          <Icon name="plus" /> New job
        </a>
      ) : null}
    </div>
  );
}

export function nameOf(job: { name: string; run: number }): string {
  return job.run > 1 ? `${job.name} #${job.run}` : job.name;
}

function JobCard({ job }: { job: JobNow }) {
  const { counts, live } = job;
  const finished = counts.total - counts.pending;
  return (
    <a class="card job-card" href={`/jobs/${job.job_id}`}>
      <div class="card-head">
        <h2>
          <Text value={nameOf(job)} />
        </h2>
        <Status value={job.status} />
      </div>
      <div class="card-rate">
        <span class="big">{rate(live?.pages_per_second ?? 0)}</span>
        <span class="dim">pages/s</span>
        <Sparkline values={ratesOf(job)} label="Pages a second, lately" />
      </div>
      <Progress counts={counts} />
      <dl class="card-facts">
        <div>
          <dt>Finished</dt>
          <dd>
            {short(finished)} <span class="dim">of {short(counts.total)}</span>
          </dd>
        </div>
        <div>
          <dt>Time left</dt>
          <dd>
            {live?.eta_seconds == null ? '–' : `${live.discovering ? '≥ ' : ''}${duration(live.eta_seconds)}`}
          </dd>
        </div>
        <div>
          <dt>Failed</dt>
          <dd class={counts.failed > 0 ? 'bad' : ''}>{short(counts.failed)}</dd>
        </div>
        <div>
          <dt>Records</dt>
          <dd>{short(counts.records)}</dd>
        </div>
      </dl>
      {live?.waiting_for ? <p class="waiting">{live.waiting_for}</p> : null}
    </a>
  );
}

function JobList({ jobs }: { jobs: JobNow[] }) {
  return (
    <Table
      kind="stack"
      columns={[
        'Job',
        'State',
        { title: 'Result', wide: true },
        { title: 'Pages', number: true },
        { title: 'Failed', number: true },
        { title: 'Records', number: true, wide: true },
        { title: 'Bytes', number: true, wide: true },
        { title: 'Ended', number: true },
      ]}
    >
      {jobs.map((job) => (
        <JobRow key={job.job_id} job={job} />
      ))}
    </Table>
  );
}

function JobRow({ job }: { job: JobNow }) {
  return (
    <tr>
      <td class="main-cell">
        <a href={`/jobs/${job.job_id}`}>
          <Text value={nameOf(job)} />
        </a>
        {job.reason ? (
          <span class="cell-note">
            <Text value={job.reason} />
          </span>
        ) : null}
      </td>
      <td>
        <Status value={job.status} />
      </td>
      <td class="wide-only progress-cell">
        <Progress counts={job.counts} />
      </td>
      <td class="number" data-label="Pages">
        {short(job.counts.succeeded)}
      </td>
      <td class="number" data-label="Failed">
        {job.counts.failed === 0 ? (
          <span class="dim">0</span>
        ) : (
          <a class="bad" href={`/jobs/${job.job_id}/dead`}>
            {short(job.counts.failed)}
            <span class="dim"> {percent(job.counts.failed / Math.max(1, job.counts.total))}</span>
          </a>
        )}
      </td>
      <td class="number wide-only" data-label="Records">
        {short(job.counts.records)}
      </td>
      <td class="number wide-only" data-label="Bytes">
        {bytes(job.counts.bytes)}
      </td>
      <td class="number dim" data-label="Ended">
        {ago(job.ended_at ?? job.created_at, now.value)}
      </td>
    </tr>
  );
}
