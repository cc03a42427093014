import { useEffect, useState } from 'preact/hooks';
import { may } from '../about.ts';
import { call, type Job, useLoad } from '../api.ts';
import { Button, Failure, Loading, Status, Text } from '../components/basics.tsx';
import { Dialog } from '../components/dialog.tsx';
import { attempt } from '../components/toast.tsx';
import { ago, duration, time, visible } from '../format.ts';
import { type JobNow, jobNow, now, watchedJob } from '../live.ts';
import { JobCost } from './cost.tsx';
import { DeadLettersView } from './dead-letters.tsx';
import { HostsView } from './hosts.tsx';
import { nameOf } from './jobs.tsx';
import { Overview } from './overview.tsx';
import { RecordsView } from './records.tsx';
import { TaskView } from './task.tsx';
import { TasksView } from './tasks.tsx';

interface Tab {
  part: string;
  label: string;
  view: (job: JobNow) => preact.ComponentChild;
  /** A number beside the name. */
  badge?: (job: JobNow) => number;
}

const TABS: Tab[] = [
  { part: '', label: 'Overview', view: (job) => <Overview job={job} /> },
  { part: 'tasks', label: 'Tasks', view: (job) => <TasksView job={job} /> },
  {
    part: 'dead',
    label: 'Dead letters',
    view: (job) => <DeadLettersView job={job} />,
    badge: ({ counts }) => counts.failed,
  },
  { part: 'records', label: 'Records', view: (job) => <RecordsView job={job} /> },
  { part: 'hosts', label: 'Hosts', view: (job) => <HostsView job={job} /> },
  { part: 'cost', label: 'Cost', view: (job) => <JobCost job={job} /> },
];

export function JobView({ id, part }: { id: string; part: string }) {
  const isShown = jobNow(id) !== null;
  // A job that is too old for the snapshots, or one that the address has by its name.
  const loaded = useLoad(isShown ? null : id, (signal) =>
    call<Job>(`/jobs/${encodeURIComponent(id)}`, { signal }),
  );
  const jobId = loaded.data?.job_id ?? id;
  useEffect(() => {
    watchedJob.value = jobId;
  }, [jobId]);
  const job = jobNow(jobId) ?? (loaded.data ? { ...loaded.data, live: null } : null);
  const name = job ? visible(nameOf(job)) : 'Job';
  useEffect(() => {
    document.title = `${name} · Seine`;
  }, [name]);
  if (!job) return loaded.error ? <Failure error={loaded.error} /> : <Loading />;
  const tab = TABS.find((one) => one.part === part);
  return (
    <>
      <JobHead job={job} />
      <nav class="tabs" aria-label="About this job" ref={showCurrent}>
        {TABS.map(({ part: name, label, badge }) => {
          const number = badge?.(job) ?? 0;
          const isHere = name === part || (part === 'task' && name === 'tasks');
          return (
            <a
              key={name}
              href={`/jobs/${job.job_id}${name === '' ? '' : `/${name}`}`}
              aria-current={isHere ? 'page' : undefined}
            >
              {label}
              {number > 0 ? <span class="badge">{number > 99_999 ? '99k+' : number}</span> : null}
            </a>
          );
        })}
      </nav>
      {part === 'task' ? <TaskView job={job} /> : (tab ?? TABS[0]!).view(job)}
    </>
  );
}

/** Where not all tabs have room, the chosen one is seen. */
function showCurrent(tabs: HTMLElement | null): void {
  const current = tabs?.querySelector<HTMLElement>('[aria-current]');
  if (!tabs || !current) return;
  const { offsetLeft: from, offsetWidth: width } = current;
  if (from + width > tabs.scrollLeft + tabs.clientWidth || from < tabs.scrollLeft)
    tabs.scrollLeft = from - (tabs.clientWidth - width) / 2;
}

