import type { NewTask } from '../../core/model.ts';
import type {
  AdoptedBatch,
  DueHost,
  DueOptions,
  EnqueueResult,
  Frontier,
  LeasedBatch,
  LeaseRequest,
  PacedHost,
  ReleaseOptions,
  Settlement,
  SettleResult,
  SourcePosition,
} from '../../ports/store.ts';
import { type DueColumns, type PacedColumns, pacedByEnded, toDue, toPaced } from '../shared/host-rows.ts';
import { RUN_ON } from '../shared/job-rows.ts';
import { READY, WAITING } from '../shared/states.ts';
import { isOthersTurn, TURN_MS } from '../shared/turns.ts';
import type { Database, Transaction } from './connection/database.ts';
import { CounterUpdates, indexHint } from './connection/rows.ts';
import { adoptInTransaction } from './frontier/adopt.ts';
import {
  ALIVE,
  type CoordinatorHeartbeats,
  JOB_AT_WORK,
  SEVERAL_JOBS,
} from './frontier/coordinator-heartbeats.ts';
import { findTask } from './frontier/find-tasks.ts';
import { failTasksOfHostInTransaction, releaseInTransaction } from './frontier/give-up.ts';
import type { HostIds } from './frontier/host-ids.ts';
import { insertTasks, lookUp } from './frontier/insert-tasks.ts';
import type { JobMemories } from './frontier/job-memory.ts';
import { leaseInTransaction } from './frontier/lease.ts';
import { reopenInTransaction, revisitInTransaction } from './frontier/reopen.ts';
import { setPrioritiesInTransaction } from './frontier/set-priorities.ts';
import { writeSource } from './frontier/write-source.ts';
import { LOCK_JOB } from './job-store.ts';
import { SettleQueue } from './settle/settle-queue.ts';

const PROMOTED_AT_ONCE = 2_000;

interface FrontierParts {
  db: Database;
  reads: Pick<Database, 'read'>;
  hosts: HostIds;
  memories: JobMemories;
  heartbeats: CoordinatorHeartbeats;
}

export class PostgresFrontier implements Frontier {
  readonly #db: Database;
  readonly #reads: Pick<Database, 'read'>;
  readonly #hosts: HostIds;
  readonly #memories: JobMemories;
  readonly #heartbeats: CoordinatorHeartbeats;
  readonly #settles: SettleQueue;

  constructor({ db, reads, hosts, memories, heartbeats }: FrontierParts) {
    this.#db = db;
    this.#reads = reads;
    this.#hosts = hosts;
    this.#memories = memories;
    this.#heartbeats = heartbeats;
    this.#settles = new SettleQueue(db);
  }

  async enqueue(
    jobId: number,
    tasks: NewTask[],
    { perTemplateMax, source, added }: Parameters<Frontier['enqueue']>[2],
  ): Promise<EnqueueResult> {
    const memory = await this.#memories.of(jobId);
    const hosts = await this.#hosts.learn(tasks.map(({ host }) => host));
    const write = async (tx: Transaction) => {
      if (added) await tx.run(LOCK_JOB, jobId);
      const counterUpdates = new CounterUpdates();
      const context = { tx, jobId, memory, hosts, counterUpdates, perTemplateMax };
      const { added: _, ...result } = await insertTasks(context, tasks, await lookUp(context, tasks));
      if (source) {
        const [before] = await tx.run<{ rejected: number }>(SELECT_REJECTED, jobId, source.source);
        counterUpdates.count('rejected', source.rejected - (before?.rejected ?? 0));
        tx.finally(writeSource(tx, jobId, source));
      }
      counterUpdates.count('rejected', added?.rejected ?? 0);
      if (added && result.accepted > 0) await tx.run(`${RUN_ON}$1`, jobId);
      tx.finally(counterUpdates.write(tx, jobId));
      return result;
    };
    // A source comes before the reports that wait: behind them it brings one chunk each time that all are written, and plans
    // find few tasks of each host.
    return this.#db.write(write, { first: source !== null });
  }

