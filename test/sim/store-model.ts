import { TOLERATED } from '../../src/core/bans/bans.ts';
import { balance, type Counters, type TaskState } from '../../src/core/model.ts';
import type { Blame } from '../../src/core/suspicion/suspicion.ts';
import type {
  EnqueueResult,
  LeasedBatch,
  LeaseRequest,
  Settlement,
  SettleResult,
} from '../../src/ports/store.ts';
import { isFinished, stateName } from '../../src/store/shared/states.ts';
import type { Database } from '../../src/store/sqlite/connection/database.ts';
import { hostIn } from './sites.ts';

export class Violation extends Error {}

export function check(holds: boolean, message: () => string): asserts holds {
  if (!holds) throw new Violation(message());
}

interface ModelTask {
  url: string;
  /** Where it is requested, after redirects. */
  host: string;
  state: TaskState;
  batch: number | null;
}

interface Released {
  returned: number;
  dead: number;
  isOthers?: true;
}

type Counted = Pick<Counters, 'accepted' | TaskState>;

const COUNTED = ['accepted', 'done', 'unchanged', 'skipped', 'dead', 'pending', 'leased'] as const;

/** What the store should hold, kept by rules that fit on a page, and compared with what it does hold. */
export class StoreModel {
  readonly #db: Database;
  readonly #jobId: number;
  readonly #urls = new Set<string>();
  /** From their first lease on. */
  readonly #tasks = new Map<number, ModelTask>();
  /** Open batches, with the tasks that they still hold. */
  readonly open = new Map<number, Set<number>>();
  readonly #closed = new Set<number>();
  readonly counts: Counted = {
    accepted: 0,
    done: 0,
    unchanged: 0,
    skipped: 0,
    dead: 0,
    pending: 0,
    leased: 0,
  };
  /** By task: batches with it that were lost for another reason than a page that kills workers. */
  readonly losses = new Map<number, number>();
  /** The same, of batches in which the task was alone: two of them look as if it killed its workers. */
  readonly lossesAlone = new Map<number, number>();
  readonly #alone = new Set<number>();
  readonly #allLosses = new Map<number, number>();
  /** When tasks were done, by URL. */
  readonly doneAt = new Map<string, number>();
  /** When hosts were first noted as reached. */
  readonly reachedAt = new Map<string, number>();
  /** Hosts of which a task is done. */
  readonly answered = new Set<string>();
  /**
   * Hosts of which a page is known to have answered, and tasks that were given up as forbidden there, with no reason to. A
   * redirect is no page: what sends everyone from http to https also stands before sites that refuse every page, and there
   * nothing is to be waited for.
   */
  readonly known = new Set<string>();
  readonly forbidden = new Set<number>();
  /**
   * Several coordinators may work on the job. What one of them takes from the report of a batch whose coordinator is gone,
   * another does not know of a host for which it has a batch out.
   */
  areSeveral = false;
  readonly #knownWhenLent = new Map<number, ReadonlySet<string>>();
  now: () => number = () => 0;
  isPoisoned: (batchId: number) => boolean = () => false;
  /** Whether a worker has the batch, or has reported on it. */
  isAtWorker: (batchId: number) => boolean = () => false;
  isDirty = false;

  constructor(db: Database, jobId: number) {
    this.#db = db;
    this.#jobId = jobId;
  }

  /** Notes what a call to the store has done. */
  observe(name: string, args: unknown[], result: unknown): void {
    if (name === 'enqueue') this.#enqueue(args[1] as { url: string }[], result as EnqueueResult);
    else if (name === 'lease') this.#lease(args[1] as LeaseRequest, result as LeasedBatch[]);
    else if (name === 'settle') this.#settle(args[0] as Settlement, result as SettleResult);
    else if (name === 'release')
      this.#release(args[0] as number, args[1] as { blame: Blame; reason: string }, result as Released);
    else if (name === 'failTasksOfHost') this.#failTasks(result as number);
    else return;
    this.isDirty = true;
  }

