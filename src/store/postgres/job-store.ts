import { randomInt } from 'node:crypto';
import type { CostLine } from '../../core/cost/cost.ts';
import type { Counters, JobState, RequestedState } from '../../core/model.ts';
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
import type { Database, Transaction } from './connection/database.ts';
import { readCounters, toCleanJson } from './connection/rows.ts';
import type { CoordinatorHeartbeats } from './frontier/coordinator-heartbeats.ts';
import { addRollups } from './rollup-store.ts';
import { addCosts } from './settle/write-costs.ts';
import { POSTGRES_OUTBOX, writeOutbox } from './webhooks.ts';

export class PostgresJobStore implements JobStore {
  readonly #db: Database;
  readonly #reads: Pick<Database, 'read'>;
  readonly #heartbeats: CoordinatorHeartbeats;

  constructor(db: Database, reads: Pick<Database, 'read'>, heartbeats: CoordinatorHeartbeats) {
    this.#db = db;
    this.#reads = reads;
    this.#heartbeats = heartbeats;
  }

  async create(job: Parameters<JobStore['create']>[0]): Promise<Job> {
    const { name, specHash, bundle, file, now } = job;
    return this.#db.write(async (tx) => {
      // Others may create a run of the same name at this very moment.
      await tx.run('SELECT pg_advisory_xact_lock(hashtext($1))', `seine job ${name}`);
      if (job.requestId != null) {
        await tx.run('SELECT pg_advisory_xact_lock(hashtext($1))', `seine request ${job.requestId}`);
        const [known] = await tx.run<JobColumns>(`${SELECT_JOBS} WHERE request_id = $1`, job.requestId);
        if (known) return toJob(known);
      }
      if (job.unlessUnfinished) {
        const [unfinished] = await tx.run<JobColumns>(SELECT_UNFINISHED, name, specHash);
        if (unfinished) return toJob(unfinished);
      }
      await tx.run('INSERT INTO collections (name) VALUES ($1) ON CONFLICT (name) DO NOTHING', name);
      const [made] = await tx.run<{ id: number }>(
        INSERT_JOB,
        name,
        toCleanJson(job.spec),
        specHash,
        bundle,
        file,
        randomInt(0x7fff_ffff),
        now,
        job.owner ?? null,
        job.spec.keepOpen ?? false,
        job.requestId ?? null,
        job.countsPages ?? false,
        job.stopped == null ? 'running' : 'stopped',
        job.stopped ?? null,
      );
      await tx.run(INSERT_PASS, made!.id, now, name);
      return readJob(tx, made!.id);
    });
  }

  async beginPass(jobId: number, code: Parameters<JobStore['beginPass']>[1]): Promise<Job> {
    const { spec, specHash, bundle, file, now } = code;
    return this.#db.write(async (tx) => {
      await tx.run(LOCK_STATE, jobId);
      const before = await readJob(tx, jobId);
      if (code.after !== undefined && before.pass !== code.after) return before;
      const counters = await readCounters(tx.run, jobId);
      await tx.run(BEGIN_PASS, jobId, JSON.stringify(counters), now);
      await tx.run(RESTART_JOB, jobId, toCleanJson(spec), specHash, bundle, file);
      await tx.run('DELETE FROM sources WHERE job_id = $1', jobId);
      // Failures to get a robots.txt belong to the pass in which they were counted.
      await tx.run('DELETE FROM robots WHERE text IS NULL');
      return readJob(tx, jobId);
    });
  }

  async get(id: number): Promise<Job> {
    return readJob({ run: this.#reads.read.bind(this.#reads) }, id);
  }

  async find(name: string | null): Promise<Job | null> {
    if (name === null) return this.#find('ORDER BY id DESC LIMIT 1');
    const byName = await this.#find('WHERE name = $1 ORDER BY run DESC LIMIT 1', name);
    if (byName) return byName;
    const numbered = /^(.+)-(\d{1,9})$/.exec(name);
    return numbered ? this.#find('WHERE name = $1 AND run = $2', numbered[1]!, Number(numbered[2])) : null;
  }

  async list(limit: number): Promise<Job[]> {
    return (await this.#reads.read<JobColumns>(`${SELECT_JOBS} ORDER BY id DESC LIMIT $1`, limit)).map(toJob);
  }

  async listBefore(options: Parameters<JobStore['listBefore']>[0]): Promise<Job[]> {
    const { owner = null, before, limit } = options;
    return (await this.#reads.read<JobColumns>(JOBS_BEFORE, before, owner, limit)).map(toJob);
  }

  async byId(id: number): Promise<Job | null> {
    const [row] = await this.#reads.read<JobColumns>(`${SELECT_JOBS} WHERE id = $1`, id);
    return row ? toJob(row) : null;
  }

  async running(): Promise<Job[]> {
    return (await this.#db.read<JobColumns>(RUNNING_JOBS)).map(toJob);
  }

  async keptOpen(namePart: string): Promise<Job[]> {
    return (await this.#db.read<JobColumns>(keptOpenJobs('$1'), namePart)).map(toJob);
  }

  async scheduled(): Promise<Job[]> {
    return (await this.#db.read<JobColumns>(SCHEDULED_JOBS)).map(toJob);
  }

  async counters(jobId: number): Promise<Counters> {
    return readCounters(this.#reads.read.bind(this.#reads), jobId);
  }

  async costs(jobId: number): Promise<CostLine[]> {
    return toCostLines(await this.#reads.read<CostLine>(selectCosts('$1'), jobId));
  }

  async addCosts(jobId: number, lines: readonly CostLine[], now: number): Promise<void> {
    await this.#db.write(async (tx) => {
      await addCosts(tx, jobId, { lines, now });
      await addRollups(tx, jobId, [{ host: ALL_HOSTS, at: now, rollup: rollupOfCosts(lines) }]);
    });
  }

  async update(jobId: number, change: Parameters<JobStore['update']>[1]): Promise<void> {
    const fields = Object.entries(change) as [keyof typeof UPDATABLE, unknown][];
    if (fields.length === 0) return;
    const columns = fields.map(([field], index) => `${UPDATABLE[field]} = $${index + 2}`);
    const values = fields.map(([field, value]) => toColumn(field, value));
    const text = `UPDATE jobs SET ${columns.join(', ')} WHERE id = $1`;
    const { state, endedAt } = change;
    if (state === undefined || !isEnd(state)) {
      await this.#db.read(text, jobId, ...values);
      return;
    }
    await this.#db.write(async (tx) => {
      const [before] = await tx.run<{ state: JobState }>(LOCK_STATE, jobId);
      await tx.run(text, jobId, ...values);
      if (before && before.state !== state)
        await writeOutbox(tx, tellJobEnd(POSTGRES_OUTBOX, jobId, endedAt ?? Date.now()));
    });
  }

  async finish(jobId: number, now: number): Promise<JobState | null> {
    return this.#db.write(async (tx) => {
      await tx.run(LOCK_STATE, jobId);
      const { pending, leased } = await readCounters(tx.run, jobId);
      if (pending + leased > 0) return null;
      const before = await readJob(tx, jobId);
      const state = finishedState(before);
      if (state !== 'done' && state !== 'waiting') return state;
      await tx.run(FINISH_JOB, jobId, state, state === 'done' ? now : null);
      if (state === 'done' && before.state !== 'done')
        await writeOutbox(tx, tellJobEnd(POSTGRES_OUTBOX, jobId, now));
      return state;
    });
  }

  async closeToMore(jobId: number, now: number): Promise<void> {
    await this.#db.write(async (tx) => {
      await tx.run('UPDATE jobs SET keep_open = false WHERE id = $1', jobId);
      const ended = await tx.run(
        "UPDATE jobs SET state = 'done', ended_at = $2 WHERE id = $1 AND state = 'waiting' RETURNING id",
        jobId,
        now,
      );
      if (ended.length > 0) await writeOutbox(tx, tellJobEnd(POSTGRES_OUTBOX, jobId, now));
    });
  }

  async requestedState(jobId: number): Promise<RequestedState> {
    const [row] = await this.#reads.read<{ state: RequestedState }>(
      'SELECT requested_state AS state FROM jobs WHERE id = $1',
      jobId,
    );
    return row?.state ?? 'cancel';
  }

  async priorities(jobId: number): Promise<PriorityRule[]> {
    const [row] = await this.#db.read<{ rules: string | null }>(
      'SELECT priorities AS rules FROM jobs WHERE id = $1',
      jobId,
    );
    return toPriorities(row?.rules);
  }

  async sources(jobId: number): Promise<SourcePosition[]> {
    return this.#reads.read<SourcePosition>(SELECT_SOURCES, jobId);
  }

  async join(jobId: number): Promise<void> {
    await this.#heartbeats.join(jobId);
  }

  async claim(jobId: number): Promise<boolean> {
    const coordinator = await this.#heartbeats.register();
    const isClaimed = await this.#db.write(async (tx) => {
      await tx.run(LOCK_JOB, jobId);
      return (await tx.run(CLAIM_JOB, coordinator, jobId)).length > 0;
    });
    if (isClaimed) await this.#heartbeats.join(jobId);
    return isClaimed;
  }

  async leave(jobId: number): Promise<number> {
    await this.#heartbeats.leaveJob(jobId);
    return this.atWork(jobId);
  }

  async atWork(jobId: number): Promise<number> {
    const [row] = await this.#reads.read<{ count: number }>(COUNT_AT_WORK, jobId);
    return row?.count ?? 0;
  }

  async takeSources(jobId: number): Promise<boolean> {
    return (await this.#db.read(TAKE_SOURCES, jobId, await this.#heartbeats.register())).length > 0;
  }

  async #find(where: string, ...values: (string | number)[]): Promise<Job | null> {
    const [row] = await this.#reads.read<JobColumns>(`${SELECT_JOBS} ${where}`, ...values);
    return row ? toJob(row) : null;
  }
}

