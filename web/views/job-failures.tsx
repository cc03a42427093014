import { callIfThere } from '../about.ts';
import { useLoad } from '../api.ts';
import { Empty, Panel, Text } from '../components/basics.tsx';
import { type HeatCell, Heatmap } from '../components/heatmap.tsx';
import { Sparkline } from '../components/sparkline.tsx';
import { Table } from '../components/table.tsx';
import { percent, short } from '../format.ts';
import type { JobNow } from '../live.ts';
import { withQuery } from '../router.ts';

interface FailureNumbers {
  cells: HeatCell[];
  providers: { provider: string; attempts: number; failures: number }[];
  hours_of_day: { hour: number; pages: number; failures: number }[];
}

const NO_FAILURES: FailureNumbers = { cells: [], providers: [], hours_of_day: [] };

/** Attempts that failed: by host and reason, by hour of the day, and by who lends the proxies. */
export function Failures({ job }: { job: JobNow }) {
  const { data } = useLoad(
    `${job.job_id} ${Math.floor(job.counts.failed / 10)} ${job.status}`,
    (signal) => failuresOf(job.job_id, signal),
    { everyMs: job.live ? 10_000 : 0 },
  );
  const { cells, providers, hours_of_day: hours } = data ?? NO_FAILURES;
  const isSeveralHours = hours.filter(({ pages, failures }) => pages + failures > 0).length > 1;
  return (
    <Panel
      title="Failed attempts by host and reason"
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
      {providers.length > 0 ? <Providers providers={providers} /> : null}
    </Panel>
  );
}

async function failuresOf(jobId: string, signal: AbortSignal): Promise<FailureNumbers> {
  const stored = await callIfThere<FailureNumbers>('/jobs/{id}/failures', `/jobs/${jobId}/failures`, {
    signal,
  });
  if (stored) return stored;
  const dead = await callIfThere<{ groups: HeatCell[] }>('/jobs/{id}/dead', `/jobs/${jobId}/dead`, {
    signal,
  });
  return { ...NO_FAILURES, cells: dead?.groups ?? [] };
}

const PROVIDERS_MAX = 8;

function Providers({ providers }: Pick<FailureNumbers, 'providers'>) {
  return (
    <Table
      kind="compact inset"
      after
      columns={['Proxy provider', { title: 'Attempts', number: true }, { title: 'Failed', number: true }]}
    >
      {providers.slice(0, PROVIDERS_MAX).map(({ provider, attempts, failures }) => (
        <tr key={provider}>
          <td class="main-cell">
            <Text value={provider} />
          </td>
          <td class="number">{short(attempts)}</td>
          <td class="number">{percent(failures / attempts)}</td>
        </tr>
      ))}
    </Table>
  );
}
