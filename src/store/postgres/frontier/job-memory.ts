import { LIMITS } from '../../../core/limits.ts';
import { BoundedMap, RecentSet } from '../../../core/lru.ts';
import type { Database } from '../connection/database.ts';

/** Prefilters are kept for this many jobs at once. */
const JOBS_REMEMBERED_MAX = 8;

export interface JobMemory {
  /** Of the fingerprints of its URLs. */
  seed: number;
  /** URLs that are tasks for certain: tasks are never removed. */
  recent: RecentSet;
  /** Whether the job knows which of its tasks is the first. */
  hasFirst: boolean;
  /** The pass as it was last seen; null before that. */
  pass: number | null;
}

/** What a store remembers of jobs. Only what is written for good may be put into it. */
export class JobMemories {
  readonly #reads: Pick<Database, 'read'>;
  readonly #jobs = new BoundedMap<number, JobMemory>(JOBS_REMEMBERED_MAX);

  constructor(reads: Pick<Database, 'read'>) {
    this.#reads = reads;
  }

  async of(jobId: number): Promise<JobMemory> {
    const known = this.#jobs.get(jobId);
    if (known) return known;
    const [row] = await this.#reads.read<{ seed: number; first: number | null }>(
      'SELECT seed, first_task_id AS first FROM jobs WHERE id = $1',
      jobId,
    );
    if (!row) throw new Error(`no job ${jobId}`);
    const memory = {
      seed: row.seed,
      recent: new RecentSet(LIMITS.recentUrlsMax),
      hasFirst: row.first !== null,
      pass: null,
    };
    this.#jobs.set(jobId, memory);
    return memory;
  }
}