async function readJob(tx: Pick<Transaction, 'run'>, id: number): Promise<Job> {
  const [row] = await tx.run<JobColumns>(`${SELECT_JOBS} WHERE id = $1`, id);
  if (!row) throw new Error(`no job ${id}`);
  return toJob(row);
}

const SELECT_UNFINISHED = `
  ${SELECT_JOBS} WHERE jobs.id = (SELECT max(id) FROM jobs WHERE name = $1) AND spec_hash = $2
    AND state NOT IN ('done', 'cancelled')`;

const INSERT_JOB = `
  INSERT INTO jobs (name, run, spec, spec_hash, bundle, file, seed, requested_state, created_at, owner, keep_open,
    request_id, counts_pages, state, reason)
  SELECT $1, coalesce((SELECT max(run) FROM jobs WHERE name = $1), 0) + 1, $2, $3, $4, $5, $6, 'run', $7, $8, $9,
    $10, $11, $12, $13
  RETURNING id`;

/** Whoever adds tasks from outside and whoever ends the job come one after the other. */
export const LOCK_JOB = 'SELECT 1 FROM jobs WHERE id = $1 FOR NO KEY UPDATE';

const FINISH_JOB = 'UPDATE jobs SET state = $2, reason = NULL, ended_at = $3::bigint WHERE id = $1';

