import type { WorkerView } from '../../coordinator/reports/run-view.ts';
import { type WorkerPoint, type WorkerState, workerStateOf } from '../../core/workers/worker-health.ts';
import type { WorkerHeartbeat } from '../../ports/dispatcher.ts';
import type { RoutePlugin } from './requests/access.ts';
import { requireScope } from './requests/callers.ts';
import { parseAs, workerSeriesQuery, workersQuery } from './requests/options.ts';
import { Problem } from './requests/problems.ts';

type WithId = { Params: { id: string } };

const WORKERS_MAX = 500;
const POINTS_MAX = 400;

/** Workers do the jobs of all keys, so they are for the operator. */
export const workerRoutes: RoutePlugin = (app, { reads, runner, workers, now, readOnly }) => {
  app.get('/workers', async ({ caller, query }) => {
    requireScope(caller, 'admin');
    const { state } = parseAs(workersQuery, query);
    const at = now();
    const [live, known, rates] = await Promise.all([
      workers.live(),
      reads.workers.list({ limit: WORKERS_MAX }),
      runner.workers(),
    ]);
    const rows = new Map<string, WorkerRow>();
    // A queue that names others does not have it any more.
    const isQueueRead = live.some(({ kind }) => kind !== 'threads');
    for (const worker of known) {
      const isGone = isQueueRead && worker.kind !== 'threads';
      rows.set(worker.worker, rowOf({ ...worker, hosts: [] }, isGone ? 'gone' : workerStateOf(worker, at)));
    }
    for (const worker of live) {
      const seen = known.find((one) => one.worker === worker.worker);
      const times = { firstSeenAt: seen?.firstSeenAt ?? worker.at, lastSeenAt: worker.at };
      const row = rowOf({ ...worker, ...times }, worker.isDraining ? 'draining' : 'live');
      rows.set(worker.worker, {
        ...row,
        can_drain: worker.kind !== 'threads' && !readOnly,
        ...speedOf(worker, rates),
      });
    }
    for (const row of withoutHeartbeat(rates, live)) rows.set(row.worker, row);
    const all = [...rows.values()].filter((row) => state === undefined || row.state === state);
    return { workers: all.sort(byState) };
  });

  app.get<WithId>('/workers/:id/series', async ({ caller, query, params }) => {
    requireScope(caller, 'admin');
    const { step, ...range } = parseAs(workerSeriesQuery, query);
    const to = range.to ?? now() + step * 1_000;
    const from = Math.max(range.from ?? 0, to - POINTS_MAX * step * 1_000);
    const points = await reads.workers.series(params.id, { step, from, to });
    return { step_seconds: step, points: points.map(pointOf) };
  });

  app.post<WithId>('/workers/:id/drain', async ({ caller, params }, reply) => {
    requireScope(caller, 'admin');
    const drained = await workers.drain(params.id);
    if (drained) return reply.code(202).send({ worker: drained.worker, batches: drained.batches });
    const live = await workers.live();
    if (live.some(({ worker }) => worker === params.id))
      throw new Problem(
        'conflict',
        'threads of a coordinator end with it: stop the job, or start it with fewer --workers',
      );
    throw new Problem('not-found', 'no such worker is alive');
  });
};

interface WorkerRow {
  worker: string;
  state: WorkerState;
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
  first_seen_at: string | null;
  last_seen_at: string;
}

type Health = Omit<WorkerHeartbeat, 'at' | 'kind'> & {
  kind: string;
  firstSeenAt: number;
  lastSeenAt: number;
};

function rowOf(worker: Health, state: WorkerState): WorkerRow {
  const isGone = state === 'gone';
  return {
    worker: worker.worker,
    state,
    kind: worker.kind,
    version: worker.software === '' ? null : worker.software,
    threads: worker.threads,
    slots: worker.slots,
    batches: isGone ? 0 : worker.batches,
    batches_done: worker.batchesDone,
    tasks: worker.tasksDone,
    tasks_per_second: 0,
    cpu: isGone ? null : worker.cpu,
    memory_bytes: isGone ? null : worker.memoryBytes,
    hosts: worker.hosts,
    can_drain: false,
    first_seen_at: new Date(worker.firstSeenAt).toISOString(),
    last_seen_at: new Date(worker.lastSeenAt).toISOString(),
  };
}

/** Reports name threads: those of a worker begin with its name, those of the coordinator's own process with nothing. */
function isOf({ kind, worker }: Pick<WorkerHeartbeat, 'kind' | 'worker'>, { name }: WorkerView): boolean {
  return name.startsWith(`${worker}/`) || (kind === 'threads' && /^(thread-\d+|suspects\b)/.test(name));
}

function speedOf(worker: WorkerHeartbeat, rates: readonly WorkerView[]) {
  const own = rates.filter((rate) => isOf(worker, rate));
  return { tasks_per_second: own.reduce((sum, { tasksPerSecond }) => sum + tasksPerSecond, 0) };
}

/** A thread of a worker of a queue, by its name. */
const THREAD_OF_A_WORKER = /.\/(thread-\d+|suspects\b)/;

/**
 * Functions of Lambda, and threads of a process that tells nothing of itself. A worker of a queue always does: when its
 * last heartbeat is over it has ended, whatever it reported before.
 */
export function withoutHeartbeat(
  rates: readonly WorkerView[],
  live: readonly WorkerHeartbeat[],
): WorkerRow[] {
  const others = rates.filter(
    (rate) => !THREAD_OF_A_WORKER.test(rate.name) && !live.some((worker) => isOf(worker, rate)),
  );
  return others.map(({ name, batches, tasks, tasksPerSecond, lastSeenAt }) => ({
    worker: name,
    state: 'live',
    kind: /^thread-\d+$/.test(name) ? 'threads' : 'lambda',
    version: null,
    threads: null,
    slots: null,
    batches: null,
    batches_done: batches,
    tasks,
    tasks_per_second: tasksPerSecond,
    cpu: null,
    memory_bytes: null,
    hosts: [],
    can_drain: false,
    first_seen_at: null,
    last_seen_at: new Date(lastSeenAt).toISOString(),
  }));
}

const STATE_ORDER: readonly WorkerState[] = ['live', 'draining', 'gone'];

function byState(one: WorkerRow, other: WorkerRow): number {
  return (
    STATE_ORDER.indexOf(one.state) - STATE_ORDER.indexOf(other.state) ||
    (one.state === 'gone' ? other.last_seen_at.localeCompare(one.last_seen_at) : 0) ||
    (one.worker < other.worker ? -1 : 1)
  );
}

function pointOf(point: WorkerPoint) {
  return {
    at: new Date(point.at).toISOString(),
    cpu: point.cpu,
    cpu_max: point.cpuMax,
    memory_bytes: point.memoryBytes,
    memory_bytes_max: point.memoryBytesMax,
    batches: point.batches,
    slots: point.slots,
    batches_done: point.batchesDone,
    tasks_done: point.tasksDone,
  };
}
