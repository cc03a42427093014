import type { Receipt } from '../../src/core/cost/receipt.ts';
import { callIfThere } from '../about.ts';
import { useLoad } from '../api.ts';
import { Empty, Loading, Panel, Stat, Text } from '../components/basics.tsx';
import { Chart } from '../components/chart.tsx';
import { Table } from '../components/table.tsx';
import { bytes, count, short, usd } from '../format.ts';
import { type JobNow, snapshot } from '../live.ts';
import type { SeriesAnswer } from './job-charts.tsx';
import { nameOf } from './jobs.tsx';
import { ReceiptPanels } from './receipt.tsx';

const seriesOf = (jobId: string, signal: AbortSignal) =>
  callIfThere<SeriesAnswer>('/jobs/{id}/series', `/jobs/${jobId}/series?step=3600`, { signal });

const costIn = (series: SeriesAnswer | null) =>
  series?.points.reduce((sum, { cost_usd: cost }) => sum + (cost ?? 0), 0) ?? null;

/** What jobs have spent, and what that is for a million pages. */
export function CostView() {
  const jobs = (snapshot.value?.jobs ?? []).slice(0, 20);
  const { data } = useLoad(
    jobs.length === 0 ? null : jobs.map(({ job_id: id }) => id).join(),
    async (signal) =>
      new Map(
        await Promise.all(
          jobs.map(async ({ job_id: id }) => [id, costIn(await seriesOf(id, signal))] as const),
        ),
      ),
    { everyMs: 30_000 },
  );
  return (
    <>
      <div class="view-head">
        <div>
          <h1>Cost</h1>
          <p class="dim">What workers, proxies, storage and services cost, at the prices in the settings.</p>
        </div>
      </div>
      {jobs.length === 0 ? <Empty title="No jobs yet" /> : null}
      {jobs.length > 0 ? (
        <section class="panel flush">
          <Table
            kind="stack"
            columns={[
              'Job',
              { title: 'Spent', number: true },
              { title: 'For a million pages', number: true },
              { title: 'Pages', number: true },
              { title: 'Requests', number: true, wide: true },
              { title: 'Bytes', number: true, wide: true },
            ]}
          >
            {jobs.map((job) => (
              <CostRow key={job.job_id} job={job} spent={data?.get(job.job_id) ?? null} />
            ))}
          </Table>
        </section>
      ) : null}
    </>
  );
}

function CostRow({ job, spent }: { job: JobNow; spent: number | null }) {
  const pages = job.counts.succeeded;
  return (
    <tr>
      <td class="main-cell">
        <a href={`/jobs/${job.job_id}/cost`}>
          <Text value={nameOf(job)} />
        </a>
      </td>
      <td class="number" data-label="Spent">
        {spent === null ? '–' : usd(spent)}
      </td>
      <td class="number" data-label="For a million pages">
        {spent === null || pages === 0 ? '–' : usd((spent / pages) * 1e6)}
      </td>
      <td class="number" data-label="Pages">
        {short(pages)}
      </td>
      <td class="number wide-only" data-label="Requests">
        {short(job.counts.requests)}
      </td>
      <td class="number wide-only" data-label="Bytes">
        {bytes(job.counts.bytes)}
      </td>
    </tr>
  );
}

export function JobCost({ job }: { job: JobNow }) {
  const series = useLoad(job.job_id, (signal) => seriesOf(job.job_id, signal), {
    everyMs: job.live ? 10_000 : 0,
  });
  const receipt = useLoad(
    `${job.job_id} ${job.status}`,
    (signal) => callIfThere<Receipt>('/jobs/{id}/receipt', `/jobs/${job.job_id}/receipt`, { signal }),
    { everyMs: job.live ? 10_000 : 0 },
  );
  if (series.isLoading) return <Loading />;
  const spent = costIn(series.data) ?? 0;
  const pages = job.counts.succeeded;
  const points = series.data?.points ?? [];
  let sum = 0;
  const total = points.map(({ cost_usd: cost }) => {
    sum += cost ?? 0;
    return sum;
  });
  return (
    <>
      <dl class="stats">
        <Stat
          label="Spent"
          value={usd(spent)}
          note={spent === 0 ? 'nothing used that has a price' : undefined}
        />
        <Stat label="For a million pages" value={pages === 0 ? '–' : usd((spent / pages) * 1e6)} />
        <Stat label="Requests" value={count(job.counts.requests)} />
        <Stat label="Fetched" value={bytes(job.counts.bytes)} />
      </dl>
      <div class="grid">
        {points.length > 1 && spent > 0 ? (
          <Panel title="Spent over time" wide>
            <Chart
              label="Dollars spent"
              times={points.map(({ at }) => Date.parse(String(at)) / 1_000)}
              series={[{ label: 'Dollars', tone: 'accent', values: total, fill: true }]}
              format={usd}
            />
          </Panel>
        ) : null}
        {receipt.data ? <ReceiptPanels receipt={receipt.data} /> : null}
      </div>
    </>
  );
}
