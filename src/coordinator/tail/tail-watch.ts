import type { JobSpec } from '../../core/job-schema/job.ts';
import { BoundedSet } from '../../core/lru.ts';
import type { Counters } from '../../core/model.ts';
import { compileHostLimits, type HostLimiter } from '../../core/politeness/host-limits.ts';
import { isLate, isTail, isTailOver, type OutstandingHost } from '../../core/tail/tail.ts';
import type { Logger } from '../../ports/ambient.ts';
import type { OpenBatch } from '../plan/open-batch.ts';

/** More tasks than that are no tail: 1 % of them would be more than can be out at once. */
const REPEATED_MAX = 10_000;

interface TailLook {
  counters: Pick<Counters, 'accepted' | 'pending' | 'leased'>;
  isSourceDone: boolean;
  workedMs: number;
  /** Batches that are out, and how many more could be. */
  open: Iterable<OpenBatch>;
  freeSlots: number;
  now: number;
}

/** Looks after the end of a run; see core/tail. There is none where the job waits for everything. */
export class TailWatch {
  readonly #policy: JobSpec['tail'];
  readonly #logger: Pick<Logger, 'info'>;
  readonly #limitsOf: HostLimiter;
  /** Tasks that were requested a second time: they get their whole time then. */
  readonly #repeated = new BoundedSet<number>(REPEATED_MAX);
  /** How long the run had worked when the tail began; null before that. */
  #beganMs: number | null = null;

  constructor({ job, logger }: { job: { spec: JobSpec }; logger: Pick<Logger, 'info'> }) {
    this.#policy = job.spec.tail;
    this.#logger = logger;
    this.#limitsOf = compileHostLimits(job.spec);
  }

  /** Why the run should end now, or null; and batches whose pages are to be requested elsewhere. */
  look(about: TailLook): { stop: string | null; late: OpenBatch[] } {
    const { counters, isSourceDone, workedMs } = about;
    const left = counters.pending + counters.leased;
    if (!isSourceDone || !isTail({ accepted: counters.accepted, left })) {
      this.#beganMs = null;
      return { stop: null, late: [] };
    }
    if (this.#beganMs === null) this.#logger.info(`near the end: ${left} tasks are left`, { left });
    this.#beganMs ??= workedMs;
    const isOver = this.#policy === 'defer' && isTailOver({ beganMs: this.#beganMs, workedMs });
    if (isOver) return { stop: 'limit of 10 % of the time for the last 1 % of the tasks reached', late: [] };
    return { stop: null, late: this.#late(about) };
  }

  #late({ open, freeSlots, now }: TailLook): OpenBatch[] {
    const late: OpenBatch[] = [];
    for (const each of open) {
      if (late.length >= freeSlots) break;
      if (each.over || each.plannedAt === undefined || each.tasks.size === 0) continue;
      if ([...each.tasks.keys()].some((id) => this.#repeated.has(id))) continue;
      if (!isLate(this.#outstanding(each), each.plannedAt, now)) continue;
      for (const id of each.tasks.keys()) this.#repeated.add(id);
      late.push(each);
    }
    return late;
  }

  #outstanding({ batch, tasks, released }: OpenBatch): OutstandingHost[] {
    const counts = batch.permits.map(() => 0);
    for (const { permit } of tasks.values()) counts[permit]!++;
    return batch.permits.flatMap((permit, index) =>
      released[index] && counts[index] === 0
        ? []
        : [{ permit, tasks: counts[index]!, parallel: this.#limitsOf(permit.host).parallel }],
    );
  }
}
