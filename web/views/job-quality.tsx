import { call, useLoad } from '../api.ts';
import { Panel, Text } from '../components/basics.tsx';
import { count, counted, percent } from '../format.ts';
import type { JobNow } from '../live.ts';

interface QualityAnswer {
  pass: number | null;
  routes: {
    route: string;
    score: number;
    records: number;
    invalid: number;
    fields: Record<string, number>;
    drops: { field: string | null; before: number; now: number }[];
  }[];
}

/** How complete records are, by route and field, and what is filled less often than before. */
export function Quality({ job }: { job: JobNow }) {
  const { data } = useLoad(
    `${job.job_id} ${job.status}`,
    (signal) => call<QualityAnswer>(`/jobs/${job.job_id}/quality`, { signal }),
    { everyMs: job.live ? 10_000 : 0 },
  );
  const routes = data?.routes ?? [];
  if (routes.length === 0) return null;
  return (
    <Panel title="Quality of records">
      {routes.map(({ route, score, records, invalid, fields, drops }) => (
        <div key={route} class="quality">
          <div class="quality-head">
            <Text value={route} class="strong" />
            <span class={`score ${score >= 90 ? 'good' : score >= 60 ? 'warn' : 'bad'}`}>{score}</span>
            <span class="dim">
              {counted(records, 'record')}
              {invalid > 0 ? `, ${count(invalid)} invalid` : ''}
            </span>
          </div>
          <ul class="fills">
            {Object.entries(fields).map(([field, share]) => {
              const drop = drops.find((one) => one.field === field);
              return (
                <li key={field}>
                  <Text value={field} />
                  <span class="fill-bar" aria-hidden="true">
                    <span
                      class={share >= 0.9 ? 'fill-good' : share >= 0.6 ? 'fill-warn' : 'fill-bad'}
                      style={{ width: `${share * 100}%` }}
                    />
                  </span>
                  <b>{percent(share)}</b>
                  {drop ? <span class="bad drift">was {percent(drop.before)}</span> : null}
                </li>
              );
            })}
          </ul>
        </div>
      ))}
    </Panel>
  );
}