  async revisit(jobId: number, taskId: number): Promise<boolean> {
    return this.#db.write(async (tx) => {
      await tx.run(LOCK_JOB, jobId);
      return revisitInTransaction(tx, jobId, taskId);
    });
  }

  async reopen(
    jobId: number,
    options: Parameters<Frontier['reopen']>[1],
  ): Promise<{ reopened: number; source: SourcePosition }> {
    return this.#db.write((tx) => reopenInTransaction(tx, jobId, options));
  }

  async dueHosts(jobId: number, options: DueOptions): Promise<DueHost[]> {
    const { before, limit, overtakes = [] } = options;
    const now = Math.floor(options.now);
    const select = () =>
      this.#db.read<DueColumns>(
        SELECT_DUE,
        jobId,
        Math.floor(before),
        limit,
        this.#heartbeats.id,
        now - TURN_MS,
        overtakes,
      );
    let [waiting, rows] = await Promise.all([this.#db.read(HAS_DUE, jobId, now), select()]);
    if (waiting.length > 0) {
      await this.#promote(jobId, now);
      rows = await select();
    }
    // Another job has used some of them since: remember that in this job's queue.
    const later = rows.filter((row) => row.nextAt > before).map(({ id }) => id);
    if (later.length > 0) await this.#db.read(CATCH_UP, jobId, later);
    return rows.filter((row) => row.nextAt <= before).map(toDue);
  }

  async hostsNamed(hosts: readonly string[]): Promise<DueHost[]> {
    await this.#hosts.learn(hosts);
    return (await this.#db.read<DueColumns>(SELECT_NAMED, hosts, this.#heartbeats.id)).map(toDue);
  }

  async lease(jobId: number, request: LeaseRequest): Promise<LeasedBatch[]> {
    const coordinator = await this.#heartbeats.register();
    return this.#db.write((tx) => leaseInTransaction(tx, jobId, request, coordinator));
  }

  async settle(settlement: Settlement): Promise<SettleResult> {
    const memory = await this.#memories.of(settlement.jobId);
    const hosts = await this.#hosts.learn(hostsOf(settlement));
    return this.#settles.settle({ settlement, memory, hosts });
  }

  async release(batchId: number, options: ReleaseOptions): ReturnType<Frontier['release']> {
    return this.#db.write((tx) => releaseInTransaction(tx, batchId, options, this.#heartbeats.id));
  }

  async noteSent(batchId: number, { replyTo, handover }: Parameters<Frontier['noteSent']>[1]): Promise<void> {
    await this.#db.read(NOTE_SENT, batchId, replyTo, handover && JSON.stringify(handover));
  }

  async adopt(jobId: number, batchId: number): Promise<AdoptedBatch | null> {
    const coordinator = await this.#heartbeats.register();
    return this.#db.write((tx) => adoptInTransaction(tx, jobId, batchId, coordinator));
  }

  async expired(jobId: number, now: number): Promise<number[]> {
    return ids(await this.#db.read(SELECT_EXPIRED, jobId, Math.floor(now), this.#heartbeats.id));
  }

  async orphans(jobId: number): Promise<number[]> {
    return ids(await this.#db.read(SELECT_ORPHANS, jobId, this.#heartbeats.id));
  }

  async abandoned(jobId: number): Promise<number[]> {
    return ids(await this.#db.read(SELECT_ORPHANS, jobId, null));
  }

  async nextDueAt(jobId: number): Promise<number | null> {
    const [row] = await this.#reads.read<{ host: number | null; task: number | null }>(
      SELECT_NEXT_DUE,
      jobId,
    );
    const times = [row?.host, row?.task].filter((at) => at !== null && at !== undefined);
    return times.length === 0 ? null : Math.min(...times);
  }

  async nextDue(jobId: number): ReturnType<Frontier['nextDue']> {
    const [row] = await this.#reads.read<{ host: string | null; at: number | null; taskAt: number | null }>(
      SELECT_NEXT_DUE_APART,
      jobId,
    );
    const { host = null, at = null, taskAt = null } = row ?? {};
    return { host: host === null || at === null ? null : { host, at }, taskAt };
  }

  async failTasksOfHost(jobId: number, options: Parameters<Frontier['failTasksOfHost']>[1]): Promise<number> {
    const hosts = await this.#hosts.learn([options.host]);
    return this.#db.write((tx) => failTasksOfHostInTransaction(tx, jobId, hosts.of(options.host), options));
  }

  async postpone(jobId: number, hosts: { hostId: number; until: number }[]): Promise<void> {
    await this.#db.read(
      POSTPONE,
      jobId,
      hosts.map(({ hostId }) => hostId),
      hosts.map(({ until }) => Math.ceil(until)),
    );
  }

  async pacedHosts(jobId: number, options: Parameters<Frontier['pacedHosts']>[1]): Promise<PacedHost[]> {
    const { gapOf, after, limit } = options;
    return (await this.#db.read<PacedColumns>(SELECT_PACED[gapOf], jobId, after, limit)).map(toPaced);
  }

  async bringForward(hosts: readonly { hostId: number; from: number; nextAt: number }[]): Promise<void> {
    await this.#db.read(
      BRING_FORWARD,
      hosts.map(({ hostId }) => hostId),
      hosts.map(({ from }) => from),
      hosts.map(({ nextAt }) => nextAt),
    );
  }

  async setPriorities(jobId: number, options: Parameters<Frontier['setPriorities']>[1]) {
    return this.#db.write((tx) => setPrioritiesInTransaction(tx, jobId, options));
  }

  async knows(jobId: number, url: string): Promise<boolean> {
    const memory = await this.#memories.of(jobId);
    if (memory.recent.has(url)) return true;
    return (await findTask(this.#db.read.bind(this.#db), jobId, memory.seed, url)) !== null;
  }

  /** Tasks whose pause is over join the ready ones. */
  async #promote(jobId: number, now: number): Promise<void> {
    await this.#db.write(async (tx) => {
      const counterUpdates = new CounterUpdates();
      const rows = await tx.run<{ host_id: number }>(PROMOTE, jobId, now, PROMOTED_AT_ONCE);
      for (const { host_id: hostId } of rows) counterUpdates.queue(hostId, 1);
      tx.finally(counterUpdates.write(tx, jobId));
    });
  }
}

