import type { ComponentChildren } from 'preact';
import { useState } from 'preact/hooks';
import { may } from '../about.ts';
import { call, useLoad } from '../api.ts';
import { Button, Choice, Empty, Failure, Loading, Text, Url } from '../components/basics.tsx';
import { ACTION, Table } from '../components/table.tsx';
import { attempt } from '../components/toast.tsx';
import { count, counted } from '../format.ts';
import type { JobNow } from '../live.ts';
import { query, setQuery, withQuery } from '../router.ts';

interface Group {
  code: string;
  host: string;
  count: number;
  sample_url: string;
  sample_detail: string | null;
}

/** URLs that failed for good, by reason and host, with a way to try a group again. */
export function DeadLettersView({ job }: { job: JobNow }) {
  const by = query.value.get('by') === 'host' ? 'host' : 'code';
  const { data, error, reload } = useLoad(`${job.job_id} ${job.counts.failed}`, (signal) =>
    call<{ groups: Group[]; groups_total: number }>(`/jobs/${job.job_id}/dead`, { signal }),
  );
  if (error) return <Failure error={error} />;
  if (!data) return <Loading />;
  if (data.groups.length === 0)
    return (
      <Empty title="No dead letters">
        <p>URLs that failed for good appear here, by reason and host.</p>
      </Empty>
    );
  const sections = new Map<string, Group[]>();
  for (const group of data.groups) sections.set(group[by], [...(sections.get(group[by]) ?? []), group]);
  return (
    <>
      <div class="bar">
        <Choice
          label="Grouped by"
          options={['code', 'host']}
          value={by}
          onChange={(one) => setQuery({ by: one === 'code' ? null : one })}
          show={(one) => (one === 'code' ? 'by reason' : 'by host')}
        />
        {may('write') ? (
          <Retry job={job} filter={{}} number={job.counts.failed} label="Retry all" onDone={reload} />
        ) : null}
      </div>
      {[...sections].map(([name, groups]) => (
        <Section key={name} job={job} by={by} name={name} groups={groups} onDone={reload} />
      ))}
      {data.groups_total > data.groups.length ? (
        <p class="dim">and {counted(data.groups_total - data.groups.length, 'smaller group')}</p>
      ) : null}
    </>
  );
}

interface SectionProps {
  job: JobNow;
  by: 'code' | 'host';
  name: string;
  groups: Group[];
  onDone: () => void;
}

function Section({ job, by, name, groups, onDone }: SectionProps) {
  const total = groups.reduce((sum, group) => sum + group.count, 0);
  const other = by === 'code' ? 'host' : 'code';
  return (
    <section class="panel flush">
      <header class="panel-head">
        <h2>
          <Text value={name} class={by === 'code' ? 'mono' : ''} /> <span class="dim">{count(total)}</span>
        </h2>
        {may('write') ? (
          <Retry job={job} filter={{ [by]: name }} number={total} label="Retry" onDone={onDone} />
        ) : null}
      </header>
      <Table
        kind="stack"
        columns={[by === 'code' ? 'Host' : 'Reason', { title: 'URLs', number: true }, 'Example', ACTION]}
      >
        {groups.slice(0, 50).map((group) => (
          <GroupRow key={group[other]} job={job} group={group} name={group[other]}>
            {may('write') && groups.length > 1 ? (
              <Retry
                job={job}
                filter={{ code: group.code, host: group.host }}
                number={group.count}
                label="Retry"
                onDone={onDone}
              />
            ) : null}
          </GroupRow>
        ))}
      </Table>
    </section>
  );
}

interface GroupRowProps {
  job: JobNow;
  group: Group;
  name: string;
  children: ComponentChildren;
}

function GroupRow({ job, group, name, children }: GroupRowProps) {
  return (
    <tr>
      <td class="side-cell">
        <Text value={name} />
      </td>
      <td class="number" data-label="URLs">
        <a
          href={withQuery(`/jobs/${job.job_id}/tasks`, {
            status: 'failed',
            host: group.host,
            code: group.code,
          })}
        >
          {count(group.count)}
        </a>
      </td>
      <td class="main-cell">
        <a href={withQuery(`/jobs/${job.job_id}/task`, { url: group.sample_url })}>
          <Url value={group.sample_url} />
        </a>
        {group.sample_detail ? (
          <span class="cell-note">
            <Text value={group.sample_detail} />
          </span>
        ) : null}
      </td>
      <td class="number action-cell">{children}</td>
    </tr>
  );
}

interface RetryProps {
  job: JobNow;
  filter: Record<string, string>;
  number: number;
  label: string;
  onDone: () => void;
}

function Retry({ job, filter, number, label, onDone }: RetryProps) {
  const [isBusy, setBusy] = useState(false);
  const retry = async () => {
    setBusy(true);
    await attempt(number === 1 ? '1 URL is tried again.' : `${count(number)} URLs are tried again.`, () =>
      call(`/jobs/${job.job_id}/retry`, { method: 'POST', body: filter }),
    );
    setBusy(false);
    onDone();
  };
  const about = Object.values(filter).join(' at ') || 'everything';
  return (
    <Button icon="retry" disabled={isBusy} onClick={() => void retry()} label={`${label} ${about}`}>
      {label}
    </Button>
  );
}
