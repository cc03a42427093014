import { signal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { callIfThere, may } from '../about.ts';
import { call } from '../api.ts';
import { Button, Empty, Failure, Loading, Panel, Status, Text } from '../components/basics.tsx';
import { ACTION, Table } from '../components/table.tsx';
import { attempt } from '../components/toast.tsx';
import { duration, time } from '../format.ts';
import { now } from '../live.ts';

interface Alert {
  id: number;
  kind: string;
  /** The name of a job; null for what is of the machine. */
  job: string | null;
  state: 'firing' | 'resolved';
  text: string;
  fired_at: string;
  resolved_at: string | null;
  silenced_until: string | null;
}

const SILENCE_SECONDS = 3_600;

const POLL_MS = 5_000;

/** The newest ones; null until they are known. */
const alerts = signal<Alert[] | null>(null);
const failure = signal<Error | null>(null);

async function loadAlerts(): Promise<void> {
  try {
    const answer = await callIfThere<{ alerts: Alert[] }>('/alerts', '/alerts?limit=100');
    alerts.value = answer?.alerts ?? [];
    failure.value = null;
  } catch (error) {
    failure.value = error as Error;
  }
}

/** How many fire that nobody has silenced; looked up while the page is seen. */
export function useFiringAlerts(): number {
  useEffect(() => {
    void loadAlerts();
    const timer = setInterval(() => document.hidden || void loadAlerts(), POLL_MS);
    return () => clearInterval(timer);
  }, []);
  const isLoud = ({ state, silenced_until: silenced }: Alert) => state === 'firing' && silenced === null;
  return (alerts.value ?? []).filter(isLoud).length;
}

/** What is wrong now, and what was. */
export function AlertsView() {
  const known = alerts.value;
  const firing = (known ?? []).filter(({ state }) => state === 'firing');
  const resolved = (known ?? []).filter(({ state }) => state === 'resolved');
  return (
    <>
      <div class="view-head">
        <div>
          <h1>Alerts</h1>
          <p class="dim">Backlog, success, workers, errors, dead letters, fill rates, budget and disk.</p>
        </div>
      </div>
      <Failure error={failure.value} />
      {known === null && failure.value === null ? <Loading /> : null}
      {known !== null && firing.length === 0 ? (
        <Empty title="Nothing is wrong.">
          <p>Alerts that fire appear here. You can silence them.</p>
        </Empty>
      ) : null}
      {firing.length > 0 ? <AlertTable title="Firing" alerts={firing} isFiring /> : null}
      {resolved.length > 0 ? <AlertTable title="Resolved" alerts={resolved} /> : null}
    </>
  );
}

function AlertTable(props: { title: string; alerts: Alert[]; isFiring?: boolean }) {
  const hasAction = props.isFiring === true && may('admin');
  return (
    <Panel title={props.title} flush>
      <Table
        kind="stack"
        columns={[
          'Alert',
          'State',
          { title: 'Job', wide: true },
          { title: 'Since', number: true },
          { title: 'Lasted', number: true, wide: true },
          hasAction && ACTION,
        ]}
      >
        {props.alerts.map((alert) => (
          <AlertRow key={alert.id} alert={alert} hasAction={hasAction} />
        ))}
      </Table>
    </Panel>
  );
}

function AlertRow({ alert, hasAction }: { alert: Alert; hasAction: boolean }) {
  const { kind, job, state, text, fired_at: from, resolved_at: to, silenced_until: silenced } = alert;
  const silence = async () => {
    const body = { kind, ...(job === null ? {} : { job }), seconds: SILENCE_SECONDS };
    await attempt('Silenced for an hour.', () => call('/alerts/silence', { method: 'POST', body }));
    await loadAlerts();
  };
  return (
    <tr>
      <td class="main-cell alert-cell">
        <Text value={text} class="strong" />
        <span class="cell-note mono">{kind}</span>
      </td>
      <td>
        <Status value={state} />
        {silenced === null ? null : <span class="cell-note">silent until {time(silenced)}</span>}
      </td>
      <td class="wide-only" data-label="Job">
        {job === null ? (
          '–'
        ) : (
          <a href={`/jobs/${encodeURIComponent(job)}`}>
            <Text value={job} />
          </a>
        )}
      </td>
      <td class="number dim" data-label="Since">
        {time(from)}
      </td>
      <td class="number dim wide-only" data-label="Lasted">
        {duration(((to === null ? now.value : Date.parse(to)) - Date.parse(from)) / 1_000)}
      </td>
      {hasAction ? (
        <td class="number action-cell">
          {silenced === null ? (
            <Button label={`Silence ${kind} for an hour`} onClick={() => void silence()}>
              Silence
            </Button>
          ) : null}
        </td>
      ) : null}
    </tr>
  );
}