/** Every host that a settlement names. */
function* hostsOf(settlement: Settlement): Iterable<string> {
  for (const { host } of settlement.hosts) yield host;
  for (const { host } of settlement.robots) yield host;
  for (const { host } of settlement.links ?? []) yield host;
  for (const { moveTo, links } of settlement.tasks) {
    if (moveTo) yield moveTo.host;
    for (const { host } of links) yield host;
  }
}

function ids(rows: unknown[]): number[] {
  return (rows as { id: number }[]).map(({ id }) => id);
}

const SELECT_REJECTED = 'SELECT rejected FROM sources WHERE job_id = $1 AND source = $2 FOR UPDATE';

const HOST_COLUMNS = `
  hosts.id, hosts.host, hosts.next_at AS "nextAt", hosts.crawl_delay_ms AS "crawlDelayMs",
  hosts.failures_in_row AS "failuresInRow", hosts.rests, hosts.pace, hosts.ban,
  hosts.reached_at AS "reachedAt"`;

const IS_FREE = (coordinator: string) =>
  `(hosts.holds = 0 OR hosts.holder = ${coordinator} OR NOT ${ALIVE('hosts.holder')})`;

const SELECT_NAMED = `
  SELECT 0 AS ready, ${HOST_COLUMNS} FROM hosts WHERE host = ANY($1::text[]) AND ${IS_FREE('$2')}`;

const IS_OTHERS_TURN = isOthersTurn({
  before: '$2',
  isAtWork: JOB_AT_WORK('other.job_id'),
  isOvertaken: 'other.job_id = ANY($6::bigint[])',
  turnAgo: '$5',
});

