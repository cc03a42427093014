import { callIfThere } from '../about.ts';
import { useLoad } from '../api.ts';
import { Empty, Failure, Loading, Status, Text } from '../components/basics.tsx';
import { textOf } from '../components/json.tsx';
import { time } from '../format.ts';

type Alert = Record<string, unknown>;

/** What is wrong now, and what was. */
export function AlertsView() {
  const { data, error, isLoading } = useLoad(
    'alerts',
    (signal) => callIfThere<{ alerts: Alert[] }>('/alerts', '/alerts', { signal }),
    { everyMs: 5_000 },
  );
  const alerts = data?.alerts ?? [];
  return (
    <>
      <div class="view-head">
        <div>
          <h1>Alerts</h1>
          <p class="dim">Backlog, success, workers, errors, dead letters, fill rates, budget and disk.</p>
        </div>
      </div>
      <Failure error={error} />
      {isLoading ? <Loading /> : null}
      {!isLoading && alerts.length === 0 ? <Empty title="Nothing is wrong." /> : null}
      {alerts.length > 0 ? (
        <section class="panel flush">
          <div class="table-box">
            <table class="table">
              <thead>
                <tr>
                  <th>Alert</th>
                  <th>State</th>
                  <th class="wide-only">Job</th>
                  <th class="number">Since</th>
                </tr>
              </thead>
              <tbody>
                {alerts.map((alert) => (
                  <tr key={JSON.stringify([alert.id, alert.name, alert.job_id, alert.since])}>
                    <td class="main-cell">
                      <Text value={textOf(alert.name ?? alert.rule ?? alert.id)} class="strong" />
                      <span class="cell-note">
                        <Text value={textOf(alert.message ?? alert.detail ?? alert.summary ?? '')} />
                      </span>
                    </td>
                    <td>
                      <Status value={String(alert.state ?? 'firing')} />
                    </td>
                    <td class="wide-only">
                      {typeof alert.job_id === 'string' ? (
                        <a href={`/jobs/${alert.job_id}`}>{alert.job_id}</a>
                      ) : (
                        '–'
                      )}
                    </td>
                    <td class="number dim">{time(typeof alert.since === 'string' ? alert.since : null)}</td>
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
