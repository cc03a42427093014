import { ROLLUP_STEPS, type RollupStep, stretchOf } from '../../core/rollups/rollup.ts';
import {
  type KnownWorker,
  WORKER_SECONDS_KEPT,
  WORKERS_KEPT_MAX,
  WORKERS_NOTED_MAX,
  type WorkerPoint,
  type WorkerSample,
} from '../../core/workers/worker-health.ts';
import type { WorkerStore } from '../../ports/store/worker-store.ts';
import type { WebhookDatabase } from './webhooks/webhook-store.ts';

interface WorkerColumns {
  worker: string;
  kind: string;
  software: string;
  threads: number;
  slots: number;
  is_draining: number;
  cpu: number;
  memory_bytes: number;
  batches: number;
  batches_done: number;
  tasks_done: number;
  first_seen_at: number;
  last_seen_at: number;
}

interface PointColumns {
  at: number;
  samples: number;
  cpu_sum: number;
  cpu_max: number;
  memory_sum: number;
  memory_max: number;
  batches_sum: number;
  slots: number;
  batches_done: number;
  tasks_done: number;
}

const PRUNE_MS = 60_000;
/** In one statement: few enough that there are few different statements. */
const WORKERS_AT_ONCE = 20;

type Value = string | number;

function seenValues(sample: WorkerSample, now: number): Value[] {
  const { worker, kind, software, threads, slots, isDraining, cpu, batches, batchesDone, tasksDone } = sample;
  const about = [worker, kind, software, threads, slots, isDraining ? 1 : 0, cpu];
  return [...about, Math.round(sample.memoryBytes), batches, batchesDone, tasksDone, now, now];
}

function rowValues(sample: WorkerSample, step: RollupStep, now: number): Value[] {
  const { worker, cpu, batches, slots, batchesDone, tasksDone } = sample;
  const memory = Math.round(sample.memoryBytes);
  return [
    worker,
    step,
    stretchOf(now, step),
    1,
    cpu,
    cpu,
    memory,
    memory,
    batches,
    slots,
    batchesDone,
    tasksDone,
  ];
}

/** `($1, $2), ($3, $4)` */
function placesOf(rows: number, columns: number): string {
  const place = (row: number) =>
    Array.from({ length: columns }, (_, column) => `$${row * columns + column + 1}`).join(', ');
  return Array.from({ length: rows }, (_, row) => `(${place(row)})`).join(', ');
}

/** The same statements in both stores: each adds to a row without reading it. */
export class SharedWorkerStore implements WorkerStore {
  readonly #db: Pick<WebhookDatabase, 'run'>;
  #prunedAt = Number.NEGATIVE_INFINITY;

  constructor(db: Pick<WebhookDatabase, 'run'>) {
    this.#db = db;
  }

