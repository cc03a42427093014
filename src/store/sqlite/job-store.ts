import { randomInt } from 'node:crypto';
import type { CostLine } from '../../core/cost/cost.ts';
import {
  COUNTER_NAMES,
  type Counters,
  type JobState,
  type RequestedState,
  zeroCounters,
} from '../../core/model.ts';
import type { PriorityRule } from '../../core/priority/priority.ts';
import { ALL_HOSTS, rollupOfCosts } from '../../core/rollups/rollup.ts';
import type { Job, JobStore, SourcePosition } from '../../ports/store.ts';
import { selectCosts, toCostLines } from '../shared/cost-rows.ts';
import {
  finishedState,
  JOBS_BEFORE,
  type JobColumns,
  keptOpenJobs,
  RUNNING_JOBS,
  SELECT_JOBS,
  scheduledJobs,
  toColumn,
  toJob,
  toPriorities,
  UPDATABLE,
} from '../shared/job-rows.ts';
import { isEnd, tellJobEnd } from '../shared/webhooks/outbox.ts';
import type { Database } from './connection/database.ts';
import { SqliteReader } from './connection/reader.ts';
import { NEIGHBOUR_SEEDS } from './dedupe/seen-key.ts';
import { addRollups } from './rollup-store.ts';
import { addCosts } from './settle/write-costs.ts';
import { SQLITE_OUTBOX, writeOutbox } from './webhooks.ts';

export class SqliteJobStore implements JobStore {
  readonly #db: Database;

  /** Jobs of this process. */
  readonly #atWork: Set<number>;

  constructor(db: Database, atWork: Set<number>) {
    this.#db = db;
    this.#atWork = atWork;
  }

