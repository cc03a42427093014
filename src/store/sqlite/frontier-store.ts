import type { NewTask } from '../../core/model.ts';
import type {
  AdoptedBatch,
  DueHost,
  DueOptions,
  EnqueueResult,
  Frontier,
  HostHealth,
  LeasedBatch,
  LeasedTask,
  LeaseRequest,
  PacedHost,
  ReleaseOptions,
  Settlement,
  SettleResult,
  SourcePosition,
} from '../../ports/store.ts';
import { type DueColumns, type PacedColumns, pacedByEnded, toDue, toPaced } from '../shared/host-rows.ts';
import { RUN_ON } from '../shared/job-rows.ts';
import { type ReadyColumns, type SentColumns, toAdopted } from '../shared/leased-rows.ts';
import { LEASED, READY, WAITING } from '../shared/states.ts';
import { isOthersTurn, TURN_MS } from '../shared/turns.ts';
import type { Database } from './connection/database.ts';
import { CounterDelta, followHost, QueueDelta, readPass } from './connection/rows.ts';
import { failTasksOfHostInTransaction, releaseInTransaction } from './frontier/give-up.ts';
import type { TaskInserter } from './frontier/insert-tasks.ts';
import { leaseBatch } from './frontier/lease.ts';
import { reopenInTransaction, revisitInTransaction } from './frontier/reopen.ts';
import { setPrioritiesInTransaction } from './frontier/set-priorities.ts';
import { writeSource } from './frontier/write-source.ts';
import { settleInTransaction } from './settle/settle.ts';

const PROMOTED_AT_ONCE = 2_000;

export class SqliteFrontier implements Frontier {
  readonly #db: Database;
  readonly #inserter: TaskInserter;
  /** Jobs of this process. */
  readonly #atWork: ReadonlySet<number>;

  constructor(db: Database, inserter: TaskInserter, atWork: ReadonlySet<number>) {
    this.#db = db;
    this.#inserter = inserter;
    this.#atWork = atWork;
  }

