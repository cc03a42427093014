import { call, type RecordRow, type RecordVersion, search, useLoad } from '../api.ts';
import { Empty, Failure, Loading, Text, Url } from '../components/basics.tsx';
import { Icon } from '../components/icons.tsx';
import { textOf } from '../components/json.tsx';
import { Table } from '../components/table.tsx';
import { counted, time, visible } from '../format.ts';
import type { JobNow } from '../live.ts';
import { go, query, setQuery, withQuery } from '../router.ts';
import { RecordPanel } from './task.tsx';

const ROWS = 50;
const COLUMNS_MAX = 7;
/** Letters of a name beside its value, on a phone. */
const NAME_MAX = 40;

/** What was made of the pages, as a table; a record with its history. */
export function RecordsView({ job }: { job: JobNow }) {
  const key = query.value.get('key');
  return key === null ? <RecordTable job={job} /> : <OneRecord job={job} recordKey={key} />;
}

interface RecordPage {
  records: RecordRow[];
  next_cursor: string | null;
}

function RecordTable({ job }: { job: JobNow }) {
  const cursor = query.value.get('after');
  const { data, error } = useLoad(`${job.job_id} ${cursor}`, (signal) =>
    call<RecordPage>(`/jobs/${job.job_id}/records${search({ limit: ROWS, cursor })}`, { signal }),
  );
  if (error) return <Failure error={error} />;
  if (!data) return <Loading />;
  return (
    <>
      <RecordBar job={job} />
      {data.records.length > 0 ? (
        <RecordRows job={job} page={data} isFirst={cursor === null} />
      ) : (
        <Empty title="No records">
          <p>
            A route with <code>select</code> makes them.
          </p>
        </Empty>
      )}
    </>
  );
}

function RecordBar({ job }: { job: JobNow }) {
  const find = (event: SubmitEvent) => {
    event.preventDefault();
    const key = String(new FormData(event.target as HTMLFormElement).get('key') ?? '').trim();
    if (key !== '') go(withQuery(`/jobs/${job.job_id}/records`, { key }));
  };
  return (
    <div class="bar">
      <search>
        <form class="filters" onSubmit={find}>
          <label class="grow">
            <span class="sr">Key of a record</span>
            <Icon name="search" />
            <input type="search" name="key" placeholder="Key of a record, often its URL" spellcheck={false} />
          </label>
        </form>
      </search>
      <div class="actions">
        {(['jsonl', 'csv'] as const).map((format) => (
          <a
            key={format}
            class="button"
            href={`/api/v1/jobs/${job.job_id}/export?what=records&format=${format}`}
            download
          >
            <Icon name="download" /> {format === 'csv' ? 'CSV' : 'JSON lines'}
          </a>
        ))}
      </div>
    </div>
  );
}

function RecordRows({ job, page, isFirst }: { job: JobNow; page: RecordPage; isFirst: boolean }) {
  const names = [...new Set(page.records.flatMap((record) => Object.keys(record.data)))];
  const shown = names.slice(0, COLUMNS_MAX);
  return (
    <section class="panel flush">
      <Table
        kind="records stack"
        columns={[
          ...shown.map((name) => ({ title: <Text value={name} /> })),
          'Page',
          { title: 'Changed', number: true },
        ]}
      >
        {page.records.map((record) => (
          <OneRow key={record.key} job={job} record={record} names={shown} />
        ))}
      </Table>
      <div class="pager">
        {names.length > shown.length ? (
          <span class="dim">{counted(names.length - shown.length, 'more field')} in each</span>
        ) : null}
        {isFirst ? null : (
          <button type="button" class="button" onClick={() => setQuery({ after: null })}>
            First
          </button>
        )}
        {page.next_cursor === null ? null : (
          <button type="button" class="button" onClick={() => setQuery({ after: page.next_cursor })}>
            Next
          </button>
        )}
      </div>
    </section>
  );
}

function OneRow({ job, record, names }: { job: JobNow; record: RecordRow; names: string[] }) {
  return (
    <tr>
      {names.map((name, at) => {
        const text = textOf(record.data[name]);
        return (
          <td
            key={name}
            class="value-cell"
            data-label={at === 0 ? undefined : visible(name.slice(0, NAME_MAX))}
          >
            {at === 0 ? (
              <a href={withQuery(`/jobs/${job.job_id}/records`, { key: record.key })}>
                <Text value={text} />
              </a>
            ) : (
              <Text value={text} />
            )}
          </td>
        );
      })}
      <td class="value-cell" data-label="Page">
        <a href={withQuery(`/jobs/${job.job_id}/task`, { url: record.url })}>
          <Url value={record.url} />
        </a>
      </td>
      <td class="number dim" data-label="Changed">
        {time(record.updated_at)}
      </td>
    </tr>
  );
}

function OneRecord({ job, recordKey }: { job: JobNow; recordKey: string }) {
  const { data, error } = useLoad(`${job.job_id} ${recordKey}`, (signal) =>
    call<RecordRow & { versions: RecordVersion[] }>(
      `/jobs/${job.job_id}/record${search({ key: recordKey })}`,
      {
        signal,
      },
    ),
  );
  return (
    <>
      <p class="crumbs">
        <a href={`/jobs/${job.job_id}/records`}>All records</a>
        {data ? (
          <>
            {' / '}
            <a href={withQuery(`/jobs/${job.job_id}/task`, { url: data.url })}>its page</a>
          </>
        ) : null}
      </p>
      <Failure error={error} />
      {data ? <RecordPanel record={data} /> : error ? null : <Loading />}
    </>
  );
}
