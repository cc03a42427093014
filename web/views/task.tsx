import { useState } from 'preact/hooks';
import {
  type Attempt,
  call,
  type RecordRow,
  type RecordVersion,
  search,
  type Task,
  useLoad,
} from '../api.ts';
import { Choice, Empty, Failure, Loading, Panel, Stat, Status, Text, Url } from '../components/basics.tsx';
import { Diff, Json } from '../components/json.tsx';
import { bytes, count, duration, millis, time } from '../format.ts';
import type { JobNow } from '../live.ts';
import { query } from '../router.ts';

interface TaskDetails extends Omit<Task, 'records'> {
  depth: number;
  route: string | null;
  host: string;
  has_page: boolean;
  revisit_seconds: number | null;
  attempt_log: Attempt[];
  records: (RecordRow & { versions: RecordVersion[] })[];
}

/** One URL: what was tried, what came, what was made of it. */
export function TaskView({ job }: { job: JobNow }) {
  const url = query.value.get('url') ?? '';
  const { data: task, error } = useLoad(`${job.job_id} ${url}`, (signal) =>
    call<TaskDetails>(`/jobs/${job.job_id}/task${search({ url })}`, { signal }),
  );
  if (error) return <Failure error={error} />;
  if (!task) return <Loading />;
  return (
    <>
      <div class="task-head">
        <Status value={task.status} />
        <h2>
          <Url value={task.url} />
        </h2>
      </div>
      <dl class="stats">
        <Stat label="HTTP" value={task.http_status ?? '–'} note={task.content_type ?? undefined} />
        <Stat
          label="Size"
          value={bytes(task.bytes)}
          note={task.sha256 ? <span class="mono">{task.sha256.slice(0, 12)}</span> : undefined}
        />
        <Stat
          label="Attempts"
          value={count(task.attempts)}
          note={task.code ?? 'no failure'}
          tone={task.code ? 'bad' : undefined}
        />
        <Stat
          label="Fetched"
          value={time(task.fetched_at)}
          note={task.route ? `route ${task.route}` : `depth ${task.depth}`}
        />
        {task.revisit_seconds === null ? null : (
          <Stat label="Due again" value={`after ${duration(task.revisit_seconds)}`} />
        )}
      </dl>
      {task.detail ? (
        <p class="waiting">
          <Text value={task.detail} />
        </p>
      ) : null}
      {task.final_url !== task.url ? (
        <p class="dim">
          Redirected to <Url value={task.final_url} />
        </p>
      ) : null}
      <div class="columns-of-panels">
        <div class="wide">
          <StoredPage job={job} task={task} />
        </div>
        <div>
          <Attempts rows={task.attempt_log} />
          {task.records.map((record) => (
            <RecordPanel key={record.key} record={record} />
          ))}
          {task.meta ? (
            <Panel title="Meta">
              <Json value={task.meta} />
            </Panel>
          ) : null}
        </div>
      </div>
    </>
  );
}

/** As it came, in a frame that can neither run scripts nor load anything. */
function StoredPage({ job, task }: { job: JobNow; task: TaskDetails }) {
  const picture = task.shots.find(({ type }) => type.startsWith('image/'));
  const [tab, setTab] = useState<'page' | 'screenshot'>(picture ? 'screenshot' : 'page');
  const stored = search({ url: task.url, job: job.job_id });
  if (!task.has_page && !picture) return null;
  const isText = task.content_type === null || /html|text|json|xml|image|pdf/.test(task.content_type);
  const choice = picture ? (
    <Choice label="What is shown" options={['page', 'screenshot']} value={tab} onChange={setTab} />
  ) : null;
  return (
    <Panel
      title="Stored page"
      aside={
        <>
          {choice}
          {task.has_page ? (
            <a href={`/api/v1/pages${stored}`} download>
              Download
            </a>
          ) : null}
        </>
      }
    >
      {tab === 'screenshot' && picture ? (
        <img
          class="shot"
          src={`/api/v1/shots/${picture.key}${stored}&inline=1`}
          alt={`Screenshot of ${task.url.slice(0, 200)}`}
        />
      ) : isText && task.has_page ? (
        <iframe
          class="stored"
          sandbox=""
          title="The stored page, without scripts and network"
          src={`/api/v1/pages${stored}&inline=1`}
        />
      ) : (
        <Empty title="This page cannot be shown here." />
      )}
    </Panel>
  );
}

function Attempts({ rows }: { rows: Attempt[] }) {
  if (rows.length === 0) return null;
  return (
    <Panel title="Attempts" flush>
      <ol class="attempts">
        {rows.map((one) => (
          <li key={one.started_at}>
            <div class="attempt-head">
              <Status value={one.outcome} />
              {one.code ? <span class="mono bad">{one.code}</span> : null}
              {one.http_status ? <span class="mono">{one.http_status}</span> : null}
              <span class="dim">{time(one.started_at)}</span>
            </div>
            <div class="dim small">
              {millis(one.duration_ms)}, {bytes(one.bytes)}, {one.fetcher ?? 'http'}
              {one.proxy ? (
                <>
                  , proxy <Text value={one.proxy} />
                </>
              ) : null}
              {one.worker ? (
                <>
                  , <Text value={one.worker} />
                </>
              ) : null}
            </div>
            {one.detail ? (
              <div class="small">
                <Text value={one.detail} />
              </div>
            ) : null}
          </li>
        ))}
      </ol>
    </Panel>
  );
}

export function RecordPanel({ record }: { record: RecordRow & { versions: RecordVersion[] } }) {
  const { versions } = record;
  return (
    <Panel title="Record" aside={<Text value={record.key} class="mono dim" />}>
      <Json value={record.data} />
      {versions.length === 0 ? null : (
        <>
          <h3>History</h3>
          <ol class="versions">
            {versions.map((version, at) => (
              <li key={version.from}>
                <p class="dim small">
                  {time(version.from)} to {time(version.until)}
                </p>
                <Diff before={version.data} after={at === 0 ? record.data : versions[at - 1]!.data} />
              </li>
            ))}
          </ol>
        </>
      )}
    </Panel>
  );
}
