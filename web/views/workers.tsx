import { useState } from 'preact/hooks';
import { callIfThere, may } from '../about.ts';
import { call, useLoad } from '../api.ts';
import { Button, Choice, Empty, Failure, Loading, Panel, Stat, Status, Text } from '../components/basics.tsx';
import { Chart } from '../components/chart.tsx';
import { Dialog } from '../components/dialog.tsx';
import { ACTION, Table } from '../components/table.tsx';
import { attempt } from '../components/toast.tsx';
import { ago, bytes, count, counted, percent, rate, short } from '../format.ts';
import { now } from '../live.ts';
import { query, setQuery, withQuery } from '../router.ts';

interface Worker {
  worker: string;
  state: 'live' | 'draining' | 'gone';
  kind: string;
  version: string | null;
  threads: number | null;
  slots: number | null;
  batches: number | null;
  batches_done: number;
  tasks: number;
  tasks_per_second: number;
  cpu: number | null;
  memory_bytes: number | null;
  hosts: string[];
  can_drain: boolean;
  last_seen_at: string;
}

/** Workers that are alive, and those of the last days. */
export function WorkersView() {
  const { data, error, reload } = useLoad(
    'workers',
    (signal) => callIfThere<{ workers: Worker[] }>('/workers', '/workers', { signal }),
    { everyMs: 2_000 },
  );
  const [drained, setDrained] = useState<Worker | null>(null);
  const workers = data?.workers ?? [];
  const live = workers.filter(({ state }) => state !== 'gone');
  // With a single worker, show its curves at once.
  const chosen = query.value.get('worker') ?? (live.length === 1 ? live[0]!.worker : null);
  const gone = workers.filter(({ state }) => state === 'gone');
  const versions = new Set(live.flatMap(({ version }) => version ?? []));
  return (
    <>
      <div class="view-head">
        <div>
          <h1>Workers</h1>
          <p class="dim">
            Processes that work on the jobs here: threads of the server, workers of a queue, Lambda.
          </p>
        </div>
      </div>
      <Failure error={error} />
      {!data && !error ? <Loading /> : null}
      {live.length > 0 ? <Totals workers={live} /> : null}
      {chosen === null ? null : <WorkerSeries worker={chosen} isClosable={live.length !== 1} />}
      {versions.size > 1 ? (
        <p class="notice">Workers have different versions of Seine: {[...versions].sort().join(', ')}.</p>
      ) : null}
      {data && live.length === 0 ? <Empty title="No worker is alive." /> : null}
      {live.length > 0 ? <WorkerTable workers={live} onDrain={setDrained} /> : null}
      {gone.length > 0 ? (
        <details class="more">
          <summary>
            {count(gone.length)} {gone.length === 1 ? 'worker has' : 'workers have'} ended
          </summary>
          <WorkerTable workers={gone} onDrain={setDrained} />
        </details>
      ) : null}
      {drained ? (
        <DrainDialog
          worker={drained}
          onClose={() => {
            setDrained(null);
            reload();
          }}
        />
      ) : null}
    </>
  );
}

function sumOf(workers: readonly Worker[], of: (worker: Worker) => number | null): number {
  return workers.reduce((sum, worker) => sum + (of(worker) ?? 0), 0);
}

function Totals({ workers }: { workers: readonly Worker[] }) {
  const draining = workers.filter(({ state }) => state === 'draining').length;
  const slots = sumOf(workers, (worker) => worker.slots);
  const busy = sumOf(workers, (worker) => worker.batches);
  return (
    <dl class="stats">
      <Stat
        label="Alive"
        value={count(workers.length)}
        {...(draining > 0 ? { note: `${draining} draining` } : {})}
      />
      <Stat label="Pages a second" value={rate(sumOf(workers, (worker) => worker.tasks_per_second))} />
      <Stat label="Slots in use" value={count(busy)} note={slots > 0 ? `of ${count(slots)}` : undefined} />
      <Stat label="Cores in use" value={sumOf(workers, (worker) => worker.cpu).toFixed(2)} />
      <Stat label="Memory" value={bytes(sumOf(workers, (worker) => worker.memory_bytes))} />
    </dl>
  );
}

function WorkerTable(props: { workers: readonly Worker[]; onDrain: (worker: Worker) => void }) {
  const hasAction = props.workers.some(({ can_drain }) => can_drain) && may('admin');
  return (
    <section class="panel flush">
      <Table
        kind="stack"
        columns={[
          'Worker',
          'State',
          { title: 'Pages/s', number: true },
          { title: 'Batches', number: true },
          { title: 'CPU', number: true },
          { title: 'Memory', number: true },
          { title: 'Pages', number: true, wide: true },
          { title: 'Version', wide: true },
          { title: 'Seen', number: true, wide: true },
          hasAction && ACTION,
        ]}
      >
        {props.workers.map((worker) => (
          <WorkerRow
            key={worker.worker}
            worker={worker}
            hasAction={hasAction}
            onDrain={() => props.onDrain(worker)}
          />
        ))}
      </Table>
    </section>
  );
}

