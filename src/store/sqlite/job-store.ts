import { randomInt } from 'node:crypto';
import { COUNTER_NAMES, type Counters, type JobState, type JobWish } from '../../core/model.ts';
import type { Job, JobStore, SourcePosition } from '../../ports/store.ts';
import type { Database } from './database.ts';

interface JobColumns {
  id: number;
  name: string;
  run: number;
  spec: string;
  spec_hash: string;
  bundle: string | null;
  state: JobState;
  wish: JobWish;
  reason: string | null;
  created_at: number;
  ended_at: number | null;
  worked_ms: number;
}

const COLUMNS =
  'id, name, run, spec, spec_hash, bundle, state, wish, reason, created_at, ended_at, worked_ms';

const UPDATABLE = {
  state: 'state',
  wish: 'wish',
  reason: 'reason',
  endedAt: 'ended_at',
  workedMs: 'worked_ms',
  spec: 'spec',
} as const;

export class SqliteJobStore implements JobStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  async create(job: Parameters<JobStore['create']>[0]): Promise<Job> {
    return this.#db.transaction(() => {
      const last = this.#db.get<{ run: number | null }>(
        'SELECT max(run) AS run FROM jobs WHERE name = ?',
        job.name,
      );
      const run = (last?.run ?? 0) + 1;
      this.#db.run(
        `INSERT INTO jobs (name, run, spec, spec_hash, bundle, seed, state, wish, created_at)
         VALUES (?, ?, ?, ?, ?, ?, 'running', 'run', ?)`,
        job.name,
        run,
        JSON.stringify(job.spec),
        job.specHash,
        job.bundle,
        randomInt(0x7fff_ffff),
        job.now,
      );
      const created = this.#read('name = ? AND run = ?', job.name, run);
      if (!created) throw new Error('a job vanished while it was created');
      this.#db.run('INSERT INTO counters (job_id) VALUES (?)', created.id);
      return created;
    });
  }

  async get(id: number): Promise<Job> {
    const job = this.#read('id = ?', id);
    if (!job) throw new Error(`no job ${id}`);
    return job;
  }

  async find(name: string | null): Promise<Job | null> {
    if (name === null) return this.#read('id = (SELECT max(id) FROM jobs)');
    const byName = this.#read('name = ? ORDER BY run DESC LIMIT 1', name);
    if (byName) return byName;
    const numbered = /^(.+)-(\d+)$/.exec(name);
    return numbered ? this.#read('name = ? AND run = ?', numbered[1]!, Number(numbered[2])) : null;
  }

  async list(limit: number): Promise<Job[]> {
    return this.#db.all<JobColumns>(`SELECT ${COLUMNS} FROM jobs ORDER BY id DESC LIMIT ?`, limit).map(toJob);
  }

  async counters(jobId: number): Promise<Counters> {
    const row = this.#db.get<Counters>(
      `SELECT ${COUNTER_NAMES.join(', ')} FROM counters WHERE job_id = ?`,
      jobId,
    );
    if (!row) throw new Error(`no counters of job ${jobId}`);
    return { ...row };
  }

  async update(jobId: number, change: Parameters<JobStore['update']>[1]): Promise<void> {
    this.#db.transaction(() => {
      for (const [field, value] of Object.entries(change)) {
        const column = UPDATABLE[field as keyof typeof UPDATABLE];
        const written = field === 'spec' ? JSON.stringify(value) : (value as string | number | null);
        this.#db.run(`UPDATE jobs SET ${column} = ? WHERE id = ?`, written, jobId);
      }
    });
  }

  async wish(jobId: number): Promise<JobWish> {
    return this.#db.get<{ wish: JobWish }>('SELECT wish FROM jobs WHERE id = ?', jobId)?.wish ?? 'cancel';
  }

  async sources(jobId: number): Promise<SourcePosition[]> {
    return this.#db
      .all<Omit<SourcePosition, 'done'> & { done: number }>(
        'SELECT source, position, done, rows, rejected FROM sources WHERE job_id = ? ORDER BY source',
        jobId,
      )
      .map((row) => ({ ...row, done: row.done === 1 }));
  }

  #read(where: string, ...values: (string | number)[]): Job | null {
    const row = this.#db.get<JobColumns>(`SELECT ${COLUMNS} FROM jobs WHERE ${where}`, ...values);
    return row ? toJob(row) : null;
  }
}

function toJob(row: JobColumns): Job {
  return {
    id: row.id,
    name: row.name,
    run: row.run,
    spec: JSON.parse(row.spec),
    specHash: row.spec_hash,
    bundle: row.bundle,
    state: row.state,
    wish: row.wish,
    reason: row.reason,
    createdAt: row.created_at,
    endedAt: row.ended_at,
    workedMs: row.worked_ms,
  };
}