function JobHead({ job }: { job: JobNow }) {
  const isRunning = job.status === 'running' || job.status === 'queued';
  const seconds =
    job.live?.elapsed_seconds ??
    (Date.parse(job.ended_at ?? job.created_at) - Date.parse(job.created_at)) / 1_000;
  return (
    <div class="view-head">
      <div>
        <p class="crumbs">
          <a href="/">Jobs</a> / <span class="mono">{job.job_id}</span>
        </p>
        <h1>
          <Text value={nameOf(job)} /> <Status value={job.status} />
        </h1>
        <p class="dim">
          Started <time title={job.created_at}>{time(job.created_at)}</time>
          {isRunning
            ? `, running for ${duration(seconds)}`
            : job.ended_at
              ? `, ended ${ago(job.ended_at, now.value)}`
              : ''}
          {job.priority === 0 ? '' : `, priority ${job.priority}`}
          {/* While it runs, the view below says what it waits for. */}
          {job.reason && !isRunning ? (
            <>
              {' · '}
              <Text value={job.reason} />
            </>
          ) : null}
        </p>
      </div>
      {may('write') ? <JobActions job={job} /> : null}
    </div>
  );
}

function JobActions({ job }: { job: Job }) {
  const [asked, setAsked] = useState<'cancel' | 'pace' | null>(null);
  const act = (action: string, done: string) =>
    void attempt(done, () => call(`/jobs/${job.job_id}/${action}`, { method: 'POST' }));
  const isRunning = job.status === 'running' || job.status === 'queued';
  return (
    <div class="actions">
      {isRunning ? (
        <>
          <Button onClick={() => setAsked('pace')}>Pace and priority</Button>
          <Button icon="stop" onClick={() => act('stop', 'The job stops.')}>
            Stop
          </Button>
          <Button kind="danger" onClick={() => setAsked('cancel')}>
            Cancel
          </Button>
        </>
      ) : job.status === 'stopped' || (job.status === 'failed' && job.counts.pending > 0) ? (
        <Button icon="play" kind="primary" onClick={() => act('resume', 'The job goes on.')}>
          Resume
        </Button>
      ) : job.status === 'completed' ? (
        <Button icon="retry" onClick={() => act('refresh', 'The pages are fetched again.')}>
          Refresh
        </Button>
      ) : null}
      {asked === 'cancel' ? (
        <Dialog
          title="Cancel this job?"
          action="Cancel the job"
          isDanger
          onClose={() => setAsked(null)}
          onAccept={() => act('cancel', 'The job is cancelled.')}
        >
          <p>It cannot be resumed. What it has fetched is kept.</p>
        </Dialog>
      ) : null}
      {asked === 'pace' ? <PaceDialog job={job} onClose={() => setAsked(null)} /> : null}
    </div>
  );
}

function PaceDialog({ job, onClose }: { job: Job; onClose: () => void }) {
  const [rate, setRate] = useState('');
  const [parallel, setParallel] = useState('');
  const [priority, setPriority] = useState(String(job.priority));
  const accept = () => {
    const body = {
      ...(rate === '' ? {} : { rate: Number(rate) }),
      ...(parallel === '' ? {} : { parallel: Number(parallel) }),
      ...(Number(priority) === job.priority ? {} : { priority: Number(priority) }),
    };
    void attempt('The change is in effect.', () => call(`/jobs/${job.job_id}`, { method: 'PATCH', body }));
  };
  return (
    <Dialog title="Pace and priority" action="Change" onClose={onClose} onAccept={accept}>
      <label>
        Requests a second, for each host
        <input
          type="number"
          min="0.01"
          max="100000"
          step="any"
          value={rate}
          placeholder="as it is"
          onInput={(event) => setRate(event.currentTarget.value)}
        />
      </label>
      <label>
        Concurrent requests, for each host
        <input
          type="number"
          min="1"
          max="1000"
          value={parallel}
          placeholder="as it is"
          onInput={(event) => setParallel(event.currentTarget.value)}
        />
      </label>
      <label>
        Priority among jobs, from −10 to 10
        <input
          type="number"
          min="-10"
          max="10"
          value={priority}
          onInput={(event) => setPriority(event.currentTarget.value)}
        />
      </label>
    </Dialog>
  );
}