  async note(samples: readonly WorkerSample[], now: number): Promise<void> {
    // In one order everywhere, so that coordinators which see the same workers do not block each other.
    const noted = [...samples].sort((a, b) => (a.worker < b.worker ? -1 : 1)).slice(0, WORKERS_NOTED_MAX);
    for (let at = 0; at < noted.length; at += WORKERS_AT_ONCE) {
      const some = noted.slice(at, at + WORKERS_AT_ONCE);
      await this.#db.run(seenText(some.length), ...some.flatMap((sample) => seenValues(sample, now)));
      const rows = some.flatMap((sample) => ROLLUP_STEPS.map((step) => rowValues(sample, step, now)));
      await this.#db.run(addText(rows.length), ...rows.flat());
    }
    if (Math.abs(now - this.#prunedAt) >= PRUNE_MS) await this.#prune(now);
  }

  async #prune(now: number): Promise<void> {
    this.#prunedAt = now;
    for (const step of ROLLUP_STEPS)
      await this.#db.run(DELETE_ROWS, step, now - WORKER_SECONDS_KEPT[step] * 1_000);
    const forgotten = now - WORKER_SECONDS_KEPT[3600] * 1_000;
    const gone = await this.#db.run(DELETE_WORKERS, forgotten, WORKERS_KEPT_MAX);
    if (gone.length > 0) await this.#db.run(DELETE_ORPHANS);
  }

  async list({ limit }: { limit: number }): Promise<KnownWorker[]> {
    const rows = await this.#db.run<WorkerColumns>(LIST, limit);
    return rows.map((row) => ({
      worker: row.worker,
      kind: row.kind,
      software: row.software,
      threads: row.threads,
      slots: row.slots,
      isDraining: row.is_draining === 1,
      cpu: row.cpu,
      memoryBytes: row.memory_bytes,
      batches: row.batches,
      batchesDone: row.batches_done,
      tasksDone: row.tasks_done,
      firstSeenAt: row.first_seen_at,
      lastSeenAt: row.last_seen_at,
    }));
  }

  async series(
    worker: string,
    { step, from, to }: { step: RollupStep; from: number; to: number },
  ): Promise<WorkerPoint[]> {
    const rows = await this.#db.run<PointColumns>(SERIES, worker, step, from, to);
    return rows.map((row) => ({
      at: row.at,
      cpu: round(row.cpu_sum / row.samples),
      cpuMax: row.cpu_max,
      memoryBytes: Math.round(row.memory_sum / row.samples),
      memoryBytesMax: row.memory_max,
      batches: round(row.batches_sum / row.samples),
      slots: row.slots,
      batchesDone: row.batches_done,
      tasksDone: row.tasks_done,
    }));
  }
}

function round(value: number): number {
  return Math.round(value * 1_000) / 1_000;
}

const seenText = (rows: number) => `
  INSERT INTO workers (worker, kind, software, threads, slots, is_draining, cpu, memory_bytes, batches, batches_done,
    tasks_done, first_seen_at, last_seen_at)
  VALUES ${placesOf(rows, 13)}
  ON CONFLICT (worker) DO UPDATE SET kind = excluded.kind, software = excluded.software, threads = excluded.threads,
    slots = excluded.slots, is_draining = excluded.is_draining, cpu = excluded.cpu, memory_bytes = excluded.memory_bytes,
    batches = excluded.batches, batches_done = excluded.batches_done, tasks_done = excluded.tasks_done,
    last_seen_at = excluded.last_seen_at`;

const larger = (name: string) =>
  `${name} = CASE WHEN excluded.${name} > worker_rollups.${name} THEN excluded.${name} ELSE worker_rollups.${name} END`;

const addText = (rows: number) => `
  INSERT INTO worker_rollups (worker, step, at, samples, cpu_sum, cpu_max, memory_sum, memory_max, batches_sum, slots,
    batches_done, tasks_done)
  VALUES ${placesOf(rows, 12)}
  ON CONFLICT (worker, step, at) DO UPDATE SET samples = worker_rollups.samples + 1,
    cpu_sum = worker_rollups.cpu_sum + excluded.cpu_sum, memory_sum = worker_rollups.memory_sum + excluded.memory_sum,
    batches_sum = worker_rollups.batches_sum + excluded.batches_sum,
    ${['cpu_max', 'memory_max', 'slots', 'batches_done', 'tasks_done'].map(larger).join(', ')}`;

const DELETE_ROWS = 'DELETE FROM worker_rollups WHERE step = $1 AND at < $2';

const DELETE_ORPHANS = 'DELETE FROM worker_rollups WHERE worker NOT IN (SELECT worker FROM workers)';

const DELETE_WORKERS = `
  DELETE FROM workers WHERE last_seen_at < $1 OR worker IN
    (SELECT worker FROM workers ORDER BY last_seen_at DESC, worker LIMIT 100000 OFFSET $2) RETURNING worker`;

const LIST = `
  SELECT worker, kind, software, threads, slots, is_draining, cpu, memory_bytes, batches, batches_done, tasks_done,
    first_seen_at, last_seen_at
  FROM workers ORDER BY last_seen_at DESC, worker LIMIT $1`;

const SERIES = `
  SELECT at, samples, cpu_sum, cpu_max, memory_sum, memory_max, batches_sum, slots, batches_done, tasks_done
  FROM worker_rollups WHERE worker = $1 AND step = $2 AND at >= $3 AND at < $4 ORDER BY at`;