  #enqueue(tasks: { url: string }[], result: EnqueueResult): void {
    const accepted = this.#accept(tasks);
    check(
      accepted === result.accepted && tasks.length - accepted === result.duplicates,
      () => `enqueue accepted ${result.accepted} of ${tasks.length} tasks instead of ${accepted}`,
    );
  }

  #accept(tasks: readonly { url: string }[]): number {
    const before = this.#urls.size;
    for (const { url } of tasks) this.#urls.add(url);
    const accepted = this.#urls.size - before;
    this.counts.accepted += accepted;
    this.counts.pending += accepted;
    return accepted;
  }

  #lease(request: LeaseRequest, batches: LeasedBatch[]): void {
    for (const [index, { id, tasks, suspectsOf }] of batches.entries()) {
      if (tasks.length === 0) continue;
      if (suspectsOf === undefined) this.#checkCompany(request.batches[index]!, tasks);
      check(!this.open.has(id) && !this.#closed.has(id), () => `batch ${id} was lent before`);
      this.open.set(id, new Set(tasks.map((task) => task.id)));
      if (tasks.length === 1) this.#alone.add(id);
      if (this.areSeveral) this.#knownWhenLent.set(id, new Set(this.known));
      for (const { id: taskId, url } of tasks) {
        let task = this.#tasks.get(taskId);
        if (!task) {
          check(this.#urls.has(url), () => `task ${taskId} has the URL ${url}, which no one gave`);
          task = { url, host: hostIn(url), state: 'pending', batch: null };
          this.#tasks.set(taskId, task);
        }
        check(
          task.state === 'pending',
          () => `batch ${id} was lent task ${taskId}, which is ${task.state} (batch ${task.batch})`,
        );
        this.#move(task, 'leased', id);
      }
    }
  }

  /** One loss is no evidence: a task that was lost once goes out together with others of its host. */
  #checkCompany({ grants }: LeaseRequest['batches'][number], tasks: LeasedBatch['tasks']): void {
    const [task] = tasks;
    if (tasks.length > 1 || this.#allLosses.get(task!.id) !== 1) return;
    const { hostId } = task!;
    if ((grants.find((grant) => grant.hostId === hostId)?.count ?? 0) < 2) return;
    const others = this.#db.get<{ count: number }>(COUNT_READY, this.#jobId, hostId)!.count;
    check(
      others === 0,
      () => `task ${task!.id} was lost once and goes out alone, though ${others} others are ready`,
    );
  }

  #move(task: ModelTask, state: TaskState, batch: number | null): void {
    this.counts[task.state]--;
    this.counts[state]++;
    task.state = state;
    task.batch = batch;
  }

  #settle(settlement: Settlement, result: SettleResult): void {
    const held = this.open.get(settlement.batchId);
    check(
      result.applied === (held !== undefined),
      () => `a report of batch ${settlement.batchId} was ${result.applied ? '' : 'not '}applied`,
    );
    if (!held) return;
    for (const { host, reachedAt } of settlement.hosts) {
      if (reachedAt != null && !this.reachedAt.has(host)) this.reachedAt.set(host, this.now());
    }
    // Cleared: the known page answered after others were refused, and no other page has since. Then a page that is refused for
    // the second time is forbidden as far as anyone can tell; only the known page could, and asking it before each of them
    // would cost a request for every forbidden page. It is asked again after `tolerated` refusals in a row, so of a ban that
    // begins just then fewer pages than that die, all of them refused twice.
    const isCleared = (host: string) =>
      settlement.hosts.some((change) => change.host === host && (change.ban?.tolerated ?? 0) > TOLERATED);
    for (const change of settlement.tasks) {
      if (!held.delete(change.id)) continue;
      const task = this.#tasks.get(change.id)!;
      this.#move(task, change.to, null);
      if (change.moveTo) task.host = change.moveTo.host;
      if (change.to === 'done') {
        this.doneAt.set(task.url, this.now());
        this.answered.add(task.host);
        if (change.outcome !== 'redirected') this.known.add(task.host);
      }
      if (
        change.code === 'forbidden' &&
        change.to === 'dead' &&
        (this.#knownWhenLent.get(settlement.batchId) ?? this.known).has(task.host) &&
        !isCleared(task.host)
      )
        this.forbidden.add(change.id);
      this.#accept(change.links);
    }
    this.#accept(settlement.links ?? []);
    if (!settlement.final) return;
    for (const id of held) this.#move(this.#tasks.get(id)!, 'pending', null);
    this.#close(settlement.batchId);
  }

  #close(batchId: number): void {
    this.open.delete(batchId);
    this.#closed.add(batchId);
  }

  #release(
    batchId: number,
    { blame, reason }: { blame: Blame; reason: string },
    { returned, dead, isOthers }: Released,
  ): void {
    if (isOthers) return;
    const held = this.open.get(batchId) ?? new Set();
    check(
      reason !== 'the coordinator ended' || held.size === 0 || !this.isAtWorker(batchId),
      () => `batch ${batchId} was taken back, though its worker outlived the coordinator`,
    );
    check(
      held.size === returned + dead,
      () => `${returned} + ${dead} tasks of batch ${batchId} came back instead of ${held.size}`,
    );
    for (const id of held) {
      const state = this.#stateOf(id);
      check(state === 'pending' || state === 'dead', () => `task ${id} of a lost batch is ${state}`);
      this.#move(this.#tasks.get(id)!, state, null);
      if (blame !== 'none' && blame !== 'coordinator')
        this.#allLosses.set(id, (this.#allLosses.get(id) ?? 0) + 1);
      if (blame === 'none' || this.isPoisoned(batchId)) continue;
      this.losses.set(id, (this.losses.get(id) ?? 0) + 1);
      if (this.#alone.has(batchId)) this.lossesAlone.set(id, (this.lossesAlone.get(id) ?? 0) + 1);
    }
    if (this.open.has(batchId)) this.#close(batchId);
  }

  #stateOf(id: number): TaskState {
    return stateName(this.#db.get<{ state: number }>('SELECT state FROM tasks WHERE id = ?', id)!.state);
  }

  /** Only tasks that wait may die with their host. Those that were never lent are not known one by one. */
  #failTasks(count: number): void {
    this.counts.pending -= count;
    this.counts.dead += count;
    for (const [id, task] of this.#tasks)
      if (task.state === 'pending' && this.#stateOf(id) === 'dead') task.state = 'dead';
  }

  /** After each step: the counters balance and are what the model counts. */
  compareCounters(): void {
    if (!this.isDirty) return;
    this.isDirty = false;
    const row = this.#db.get<Counters>(SELECT_COUNTERS, this.#jobId)!;
    check(balance(row) === 0, () => `the counters do not balance: ${JSON.stringify(row)}`);
    for (const name of COUNTED)
      check(
        row[name] === this.counts[name],
        () => `${name} is ${row[name]} in the store and ${this.counts[name]} in the model`,
      );
  }

  /** Now and then, and at the end: the counters are what a count of the rows gives, and each URL is one task. */
  recount(): void {
    const rows = this.#db.all<{ state: number; count: number; urls: number }>(SELECT_STATES, this.#jobId);
    const counted = { ...this.counts };
    for (const name of COUNTED) counted[name] = 0;
    for (const { state, count } of rows) {
      counted[stateName(state)] += count;
      counted.accepted += count;
    }
    for (const name of COUNTED)
      check(
        counted[name] === this.counts[name],
        () => `${name} is ${this.counts[name]}, but ${counted[name]} rows are`,
      );
    const { urls } = this.#db.get<{ urls: number }>(SELECT_URLS, this.#jobId)!;
    check(urls === counted.accepted, () => `${counted.accepted} tasks have ${urls} URLs`);
    const wrong = this.#db.all<{ host: string; ready: number; rows: number }>(SELECT_QUEUES, this.#jobId);
    check(wrong.length === 0, () => `ready tasks are miscounted: ${JSON.stringify(wrong[0])}`);
    const adrift = this.#db.all<{ id: number }>(SELECT_ADRIFT, this.#jobId);
    check(adrift.length === 0, () => `task ${adrift[0]!.id} is lent to a batch that is not open`);
  }

  /** What became of each task. */
  fates(): { id: number; url: string; state: TaskState; code: string | null; isOver: boolean }[] {
    return this.#db
      .all<{ id: number; url: string; state: number; code: string | null }>(SELECT_FATES, this.#jobId)
      .map((row) => ({ ...row, state: stateName(row.state), isOver: isFinished(row.state) }));
  }
}

const COUNT_READY =
  'SELECT count(*) AS count FROM tasks WHERE job_id = ? AND host_id = ? AND state = 2 AND losses < 2';
const SELECT_COUNTERS = `SELECT ${COUNTED.join(', ')} FROM counters WHERE job_id = ?`;
const SELECT_STATES = 'SELECT state, count(*) AS count FROM tasks WHERE job_id = ? GROUP BY state';
const SELECT_URLS = 'SELECT count(DISTINCT url) AS urls FROM tasks WHERE job_id = ?';
const SELECT_QUEUES = `
  SELECT host_id AS host, ready,
    (SELECT count(*) FROM tasks WHERE tasks.job_id = queues.job_id AND tasks.host_id = queues.host_id AND state = 2) AS rows
  FROM queues WHERE job_id = ? AND ready <> rows`;
const SELECT_ADRIFT = `
  SELECT id FROM tasks WHERE job_id = ? AND state = 3
    AND NOT EXISTS (SELECT 1 FROM batches WHERE batches.id = tasks.batch_id AND batches.state = 'open')`;
const SELECT_FATES = 'SELECT id, url, state, code FROM tasks WHERE job_id = ?';
