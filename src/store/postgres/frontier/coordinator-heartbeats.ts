import type { Logger } from '../../../ports/ambient.ts';
import type { Database } from '../connection/database.ts';

/** How long a coordinator counts as alive after its last heartbeat, unless told otherwise. */
export const ALIVE_MS_DEFAULT = 20_000;
const RENEWALS = 4;
/** Permits are times: coordinators with different clocks would not keep each other's. */
const CLOCK_OFF_MS = 1_000;
const FORGET_DAYS = 7;

/** Whether the coordinator with this number is at work. */
export const ALIVE = (id: string) =>
  `EXISTS (SELECT 1 FROM coordinators WHERE coordinators.id = ${id} AND coordinators.alive_until > now())`;

/** Whether a coordinator is at work on the job. */
export const JOB_AT_WORK = (jobId: string) => `EXISTS (
  SELECT 1 FROM coordinator_jobs JOIN coordinators ON coordinators.id = coordinator_jobs.coordinator_id
  WHERE coordinator_jobs.job_id = ${jobId} AND coordinators.alive_until > now())`;

/** Asked once for each statement. */
export const SEVERAL_JOBS = '(SELECT count(DISTINCT job_id) > 1 FROM coordinator_jobs)';

interface HeartbeatOptions {
  /** Names the folder whose lock this process holds. */
  place: string | null;
  aliveMs: number;
  logger: Logger;
}

/** This process as others see it: which job it works on, and that it is alive. */
export class CoordinatorHeartbeats {
  readonly #db: Database;
  readonly #options: HeartbeatOptions;
  #registered: Promise<number> | null = null;
  #id = 0;
  /** Those that it works on. */
  readonly #jobs = new Set<number>();
  #timer: NodeJS.Timeout | null = null;
  #isClockOff = false;

  constructor(db: Database, options: HeartbeatOptions) {
    this.#db = db;
    this.#options = options;
  }

  /** 0 as long as it holds nothing. */
  get id(): number {
    return this.#id;
  }

  /** The number under which hosts and batches are held. */
  async register(): Promise<number> {
    this.#registered ??= this.#register().catch((error) => {
      this.#registered = null;
      throw error;
    });
    return this.#registered;
  }

  async join(jobId: number): Promise<void> {
    this.#jobs.add(jobId);
    await this.#db.read(JOIN, await this.register(), [jobId]);
  }

  async leaveJob(jobId: number): Promise<void> {
    this.#jobs.delete(jobId);
    const id = await this.register();
    await this.#db.read('DELETE FROM coordinator_jobs WHERE coordinator_id = $1 AND job_id = $2', id, jobId);
  }

  async leave(): Promise<void> {
    if (this.#timer) clearInterval(this.#timer);
    this.#timer = null;
    if (this.#id !== 0) await this.#db.read('DELETE FROM coordinators WHERE id = $1', this.#id);
  }

  async #register(): Promise<number> {
    const { place } = this.#options;
    this.#id = await this.#db.write(async (tx) => {
      // Whoever held the lock of this folder before is gone, whatever its time says.
      if (place !== null) await tx.run('DELETE FROM coordinators WHERE place = $1', place);
      await tx.run(FORGET_COORDINATORS);
      await tx.run(FORGET_WRITES);
      const [row] = await tx.run<{ id: number }>(INSERT_COORDINATOR, place, this.#options.aliveMs);
      return row!.id;
    });
    this.#timer = setInterval(() => void this.#renew(), this.#options.aliveMs / RENEWALS);
    this.#timer.unref();
    return this.#id;
  }

  /** Never rejects: a database that stays away is the trouble of whoever needs it. */
  async #renew(): Promise<void> {
    try {
      const { place, aliveMs } = this.#options;
      const askedAt = Date.now();
      const [row] = await this.#db.read<{ ms: number }>(RENEW, this.#id, place, aliveMs);
      if (this.#jobs.size > 0) await this.#db.read(JOIN, this.#id, [...this.#jobs]);
      const off = Math.abs((askedAt + Date.now()) / 2 - (row?.ms ?? askedAt));
      // An answer that took long says nothing about the clock.
      if (off > CLOCK_OFF_MS && Date.now() - askedAt < CLOCK_OFF_MS && !this.#isClockOff) {
        this.#isClockOff = true;
        const seconds = Math.round(off / 100) / 10;
        this.#options.logger.warn(
          `the clock of this machine differs by ${seconds} s from the database: other coordinators may send requests too early`,
        );
      }
    } catch {
      // Said by the database itself.
    }
  }
}

const INSERT_COORDINATOR = `
  INSERT INTO coordinators (place, alive_until) VALUES ($1, now() + $2::integer * interval '1 millisecond') RETURNING id`;

/** Taken for dead and removed, it comes back: what it held may be gone by then. */
const RENEW = `
  INSERT INTO coordinators (id, place, alive_until) OVERRIDING SYSTEM VALUE
  VALUES ($1, $2, now() + $3::integer * interval '1 millisecond')
  ON CONFLICT (id) DO UPDATE SET alive_until = excluded.alive_until
  RETURNING extract(epoch FROM clock_timestamp()) * 1000 AS ms`;

const JOIN = `
  INSERT INTO coordinator_jobs (coordinator_id, job_id) SELECT $1, unnest($2::bigint[]) ON CONFLICT DO NOTHING`;

const FORGET_COORDINATORS = `DELETE FROM coordinators WHERE alive_until < now() - interval '${FORGET_DAYS} days'`;

const FORGET_WRITES = `DELETE FROM writes WHERE at < now() - interval '${FORGET_DAYS} days'`;