  async enqueue(
    jobId: number,
    tasks: NewTask[],
    options: Parameters<Frontier['enqueue']>[2],
  ): Promise<EnqueueResult> {
    return this.#write(() => {
      const counters = new CounterDelta();
      const queues = new QueueDelta();
      const result = this.#inserter.insert(jobId, tasks, {
        perTemplateMax: options.perTemplateMax,
        counters,
        queues,
      });
      const { source } = options;
      if (source) {
        const before = this.#db.get<{ rejected: number }>(
          'SELECT rejected FROM sources WHERE job_id = ? AND source = ?',
          jobId,
          source.source,
        );
        counters.add('rejected', source.rejected - (before?.rejected ?? 0));
        writeSource(this.#db, jobId, source);
      }
      counters.add('rejected', options.added?.rejected ?? 0);
      counters.write(this.#db, jobId);
      queues.write(this.#db, jobId);
      if (options.added && result.accepted > 0) this.#db.run(`${RUN_ON}?`, jobId);
      return result;
    });
  }

  async reopen(
    jobId: number,
    options: Parameters<Frontier['reopen']>[1],
  ): Promise<{ reopened: number; source: SourcePosition }> {
    return this.#write(() => reopenInTransaction(this.#db, this.#inserter, jobId, options));
  }

  async revisit(jobId: number, taskId: number): Promise<boolean> {
    return this.#write(() => revisitInTransaction(this.#db, this.#inserter, jobId, taskId));
  }

  async dueHosts(jobId: number, { now, before, limit, overtakes = [] }: DueOptions): Promise<DueHost[]> {
    this.#promote(jobId, now);
    const rows =
      this.#atWork.size > 1
        ? this.#db.all<DueColumns>(
            SELECT_DUE_IN_TURN,
            jobId,
            before,
            limit,
            now - TURN_MS,
            JSON.stringify([...this.#atWork]),
            JSON.stringify(overtakes),
          )
        : this.#db.all<DueColumns>(SELECT_DUE, jobId, before, limit);
    const due = rows.filter((row) => row.nextAt <= before).map(toDue);
    // Another job has used the host since: remember that in this job's queue.
    for (const row of rows) {
      if (row.nextAt > before)
        this.#db.run(
          'UPDATE queues SET next_at = ? WHERE job_id = ? AND host_id = ?',
          row.nextAt,
          jobId,
          row.id,
        );
    }
    return due;
  }

  async hostsNamed(hosts: readonly string[]): Promise<DueHost[]> {
    return this.#write(() =>
      hosts.map((host) => toDue(this.#db.get<DueColumns>(SELECT_HOST, this.#inserter.hostId(host))!)),
    );
  }

  async lease(jobId: number, request: LeaseRequest): Promise<LeasedBatch[]> {
    return this.#write(() => {
      const counters = new CounterDelta();
      const queues = new QueueDelta();
      const job = { id: jobId, pass: readPass(this.#db, jobId).pass, now: request.now };
      let nextId = this.#db.get<{ id: number }>('SELECT coalesce(max(id), 0) + 1 AS id FROM batches')!.id;
      const leased: LeasedBatch[] = [];
      const apart: LeasedBatch[] = [];
      const known = new Map<number, HostHealth>();
      const healthOf = (tasks: readonly LeasedTask[], piggybacked: readonly number[]) => {
        const ids = new Set([...tasks.map(({ hostId }) => hostId), ...piggybacked]);
        return [...ids].map((id) => {
          const health = known.get(id) ?? toDue(this.#db.get<DueColumns>(SELECT_HOST, id)!);
          known.set(id, health);
          return health;
        });
      };
      let suspectBatches = request.suspectBatchesMax ?? Number.POSITIVE_INFINITY;
      const lend = (planned: Planned, grants: Planned['grants'], suspects: boolean) => {
        const id = nextId;
        const { tasks, piggybacked, unused } = leaseBatch(this.#db, job, id, grants, { queues, suspects });
        if (tasks.length > 0) {
          nextId++;
          const until = request.now + planned.leaseMs;
          const ids = JSON.stringify(tasks.map((task) => task.id));
          this.#db.run(INSERT_BATCH, id, jobId, tasks.length, tasks.length, ids, request.now, until);
          counters.add('pending', -tasks.length);
          counters.add('leased', tasks.length);
        }
        const hosts = healthOf(tasks, piggybacked);
        return { lent: { id, tasks, hosts, ...(piggybacked.length > 0 ? { piggybacked } : {}) }, unused };
      };
      // Before any of them is lent: several grants of a host may be used at the same time.
      const frees = request.batches.map(({ grants }) => grants.filter((grant) => this.#isFree(grant)));
      for (const [index, planned] of request.batches.entries()) {
        const free = frees[index]!;
        const { lent, unused } = lend(planned, free, false);
        leased.push(lent);
        const left = unused.filter(({ hostId }) => this.#db.get(HAS_READY, jobId, hostId));
        if (left.length === 0) continue;
        if (suspectBatches === 0) {
          leased[index] = { ...lent, waiting: left.map(({ hostId }) => hostId) };
          continue;
        }
        suspectBatches--;
        const piggybacked = lent.tasks.length > 0 ? [] : free.filter(({ count }) => count === 0);
        apart.push({ ...lend(planned, [...left, ...piggybacked], true).lent, suspectsOf: index });
      }
      counters.write(this.#db, jobId);
      queues.write(this.#db, jobId);
      return [...leased, ...apart];
    });
  }

  async settle(settlement: Settlement): Promise<SettleResult> {
    return this.#write(() => settleInTransaction(this.#db, this.#inserter, settlement));
  }

  async release(batchId: number, options: ReleaseOptions): Promise<{ returned: number; dead: number }> {
    return this.#write(() => releaseInTransaction(this.#db, batchId, options));
  }

  async noteSent(batchId: number, { replyTo, handover }: Sent): Promise<void> {
    this.#db.run(NOTE_SENT, replyTo, handover && JSON.stringify(handover), batchId);
  }

  /** There is no other coordinator that could have it. */
  async adopt(jobId: number, batchId: number): Promise<AdoptedBatch | null> {
    const batch = this.#db.get<SentColumns>(SELECT_SENT, batchId, jobId);
    if (!batch) return null;
    const ids = JSON.parse(batch.task_ids) as number[];
    const rows = ids.flatMap(
      (id) => this.#db.get<ReadyColumns & { host_id: number }>(SELECT_HELD, id, batchId) ?? [],
    );
    return toAdopted(batchId, batch, rows);
  }

  async expired(jobId: number, now: number): Promise<number[]> {
    return this.#db
      .all<{ id: number }>(
        "SELECT id FROM batches WHERE job_id = ? AND state = 'open' AND lease_until < ?",
        jobId,
        now,
      )
      .map((row) => row.id);
  }

  async orphans(jobId: number): Promise<number[]> {
    return this.expired(jobId, Number.MAX_SAFE_INTEGER);
  }

  /** There are no others. */
  async abandoned(): Promise<number[]> {
    return [];
  }

  async nextDueAt(jobId: number): Promise<number | null> {
    const row = this.#db.get<{ host: number | null; task: number | null }>(SELECT_NEXT_DUE, jobId, jobId);
    const times = [row?.host, row?.task].filter((at) => at !== null && at !== undefined);
    return times.length === 0 ? null : Math.min(...times);
  }

  async nextDue(jobId: number): ReturnType<Frontier['nextDue']> {
    const host = this.#db.get<{ host: string; at: number }>(SELECT_NEXT_HOST, jobId);
    const task = this.#db.get<{ at: number | null }>(SELECT_NEXT_TASK, jobId);
    return { host: host ?? null, taskAt: task?.at ?? null };
  }

  async failTasksOfHost(jobId: number, options: Parameters<Frontier['failTasksOfHost']>[1]): Promise<number> {
    return this.#write(() =>
      failTasksOfHostInTransaction(this.#db, jobId, this.#inserter.hostId(options.host), options),
    );
  }

  async postpone(jobId: number, hosts: { hostId: number; until: number }[]): Promise<void> {
    this.#write(() => {
      for (const { hostId, until } of hosts)
        this.#db.run(
          'UPDATE queues SET next_at = max(next_at, ?) WHERE job_id = ? AND host_id = ?',
          Math.ceil(until),
          jobId,
          hostId,
        );
    });
  }

  async pacedHosts(jobId: number, options: Parameters<Frontier['pacedHosts']>[1]): Promise<PacedHost[]> {
    const { gapOf, after, limit } = options;
    return this.#db.all<PacedColumns>(SELECT_PACED[gapOf], jobId, after, limit).map(toPaced);
  }

  async bringForward(hosts: readonly { hostId: number; from: number; nextAt: number }[]): Promise<void> {
    this.#write(() => {
      for (const { hostId, from, nextAt } of hosts)
        if (this.#db.run(BRING_FORWARD, nextAt, hostId, from) > 0)
          followHost(this.#db, hostId, { nextAt, takenUntil: from });
    });
  }

  async setPriorities(jobId: number, options: Parameters<Frontier['setPriorities']>[1]) {
    return this.#db.transaction(() => setPrioritiesInTransaction(this.#db, jobId, options));
  }

  async knows(jobId: number, url: string): Promise<boolean> {
    return this.#inserter.knows(jobId, url);
  }

  /** Between plan and lease a report may have sent the host to rest. */
  #isFree({ hostId, startAt }: LeaseRequest['batches'][number]['grants'][number]): boolean {
    if (startAt === undefined) return true;
    const host = this.#db.get<{ next_at: number }>('SELECT next_at FROM hosts WHERE id = ?', hostId);
    return host !== undefined && host.next_at <= startAt;
  }

  /** Tasks whose pause is over join the ready ones. */
  #promote(jobId: number, now: number): void {
    const due = this.#db.all<{ id: number; host_id: number }>(SELECT_WAITING, jobId, now, PROMOTED_AT_ONCE);
    if (due.length === 0) return;
    this.#write(() => {
      const queues = new QueueDelta();
      for (const row of due) {
        if (this.#db.run(PROMOTE, row.id) > 0) queues.add(row.host_id, 1);
      }
      queues.write(this.#db, jobId);
    });
  }

  #write<T>(work: () => T): T {
    try {
      return this.#db.transaction(work);
    } catch (error) {
      this.#inserter.forget();
      throw error;
    }
  }
}

type Sent = Parameters<Frontier['noteSent']>[1];

type Planned = LeaseRequest['batches'][number];

/** With numbers in it: a bound state would be compared with those of the partial indexes, and compiled anew each time. */
const PROMOTE = `UPDATE tasks SET state = ${READY} WHERE id = ? AND state = ${WAITING}`;

const HOST_COLUMNS = `
  hosts.id, hosts.host, hosts.next_at AS nextAt, hosts.crawl_delay_ms AS crawlDelayMs,
  hosts.failures_in_row AS failuresInRow, hosts.rests, hosts.pace, hosts.ban,
  hosts.reached_at AS reachedAt`;

const SELECT_HOST = `SELECT 0 AS ready, ${HOST_COLUMNS} FROM hosts WHERE id = ?`;

const SELECT_DUE = `
  SELECT queues.ready, ${HOST_COLUMNS}
  FROM queues JOIN hosts ON hosts.id = queues.host_id
  WHERE queues.job_id = ? AND queues.ready > 0 AND queues.next_at <= ? ORDER BY queues.next_at LIMIT ?`;

const HAS_READY = `SELECT 1 FROM tasks WHERE job_id = ? AND host_id = ? AND state = ${READY} LIMIT 1`;

const SELECT_DUE_IN_TURN = `
  SELECT queues.ready, ${HOST_COLUMNS}
  FROM queues JOIN hosts ON hosts.id = queues.host_id
  WHERE queues.job_id = ?1 AND queues.ready > 0 AND queues.next_at <= ?2
    AND NOT (hosts.next_at > ?4
      AND ${isOthersTurn({
        before: '?2',
        isAtWork: 'other.job_id IN (SELECT value FROM json_each(?5))',
        isOvertaken: 'other.job_id IN (SELECT value FROM json_each(?6))',
        turnAgo: '?4',
      })})
  ORDER BY queues.next_at LIMIT ?3`;

const SELECT_WAITING = `SELECT id, host_id FROM tasks WHERE job_id = ? AND state = ${WAITING} AND due_at <= ? LIMIT ?`;

const SELECT_NEXT_DUE = `
  SELECT (SELECT min(next_at) FROM queues WHERE job_id = ? AND ready > 0) AS host,
    (SELECT min(due_at) FROM tasks WHERE job_id = ? AND state = ${WAITING}) AS task`;

const selectPaced = (isPacer: string) => `
  SELECT later.ready, ${HOST_COLUMNS}, hosts.last_sent_at AS lastSentAt
  FROM (SELECT host_id, ready FROM queues WHERE job_id = ?1 AND ready > 0 AND next_at > ?2 ORDER BY next_at LIMIT ?3) AS later
    JOIN hosts ON hosts.id = later.host_id
  WHERE hosts.next_at = hosts.paced_until AND ${isPacer} AND hosts.last_sent_at IS NOT NULL`;

const SELECT_PACED = {
  'this-job': selectPaced('hosts.paced_by = ?1'),
  'ended-jobs': selectPaced(pacedByEnded('?1')),
};

const BRING_FORWARD = 'UPDATE hosts SET next_at = ?1, paced_until = ?1 WHERE id = ?2 AND next_at = ?3';

const SELECT_NEXT_HOST = `
  SELECT hosts.host, queues.next_at AS at FROM queues JOIN hosts ON hosts.id = queues.host_id
  WHERE queues.job_id = ? AND queues.ready > 0 ORDER BY queues.next_at LIMIT 1`;

const SELECT_NEXT_TASK = `SELECT min(due_at) AS at FROM tasks WHERE job_id = ? AND state = ${WAITING}`;

const NOTE_SENT = 'UPDATE batches SET reply_to = ?, permits = ? WHERE id = ?';

const SELECT_SENT = `
  SELECT reply_to, permits, lease_until, task_ids FROM batches
  WHERE id = ? AND job_id = ? AND state = 'open' AND reply_to IS NOT NULL`;

const SELECT_HELD = `
  SELECT id, host_id, url, at_url, depth, route, attempts, hops, losses, throttles, meta, referrer FROM tasks
  WHERE id = ? AND state = ${LEASED} AND batch_id = ?`;

const INSERT_BATCH = `
  INSERT INTO batches (id, job_id, state, size, unsettled, task_ids, leased_at, lease_until)
  VALUES (?, ?, 'open', ?, ?, ?, ?, ?)`;
