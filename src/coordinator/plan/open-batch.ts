import {
  type Batch,
  type BatchTask,
  type Report,
  type RobotsFetch,
  WIRE_VERSION,
} from '../../core/batch/batch.ts';
import type { Outcome } from '../../core/batch/outcome.ts';
import type { JobSpec } from '../../core/job-schema/job.ts';
import type { AdoptedBatch, Handover, Job, LeasedBatch } from '../../ports/store.ts';
import type { Grant } from './plan-batches.ts';

/** A batch that is out, with what its reports have not accounted for yet. */
export interface OpenBatch {
  batch: Batch;
  tasks: Map<number, BatchTask>;
  /** By permit: whether its use has been returned. */
  released: boolean[];
  failed: number;
  /** Of those that failed, tasks that had failed before. */
  relapsed: number;
  succeeded: number;
  /** Its last report has come, or it was given up: whatever else comes is late. */
  over: boolean;
  /** Reports are written down one after the other, in the order in which they came. */
  settled: Promise<void>;
  /** When its lease ends. */
  leaseUntil: number;
  /** When its plan began; absent for one that was taken over. */
  plannedAt?: number;
}

export function archiveKeyOf(job: Pick<Job, 'name' | 'run'>, batchId: number): string {
  return `warc/${placeOf(job, batchId)}`;
}

export function packKeyOf(job: Pick<Job, 'name' | 'run'>, batchId: number): string {
  return `shards/${placeOf(job, batchId)}`;
}

function placeOf(job: Pick<Job, 'name' | 'run'>, batchId: number): string {
  const number = String(batchId).padStart(9, '0');
  return `${job.name}-${job.run}/${number.slice(0, 6)}/${number}`;
}

const forWorkers = new WeakMap<JobSpec, JobSpec>();

/** They read no sources, and a list of URLs may have millions of characters. One object for each job, as others remember it. */
function specForWorkers(spec: JobSpec): JobSpec {
  const known = forWorkers.get(spec);
  if (known) return known;
  const short = spec.sources.length === 0 ? spec : { ...spec, sources: [] };
  forWorkers.set(spec, short);
  return short;
}

export function makeBatch(
  job: Job,
  grants: Grant[],
  leased: Omit<LeasedBatch, 'hosts'>,
  options: { budgetMs: number; epoch: string; robots: RobotsFetch[]; leaseUntil?: number },
): OpenBatch {
  const permitOf = new Map(grants.map((grant, index) => [grant.hostId, index]));
  const tasks = leased.tasks.map(
    ({ hostId, ...task }): BatchTask => ({ ...task, permit: permitOf.get(hostId)! }),
  );
  return {
    batch: {
      version: WIRE_VERSION,
      id: leased.id,
      job: {
        id: job.id,
        name: job.name,
        specHash: job.specHash,
        spec: specForWorkers(job.spec),
        bundle: job.bundle,
        epoch: options.epoch,
      },
      needs: 'http',
      ...(leased.suspectsOf === undefined ? {} : { suspects: true }),
      budgetMs: options.budgetMs,
      permits: grants.map((grant) => grant.permit),
      robots: options.robots,
      tasks,
      archiveKey: archiveKeyOf(job, leased.id),
      packKey: packKeyOf(job, leased.id),
    },
    tasks: new Map(tasks.map((task) => [task.id, task])),
    released: grants.map(() => false),
    failed: 0,
    relapsed: 0,
    succeeded: 0,
    over: false,
    settled: Promise.resolve(),
    leaseUntil: options.leaseUntil ?? Number.POSITIVE_INFINITY,
  };
}

/** For whoever has to settle its reports when this coordinator is gone. */
export function handoverOf({ batch }: OpenBatch): Handover {
  return {
    epoch: batch.job.epoch,
    needs: batch.needs,
    permits: batch.permits,
    robots: batch.robots,
    tasks: batch.tasks.map(({ id, permit, fetchMethod }) => ({
      id,
      permit,
      ...(fetchMethod ? { fetchMethod } : {}),
    })),
  };
}

/** A batch as its coordinator had it, with those of its tasks that no report has accounted for. */
export function reopenBatch(job: Job, adopted: AdoptedBatch, handover: Handover, now: number): OpenBatch {
  const sent = new Map(handover.tasks.map((task) => [task.id, task]));
  const tasks = adopted.tasks.flatMap(({ hostId: _, ...task }): BatchTask[] => {
    const known = sent.get(task.id);
    return known ? [{ ...task, ...known }] : [];
  });
  const { epoch, robots, permits, needs } = handover;
  const budgetMs = Math.max(0, Math.ceil(adopted.leaseUntil - now));
  const open = makeBatch(
    job,
    [],
    { id: adopted.id, tasks: [] },
    { budgetMs, epoch, robots, leaseUntil: adopted.leaseUntil },
  );
  return {
    ...open,
    batch: { ...open.batch, needs, permits, tasks },
    tasks: new Map(tasks.map((task) => [task.id, task])),
    released: permits.map(() => false),
  };
}

/** Of tasks that no worker sees; of the whole batch when that is all of them. */
export function refusalReport(
  batch: Batch,
  refused: Outcome[],
  { all, now }: { all: boolean; now: number },
): Report {
  return {
    version: batch.version,
    batchId: batch.id,
    part: -1,
    final: all,
    worker: 'coordinator',
    startedAt: now,
    durationMs: 0,
    permits: all
      ? batch.permits.map(({ host }) => ({ host, sent: 0, lastSentAt: null, finished: true }))
      : [],
    robots: [],
    outcomes: refused,
    quality: [],
    archive: null,
  };
}