  async create(job: Parameters<JobStore['create']>[0]): Promise<Job> {
    return this.#db.transaction(() => {
      const made = job.requestId == null ? null : this.#read('request_id = ?', job.requestId);
      if (made) return made;
      const last = this.#db.get<{ run: number | null }>(
        'SELECT max(run) AS run FROM jobs WHERE name = ?',
        job.name,
      );
      const run = (last?.run ?? 0) + 1;
      this.#db.run(
        `INSERT INTO jobs (name, run, spec, spec_hash, bundle, file, seed, requested_state, created_at, owner, keep_open,
           request_id, counts_pages, state, reason)
         VALUES (?, ?, ?, ?, ?, ?, ?, 'run', ?, ?, ?, ?, ?, ?, ?)`,
        job.name,
        run,
        JSON.stringify(job.spec),
        job.specHash,
        job.bundle,
        job.file,
        NEIGHBOUR_SEEDS + randomInt(0x7fff_ffff),
        job.now,
        job.owner ?? null,
        job.spec.keepOpen ? 1 : 0,
        job.requestId ?? null,
        job.countsPages ? 1 : 0,
        job.stopped == null ? 'running' : 'stopped',
        job.stopped ?? null,
      );
      const { id } = this.#db.get<{ id: number }>('SELECT last_insert_rowid() AS id')!;
      this.#db.run('INSERT OR IGNORE INTO collections (name) VALUES (?)', job.name);
      this.#db.run(
        `INSERT INTO passes (job_id, collection_id, pass, started_at)
         SELECT ?, id, 1, ? FROM collections WHERE name = ?`,
        id,
        job.now,
        job.name,
      );
      this.#db.run('INSERT INTO counters (job_id) VALUES (?)', id);
      return this.#require(id);
    });
  }

  async beginPass(jobId: number, code: Parameters<JobStore['beginPass']>[1]): Promise<Job> {
    return this.#db.transaction(() => {
      const before = this.#require(jobId);
      if (code.after !== undefined && before.pass !== code.after) return before;
      this.#db.run(
        `UPDATE passes SET pass = pass + 1, start = ?, started_at = ?,
           last_task_id = (SELECT coalesce(max(id), 0) FROM tasks) WHERE job_id = ?`,
        JSON.stringify(this.#counters(jobId)),
        code.now,
        jobId,
      );
      this.#db.run(
        `UPDATE jobs SET spec = ?, spec_hash = ?, bundle = ?, file = ?, state = 'running', requested_state = 'run', reason = NULL,
           ended_at = NULL WHERE id = ?`,
        JSON.stringify(code.spec),
        code.specHash,
        code.bundle,
        code.file,
        jobId,
      );
      this.#db.run('DELETE FROM sources WHERE job_id = ?', jobId);
      // Failures to get a robots.txt belong to the pass in which they were counted.
      this.#db.run('DELETE FROM robots WHERE text IS NULL');
      return this.#require(jobId);
    });
  }

  async get(id: number): Promise<Job> {
    return this.#require(id);
  }

  async find(name: string | null): Promise<Job | null> {
    if (name === null) return this.#read('id = (SELECT max(id) FROM jobs)');
    const byName = this.#read('name = ? ORDER BY run DESC LIMIT 1', name);
    if (byName) return byName;
    const numbered = /^(.+)-(\d+)$/.exec(name);
    return numbered ? this.#read('name = ? AND run = ?', numbered[1]!, Number(numbered[2])) : null;
  }

  async list(limit: number): Promise<Job[]> {
    return this.#db.all<JobColumns>(`${SELECT_JOBS} ORDER BY id DESC LIMIT ?`, limit).map(toJob);
  }

  async listBefore(options: Parameters<JobStore['listBefore']>[0]): Promise<Job[]> {
    const { owner = null, before, limit } = options;
    return new SqliteReader(this.#db).all<JobColumns>(JOBS_BEFORE, before, owner, limit).map(toJob);
  }

  async byId(id: number): Promise<Job | null> {
    return this.#read('id = ?', id);
  }

  async running(): Promise<Job[]> {
    return this.#db.all<JobColumns>(RUNNING_JOBS).map(toJob);
  }

  async keptOpen(namePart: string): Promise<Job[]> {
    return this.#db.all<JobColumns>(keptOpenJobs('?'), namePart).map(toJob);
  }

  async scheduled(): Promise<Job[]> {
    return this.#db.all<JobColumns>(SCHEDULED_JOBS).map(toJob);
  }

  async counters(jobId: number): Promise<Counters> {
    return this.#counters(jobId);
  }

  async update(jobId: number, change: Parameters<JobStore['update']>[1]): Promise<void> {
    this.#db.transaction(() => {
      const isOver = change.state !== undefined && isEnd(change.state) && this.#state(jobId) !== change.state;
      for (const [field, value] of Object.entries(change)) {
        const column = UPDATABLE[field as keyof typeof UPDATABLE];
        this.#db.run(`UPDATE jobs SET ${column} = ? WHERE id = ?`, toColumn(field, value), jobId);
      }
      if (isOver) this.#tellEnd(jobId, change.endedAt ?? Date.now());
    });
  }

  async finish(jobId: number, now: number): Promise<JobState | null> {
    return this.#db.transaction(() => {
      const { pending, leased } = this.#counters(jobId);
      if (pending + leased > 0) return null;
      const before = this.#require(jobId);
      const state = finishedState(before);
      if (state !== 'done' && state !== 'waiting') return state;
      this.#db.run(
        'UPDATE jobs SET state = ?, reason = NULL, ended_at = ? WHERE id = ?',
        state,
        state === 'done' ? now : null,
        jobId,
      );
      if (state === 'done' && before.state !== 'done') this.#tellEnd(jobId, now);
      return state;
    });
  }

  async closeToMore(jobId: number, now: number): Promise<void> {
    this.#db.transaction(() => {
      this.#db.run('UPDATE jobs SET keep_open = 0 WHERE id = ?', jobId);
      const ended = this.#db.run(
        "UPDATE jobs SET state = 'done', ended_at = ? WHERE id = ? AND state = 'waiting'",
        now,
        jobId,
      );
      if (ended > 0) this.#tellEnd(jobId, now);
    });
  }

  async requestedState(jobId: number): Promise<RequestedState> {
    return (
      this.#db.get<{ state: RequestedState }>('SELECT requested_state AS state FROM jobs WHERE id = ?', jobId)
        ?.state ?? 'cancel'
    );
  }

  async costs(jobId: number): Promise<CostLine[]> {
    return toCostLines(this.#db.all<CostLine>(selectCosts('?'), jobId));
  }

  async addCosts(jobId: number, lines: readonly CostLine[], now: number): Promise<void> {
    this.#db.transaction(() => {
      addCosts(this.#db, jobId, { lines, now });
      addRollups(this.#db, jobId, [{ host: ALL_HOSTS, at: now, rollup: rollupOfCosts(lines) }]);
    });
  }

  async priorities(jobId: number): Promise<PriorityRule[]> {
    const row = this.#db.get<{ rules: string | null }>(
      'SELECT priorities AS rules FROM jobs WHERE id = ?',
      jobId,
    );
    return toPriorities(row?.rules);
  }

  async sources(jobId: number): Promise<SourcePosition[]> {
    return this.#db
      .all<Omit<SourcePosition, 'done'> & { done: number }>(
        'SELECT source, position, done, rows, rejected FROM sources WHERE job_id = ? ORDER BY source',
        jobId,
      )
      .map((row) => ({ ...row, done: row.done === 1 }));
  }

  /** The lock of the folder tells whether a coordinator is at work. */
  async join(jobId: number): Promise<void> {
    this.#atWork.add(jobId);
  }

  async claim(jobId: number): Promise<boolean> {
    this.#atWork.add(jobId);
    return true;
  }

  async leave(jobId: number): Promise<number> {
    this.#atWork.delete(jobId);
    return 0;
  }

  async atWork(): Promise<number> {
    return 0;
  }

  async takeSources(): Promise<boolean> {
    return true;
  }

  #tellEnd(jobId: number, now: number): void {
    writeOutbox(this.#db, tellJobEnd(SQLITE_OUTBOX, jobId, now));
  }

  #state(jobId: number): JobState | undefined {
    return this.#db.get<{ state: JobState }>('SELECT state FROM jobs WHERE id = ?', jobId)?.state;
  }

  #counters(jobId: number): Counters {
    const row = this.#db.get<Counters>(SELECT_COUNTERS, jobId);
    if (!row) throw new Error(`no counters of job ${jobId}`);
    const counters = zeroCounters();
    for (const name of COUNTER_NAMES) counters[name] = row[name];
    return counters;
  }

  #require(id: number): Job {
    const job = this.#read('id = ?', id);
    if (!job) throw new Error(`no job ${id}`);
    return job;
  }

  #read(where: string, ...values: (string | number)[]): Job | null {
    const row = this.#db.get<JobColumns>(`${SELECT_JOBS} WHERE ${where}`, ...values);
    return row ? toJob(row) : null;
  }
}

/** Made once: it is read with every look of the coordinator. */
const SELECT_COUNTERS = `SELECT ${COUNTER_NAMES.join(', ')} FROM counters WHERE job_id = ?`;
const SCHEDULED_JOBS = scheduledJobs("json_extract(spec, '$.schedule') IS NOT NULL");
