import { callIfThere, may } from '../about.ts';
import { call, useLoad } from '../api.ts';
import { Button, Empty, Failure, Loading, Text } from '../components/basics.tsx';
import { attempt } from '../components/toast.tsx';
import { ago, bytes, percent, rate, short } from '../format.ts';
import { now } from '../live.ts';

interface Worker {
  worker: string;
  kind?: string;
  batches: number;
  tasks: number;
  tasks_per_second: number;
  last_seen_at: string;
  cpu?: number | null;
  memory_bytes?: number | null;
  slots?: number | null;
  can_drain?: boolean;
  draining?: boolean;
}

/** What does the work. */
export function WorkersView() {
  const { data, error, reload } = useLoad(
    'workers',
    (signal) => callIfThere<{ workers: Worker[] }>('/workers', '/workers', { signal }),
    { everyMs: 2_000 },
  );
  const drain = async (worker: string) => {
    await attempt(`${worker} finishes what it has, and takes no more.`, () =>
      call(`/workers/${encodeURIComponent(worker)}/drain`, { method: 'POST' }),
    );
    reload();
  };
  const workers = data?.workers ?? [];
  const hasLoad = workers.some(({ cpu }) => cpu != null);
  return (
    <>
      <div class="view-head">
        <div>
          <h1>Workers</h1>
          <p class="dim">Of the jobs that run here: threads, processes of a fleet, Lambda.</p>
        </div>
      </div>
      <Failure error={error} />
      {!data && !error ? <Loading /> : null}
      {data && workers.length === 0 ? <Empty title="No worker has anything to do." /> : null}
      {workers.length > 0 ? (
        <section class="panel flush">
          <div class="table-box">
            <table class="table">
              <thead>
                <tr>
                  <th>Worker</th>
                  <th class="number">Pages/s</th>
                  <th class="number">Pages</th>
                  <th class="number">Batches</th>
                  {hasLoad ? <th class="number">CPU</th> : null}
                  {hasLoad ? <th class="number">Memory</th> : null}
                  <th class="number">Seen</th>
                  <th class="number">
                    <span class="sr">Action</span>
                  </th>
                </tr>
              </thead>
              <tbody>
                {workers.map((worker) => (
                  <tr key={worker.worker}>
                    <td class="main-cell">
                      <Text value={worker.worker} class="strong" />
                      {worker.kind ? <span class="cell-note">{worker.kind}</span> : null}
                    </td>
                    <td class="number">{rate(worker.tasks_per_second)}</td>
                    <td class="number">{short(worker.tasks)}</td>
                    <td class="number">{short(worker.batches)}</td>
                    {hasLoad ? (
                      <td class="number">{worker.cpu == null ? '–' : percent(worker.cpu)}</td>
                    ) : null}
                    {hasLoad ? <td class="number">{bytes(worker.memory_bytes ?? null)}</td> : null}
                    <td class="number dim">{ago(worker.last_seen_at, now.value)}</td>
                    <td class="number">
                      {worker.can_drain && may('admin') ? (
                        <Button
                          label={`Drain ${worker.worker}`}
                          disabled={worker.draining ?? false}
                          onClick={() => void drain(worker.worker)}
                        >
                          {worker.draining ? 'Draining' : 'Drain'}
                        </Button>
                      ) : null}
                    </td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        </section>
      ) : null}
    </>
  );
}
