import { useState } from 'preact/hooks';
import { may } from '../about.ts';
import { call, useLoad } from '../api.ts';
import { Button, Empty, Failure, Loading, Panel, Status, Text, Url } from '../components/basics.tsx';
import { Dialog } from '../components/dialog.tsx';
import { Preview } from '../components/json.tsx';
import { ACTION, Table } from '../components/table.tsx';
import { attempt, tell } from '../components/toast.tsx';
import { millis, time, visible } from '../format.ts';
import { query, withQuery } from '../router.ts';

interface Webhook {
  id: string;
  job_id: string | null;
  url: string;
  events: string[];
  enabled: boolean;
  disabled_reason: string | null;
  created_at: string;
}

interface Delivery {
  id: string;
  webhook_id: string;
  type: string;
  state: string;
  created_at: string;
  next_at: string | null;
  tries: { at: string; http_status: number | null; error: string | null; duration_ms: number }[];
  body: unknown;
}

/** Who is told of what, and whether it arrived. */
export function WebhooksView() {
  const chosen = query.value.get('id');
  const [isAdding, setAdding] = useState(false);
  const { data, error, reload } = useLoad('webhooks', (signal) =>
    call<{ webhooks: Webhook[] }>('/webhooks', { signal }),
  );
  return (
    <>
      <div class="view-head">
        <div>
          <h1>Webhooks</h1>
          <p class="dim">Signed as Standard Webhooks says, and retried for three days.</p>
        </div>
        {may('write') ? (
          <Button kind="primary" icon="plus" onClick={() => setAdding(true)}>
            New webhook
          </Button>
        ) : null}
      </div>
      <Failure error={error} />
      {!data && !error ? <Loading /> : null}
      {data?.webhooks.length === 0 ? <Empty title="No webhooks" /> : null}
      {data && data.webhooks.length > 0 ? <WebhookTable rows={data.webhooks} onChange={reload} /> : null}
      {chosen === null ? null : <Deliveries id={chosen} />}
      {isAdding ? <NewWebhook onClose={() => setAdding(false)} onDone={reload} /> : null}
    </>
  );
}

function WebhookTable({ rows, onChange }: { rows: Webhook[]; onChange: () => void }) {
  const set = async (hook: Webhook, enabled: boolean) => {
    await attempt(enabled ? 'It gets events again.' : 'It gets no more events.', () =>
      call(`/webhooks/${hook.id}`, { method: 'PATCH', body: { enabled } }),
    );
    onChange();
  };
  return (
    <section class="panel flush">
      <Table
        kind="stack"
        columns={[
          'Address',
          'State',
          { title: 'Events', wide: true },
          { title: 'Since', number: true, wide: true },
          ACTION,
        ]}
      >
        {rows.map((hook) => (
          <tr key={hook.id}>
            <td class="main-cell">
              <a href={withQuery('/webhooks', { id: hook.id })}>
                <Url value={hook.url} />
              </a>
              <span class="cell-note">{hook.job_id ?? 'all jobs'}</span>
            </td>
            <td>
              <Status value={hook.enabled ? 'ok' : 'stopped'} />
              {hook.disabled_reason ? (
                <span class="cell-note">
                  <Text value={hook.disabled_reason} />
                </span>
              ) : null}
            </td>
            <td class="wide-only value-cell dim" data-label="Events">
              {hook.events.join(', ')}
            </td>
            <td class="number wide-only dim" data-label="Since">
              {time(hook.created_at)}
            </td>
            <td class="number action-cell">
              {may('write') ? (
                <Button
                  label={`${hook.enabled ? 'Switch off' : 'Switch on'} ${hook.url.slice(0, 200)}`}
                  onClick={() => void set(hook, !hook.enabled)}
                >
                  {hook.enabled ? 'Switch off' : 'Switch on'}
                </Button>
              ) : null}
            </td>
          </tr>
        ))}
      </Table>
    </section>
  );
}

function Deliveries({ id }: { id: string }) {
  const { data, error, reload } = useLoad(
    id,
    (signal) =>
      call<{ deliveries: Delivery[] }>(`/webhooks/${encodeURIComponent(id)}/deliveries?limit=50`, { signal }),
    { everyMs: 5_000 },
  );
  const again = async (delivery: Delivery) => {
    await attempt('It is sent again.', () =>
      call(`/webhooks/${encodeURIComponent(id)}/deliveries/${delivery.id}/redeliver`, { method: 'POST' }),
    );
    reload();
  };
  return (
    <Panel title="Deliveries" aside={<a href="/webhooks">Close</a>} flush>
      <Failure error={error} />
      {data?.deliveries.length === 0 ? <Empty title="Nothing was sent yet." /> : null}
      <ol class="attempts">
        {data?.deliveries.map((delivery) => {
          const last = delivery.tries.at(-1);
          return (
            <li key={delivery.id}>
              <div class="attempt-head">
                <Status value={delivery.state} />
                <span class="mono">{delivery.type}</span>
                {last ? (
                  <span class="dim">
                    {last.http_status ?? ''} {last.error ? visible(last.error) : ''}{' '}
                    {millis(last.duration_ms)}, {delivery.tries.length} tries
                  </span>
                ) : null}
                <span class="dim">{time(delivery.created_at)}</span>
                {may('write') ? (
                  <Button label={`Send ${delivery.type} again`} onClick={() => void again(delivery)}>
                    Send again
                  </Button>
                ) : null}
              </div>
              <details>
                <summary>Body</summary>
                <Preview value={delivery.body} />
              </details>
            </li>
          );
        })}
      </ol>
    </Panel>
  );
}

const EVENTS = [
  'job.completed',
  'job.failed',
  'batch.progress',
  'page.failed',
  'page.completed',
  'record.changed',
];

function NewWebhook({ onClose, onDone }: { onClose: () => void; onDone: () => void }) {
  const [url, setUrl] = useState('');
  const [events, setEvents] = useState(['job.completed', 'job.failed']);
  const accept = async () => {
    try {
      const { secret } = await call<{ secret: string }>('/webhooks', {
        method: 'POST',
        body: { url, events },
      });
      tell(`Its secret, shown once: ${secret}`);
      onDone();
    } catch (error) {
      tell((error as Error).message, true);
    }
  };
  return (
    <Dialog title="New webhook" action="Add" onClose={onClose} onAccept={() => void accept()}>
      <label>
        Address
        <input
          type="url"
          required
          value={url}
          placeholder="https://…"
          onInput={(event) => setUrl(event.currentTarget.value)}
        />
      </label>
      {EVENTS.map((event) => (
        <label key={event} class="check">
          <input
            type="checkbox"
            checked={events.includes(event)}
            onChange={({ currentTarget }) =>
              setEvents(currentTarget.checked ? [...events, event] : events.filter((one) => one !== event))
            }
          />
          <code>{event}</code>
        </label>
      ))}
    </Dialog>
  );
}