const INSERT_PASS = `
  INSERT INTO passes (job_id, collection_id, pass, started_at) SELECT $1, id, 1, $2 FROM collections WHERE name = $3`;

const BEGIN_PASS = `
  UPDATE passes SET pass = pass + 1, start = $2, started_at = $3,
    last_task_id = (SELECT coalesce(max(id), 0) FROM tasks) WHERE job_id = $1`;

const RESTART_JOB = `
  UPDATE jobs SET spec = $2, spec_hash = $3, bundle = $4, file = $5, state = 'running', requested_state = 'run', reason = NULL,
    ended_at = NULL WHERE id = $1`;

const LOCK_STATE = 'SELECT state FROM jobs WHERE id = $1 FOR NO KEY UPDATE';

const SELECT_SOURCES = `
  SELECT source, position, done, rows, rejected FROM sources WHERE job_id = $1 ORDER BY source`;

const COUNT_AT_WORK = `
  SELECT count(*) AS count FROM coordinator_jobs JOIN coordinators ON coordinators.id = coordinator_jobs.coordinator_id
  WHERE coordinator_jobs.job_id = $1 AND coordinators.alive_until > now()`;

/** Those that claim a job come one after the other, by the lock of its row. */
const CLAIM_JOB = `
  INSERT INTO coordinator_jobs (coordinator_id, job_id) SELECT $1, $2 WHERE NOT EXISTS (
    SELECT 1 FROM coordinator_jobs JOIN coordinators ON coordinators.id = coordinator_jobs.coordinator_id
    WHERE coordinator_jobs.job_id = $2 AND coordinators.id <> $1 AND coordinators.alive_until > now())
  ON CONFLICT (coordinator_id, job_id) DO UPDATE SET job_id = excluded.job_id RETURNING job_id`;

/** Whoever reads them keeps them, as long as it is alive and at work on the job. */
const TAKE_SOURCES = `
  UPDATE jobs SET feeder = $2 WHERE id = $1 AND (feeder IS NULL OR feeder = $2 OR NOT EXISTS (
    SELECT 1 FROM coordinator_jobs JOIN coordinators ON coordinators.id = coordinator_jobs.coordinator_id
    WHERE coordinators.id = jobs.feeder AND coordinators.alive_until > now() AND coordinator_jobs.job_id = $1))
  RETURNING id`;

const SCHEDULED_JOBS = scheduledJobs("(spec -> 'schedule') IS NOT NULL");
