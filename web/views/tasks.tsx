import { useEffect, useRef, useState } from 'preact/hooks';
import { call, search, type Task } from '../api.ts';
import { Button, Choice, Empty, Failure, Status, Url } from '../components/basics.tsx';
import { Icon } from '../components/icons.tsx';
import { Table } from '../components/table.tsx';
import { bytes, count, time } from '../format.ts';
import type { JobNow } from '../live.ts';
import { go, query, setQuery, withQuery } from '../router.ts';

const STATUSES = ['', 'succeeded', 'failed', 'skipped', 'pending'] as const;
const ROWS = 50;

interface Page {
  results: Task[];
  next_cursor: string | null;
}

/** Tasks of a job. A filter is looked for in steps, each of which the server bounds: the list fills as they come. */
export function TasksView({ job }: { job: JobNow }) {
  const asked = query.value.get('status') ?? '';
  const status = STATUSES.find((one) => one === asked) ?? '';
  const host = query.value.get('host') ?? '';
  const code = query.value.get('code') ?? '';
  const q = query.value.get('q') ?? '';
  const { rows, isLooking, hasMore, error, more } = useTasks(job.job_id, { status, host, code, q });
  return (
    <>
      <SearchForm job={job} q={q} host={host} code={code} />
      <Choice
        label="Status"
        options={STATUSES}
        value={status}
        onChange={(one) => setQuery({ status: one })}
        show={(one) => (
          <>
            {one === '' ? 'all' : one}{' '}
            <span class="dim">{count(one === '' ? job.counts.total : job.counts[one])}</span>
          </>
        )}
      />
      <Failure error={error} />
      <section class="panel flush">
        {rows.length > 0 ? <TaskTable job={job} rows={rows} /> : null}
        {rows.length === 0 && !isLooking ? (
          <Empty title={job.counts.total === 0 ? 'No tasks yet' : 'No task matches.'} />
        ) : null}
        <div class="pager">
          <span class="dim" role="status">
            {isLooking ? 'Looking…' : rows.length > 0 ? `${count(rows.length)} shown` : ''}
          </span>
          {hasMore && !isLooking ? <Button onClick={more}>More</Button> : null}
        </div>
      </section>
    </>
  );
}

function SearchForm({ job, q, host, code }: { job: JobNow; q: string; host: string; code: string }) {
  const submit = async (event: SubmitEvent) => {
    event.preventDefault();
    const form = new FormData(event.target as HTMLFormElement);
    const given = Object.fromEntries([...form].map(([name, value]) => [name, String(value).trim()]));
    // A whole address is found at once, however many tasks there are.
    if (/^https?:\/\/./i.test(given.q ?? '')) {
      const found = await call<Task>(`/jobs/${job.job_id}/task${search({ url: given.q })}`).catch(() => null);
      if (found) return go(withQuery(`/jobs/${job.job_id}/task`, { url: given.q }));
    }
    setQuery(given);
  };
  return (
    <search>
      <form class="filters" onSubmit={submit} key={`${q} ${host} ${code}`}>
        <label class="grow">
          <span class="sr">URL, or a part of it</span>
          <Icon name="search" />
          <input
            type="search"
            name="q"
            defaultValue={q}
            placeholder="URL, or a part of it"
            spellcheck={false}
          />
        </label>
        <label>
          <span class="sr">Host</span>
          <input name="host" defaultValue={host} placeholder="host" spellcheck={false} />
        </label>
        <label>
          <span class="sr">Failure code</span>
          <input name="code" defaultValue={code} placeholder="failure code" spellcheck={false} />
        </label>
        <Button type="submit" kind="primary">
          Search
        </Button>
      </form>
    </search>
  );
}

function TaskTable({ job, rows }: { job: { job_id: string }; rows: Task[] }) {
  return (
    <Table
      kind="stack"
      columns={[
        'URL',
        'Status',
        { title: 'HTTP', number: true, wide: true },
        { title: 'Bytes', number: true, wide: true },
        { title: 'Attempts', number: true, wide: true },
        { title: 'Fetched', number: true, wide: true },
      ]}
    >
      {rows.map((task) => (
        <tr key={task.url}>
          <td class="main-cell">
            <a href={withQuery(`/jobs/${job.job_id}/task`, { url: task.url })}>
              <Url value={task.url} />
            </a>
          </td>
          <td>
            <Status value={task.status} />
            {task.code ? <span class="cell-note mono">{task.code}</span> : null}
          </td>
          <td class="number wide-only mono">{task.http_status ?? '–'}</td>
          <td class="number wide-only">{bytes(task.bytes)}</td>
          <td class="number wide-only never-stacked">{task.attempts}</td>
          <td class="number wide-only dim">{time(task.fetched_at)}</td>
        </tr>
      ))}
    </Table>
  );
}

/** Goes on from step to step until there is a screen of rows, or no more. */
function useTasks(jobId: string, filter: Record<string, string>) {
  const key = JSON.stringify([jobId, filter]);
  const [state, setState] = useState<{
    key: string;
    rows: Task[];
    cursor: string | null;
    isLooking: boolean;
    error: Error | null;
  }>({
    key: '',
    rows: [],
    cursor: null,
    isLooking: true,
    error: null,
  });
  const abort = useRef(new AbortController());
  const look = async (rows: Task[], from: string | null) => {
    abort.current.abort();
    const own = new AbortController();
    abort.current = own;
    let found = rows;
    let cursor = from;
    try {
      do {
        const page: Page = await call(`/jobs/${jobId}/results${search({ ...filter, cursor, limit: ROWS })}`, {
          signal: own.signal,
        });
        found = [...found, ...page.results];
        cursor = page.next_cursor;
        if (own.signal.aborted) return;
        const isLooking = cursor !== null && found.length < rows.length + ROWS;
        setState({ key, rows: found, cursor, isLooking, error: null });
      } while (cursor !== null && found.length < rows.length + ROWS);
    } catch (error) {
      if (!own.signal.aborted)
        setState({ key, rows: found, cursor, isLooking: false, error: error as Error });
    }
  };
  useEffect(() => {
    void look([], null);
    return () => abort.current.abort();
  }, [key]);
  const isOwn = state.key === key;
  return {
    rows: isOwn ? state.rows : [],
    isLooking: !isOwn || state.isLooking,
    hasMore: isOwn && state.cursor !== null,
    error: isOwn ? state.error : null,
    more: () => void look(state.rows, state.cursor),
  };
}