function WorkerRow({
  worker,
  hasAction,
  onDrain,
}: {
  worker: Worker;
  hasAction: boolean;
  onDrain: () => void;
}) {
  return (
    <tr>
      <td class="main-cell">
        <a href={withQuery('/workers', { worker: worker.worker })}>
          <Text value={worker.worker} class="strong" />
        </a>
        <span class="cell-note">
          {worker.kind}
          {worker.threads === null
            ? ''
            : `, ${worker.threads} ${worker.threads === 1 ? 'thread' : 'threads'}`}
        </span>
      </td>
      <td>
        <Status value={worker.state} />
      </td>
      <td class="number" data-label="Pages/s">
        {worker.state === 'gone' ? '–' : rate(worker.tasks_per_second)}
      </td>
      <td class="number" data-label="Batches">
        {worker.batches === null || worker.state === 'gone'
          ? '–'
          : `${count(worker.batches)} / ${count(worker.slots ?? 0)}`}
      </td>
      <td class="number" data-label="CPU">
        {worker.cpu === null ? '–' : percent(worker.cpu)}
      </td>
      <td class="number" data-label="Memory">
        {bytes(worker.memory_bytes)}
      </td>
      <td class="number wide-only" data-label="Pages">
        {short(worker.tasks)}
      </td>
      <td class="wide-only mono" data-label="Version">
        {worker.version ?? '–'}
      </td>
      <td class="number dim wide-only" data-label="Seen">
        {ago(worker.last_seen_at, now.value)}
      </td>
      {hasAction ? (
        <td class="number action-cell">
          {worker.can_drain ? (
            <Button label={`Drain ${worker.worker}`} disabled={worker.state === 'draining'} onClick={onDrain}>
              {worker.state === 'draining' ? 'Draining' : 'Drain'}
            </Button>
          ) : null}
        </td>
      ) : null}
    </tr>
  );
}

function DrainDialog({ worker, onClose }: { worker: Worker; onClose: () => void }) {
  return (
    <Dialog
      title="Drain this worker?"
      action="Drain"
      isDanger
      onClose={onClose}
      onAccept={() =>
        void attempt('The worker finishes what it has, and takes no more.', () =>
          call(`/workers/${encodeURIComponent(worker.worker)}/drain`, { method: 'POST' }),
        )
      }
    >
      <p>
        <Text value={worker.worker} class="strong" /> takes no more work, finishes the{' '}
        {counted(worker.batches ?? 0, 'batch', 'batches')} that it has, and exits. Nothing is lost, and the
        others go on.
      </p>
    </Dialog>
  );
}

interface Point {
  at: string;
  cpu: number;
  cpu_max: number;
  memory_bytes: number;
  batches: number;
  slots: number;
}

const STEPS = { '30 minutes': 10, '6 hours': 60, '14 days': 3_600 } as const;
type Span = keyof typeof STEPS;
const SPANS = Object.keys(STEPS) as Span[];

function WorkerSeries({ worker, isClosable }: { worker: string; isClosable: boolean }) {
  const span = SPANS.find((one) => one === query.value.get('span')) ?? SPANS[0]!;
  const path = `/workers/${encodeURIComponent(worker)}/series?step=${STEPS[span]}`;
  const { data, error } = useLoad(
    path,
    (signal) => callIfThere<{ points: Point[] }>('/workers/{id}/series', path, { signal }),
    { everyMs: 10_000 },
  );
  const points = data?.points ?? [];
  const times = points.map(({ at }) => Date.parse(at) / 1_000);
  const charts = [
    { label: 'CPU', tone: 'accent', of: (point: Point) => point.cpu, format: percent },
    { label: 'Memory', tone: 'info', of: (point: Point) => point.memory_bytes, format: bytes },
    { label: 'Batches', tone: 'violet', of: (point: Point) => point.batches, format: short },
  ];
  return (
    <Panel
      title={worker.length > 60 ? 'Worker' : worker}
      aside={
        <>
          <Choice
            label="Time"
            options={SPANS}
            value={span}
            onChange={(value) => setQuery({ span: value === SPANS[0] ? null : value })}
          />
          {isClosable ? <a href="/workers">Close</a> : null}
        </>
      }
    >
      <Failure error={error} />
      {data && points.length === 0 ? <Empty title="No measurements for this time." /> : null}
      {points.length > 0 ? (
        <div class="triple">
          {charts.map(({ label, tone, of, format }) => (
            <div key={label}>
              <h3>{label}</h3>
              <Chart
                label={`${label} over ${span}`}
                times={times}
                series={[{ label, tone, fill: true, values: points.map(of) }]}
                format={format}
                height={150}
              />
            </div>
          ))}
        </div>
      ) : null}
    </Panel>
  );
}