const SELECT_DUE = `
  SELECT queues.ready, ${HOST_COLUMNS}
  FROM queues JOIN hosts ON hosts.id = queues.host_id
  WHERE queues.job_id = $1 AND queues.ready > 0 AND queues.next_at <= $2
    AND ${IS_FREE('$4')}
    AND NOT (${SEVERAL_JOBS} AND (hosts.holds > 0 OR hosts.next_at > $5) AND ${IS_OTHERS_TURN})
  ORDER BY queues.next_at LIMIT $3`;

const CATCH_UP = `
  UPDATE queues SET next_at = greatest(queues.next_at, hosts.next_at) FROM hosts
  WHERE queues.job_id = $1 AND queues.host_id = ANY($2::bigint[]) AND hosts.id = queues.host_id`;

const HAS_DUE = `SELECT 1 FROM tasks WHERE job_id = $1 AND state = ${WAITING} AND due_at <= $2 LIMIT 1`;

const PROMOTE = `
  WITH due AS MATERIALIZED (
    SELECT id FROM tasks WHERE job_id = $1 AND state = ${WAITING} AND due_at <= $2
    ORDER BY due_at LIMIT $3 FOR UPDATE SKIP LOCKED
  )
  UPDATE tasks SET state = ${READY} WHERE id = ANY(ARRAY(SELECT id FROM due)) RETURNING host_id`;

const selectPaced = (isPacer: string) => `
  SELECT later.ready, ${HOST_COLUMNS}, hosts.last_sent_at AS "lastSentAt"
  FROM (SELECT host_id, ready FROM queues WHERE job_id = $1 AND ready > 0 AND next_at > $2 ORDER BY next_at LIMIT $3) AS later
    JOIN hosts ON hosts.id = later.host_id
  WHERE hosts.next_at = hosts.paced_until AND ${isPacer} AND hosts.last_sent_at IS NOT NULL`;

const SELECT_PACED = {
  'this-job': selectPaced('hosts.paced_by = $1'),
  'ended-jobs': selectPaced(pacedByEnded('$1')),
};

const BRING_FORWARD = `
  WITH forward AS (
    UPDATE hosts SET next_at = given.next_at, paced_until = given.next_at
    FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS given (id, until, next_at)
    WHERE hosts.id = given.id AND hosts.next_at = given.until
    RETURNING hosts.id, given.until, given.next_at
  )
  UPDATE queues SET next_at = forward.next_at FROM forward
  WHERE queues.host_id = forward.id AND queues.next_at = forward.until AND queues.ready > 0`;

const SELECT_NEXT_DUE = `
  SELECT (SELECT min(next_at) FROM queues WHERE job_id = $1 AND ready > 0) AS host,
    (SELECT min(due_at) FROM tasks WHERE job_id = $1 AND state = ${WAITING}) AS task`;

const SELECT_NEXT_DUE_APART = `
  SELECT next.host, next.at, (SELECT min(due_at) FROM tasks WHERE job_id = $1 AND state = ${WAITING}) AS "taskAt"
  FROM (SELECT) AS one LEFT JOIN (
    SELECT hosts.host, queues.next_at AS at FROM queues JOIN hosts ON hosts.id = queues.host_id
    WHERE queues.job_id = $1 AND queues.ready > 0 ORDER BY queues.next_at LIMIT 1
  ) AS next ON true`;

/** Each coordinator looks after its own; those of one that is gone are for all. */
const SELECT_EXPIRED = `
  SELECT id FROM batches WHERE job_id = $1 AND state = 'open' AND lease_until < $2
    AND (coordinator = $3 OR NOT ${ALIVE('batches.coordinator')})`;

const SELECT_ORPHANS = `
  SELECT id FROM batches WHERE job_id = $1 AND state = 'open'
    AND (coordinator = $2 OR NOT ${ALIVE('batches.coordinator')})`;

const NOTE_SENT = 'UPDATE batches SET reply_to = $2, permits = $3 WHERE id = $1';

const POSTPONE = `
  UPDATE queues SET next_at = greatest(next_at, closed.until)
  FROM unnest($2::bigint[], $3::bigint[]) AS closed (host_id, until)
  WHERE ${indexHint('closed.host_id')} AND queues.job_id = $1 AND queues.host_id = closed.host_id`;
