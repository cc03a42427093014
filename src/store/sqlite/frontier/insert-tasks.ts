import { BoundedMap, LruMap } from '../../../core/lru.ts';
import type { NewTask } from '../../../core/model.ts';
import type { EnqueueResult } from '../../../ports/store.ts';
import type { PassFacts } from '../../shared/passes.ts';
import { isFinished, READY } from '../../shared/states.ts';
import type { Database } from '../connection/database.ts';
import { type CounterDelta, NO_ID, type QueueDelta, readPass } from '../connection/rows.ts';
import { SeenIndex } from '../dedupe/seen-index.ts';
import { keyOf } from '../dedupe/seen-key.ts';
import { reopenTask, SELECT_VISITED, type VisitedTask } from './reopen.ts';

const HOST_IDS_MAX = 100_000;
const SEEDS_MAX = 1_000;

interface CounterUpdates {
  counters: CounterDelta;
  queues: QueueDelta;
}

/** Adds URLs to the frontier, each exactly once. Lives inside somebody's transaction. */
export class TaskInserter {
  readonly #db: Database;
  readonly #seen: SeenIndex;
  #hostIds = new LruMap<number>(HOST_IDS_MAX);
  readonly #seeds = new BoundedMap<number, number>(SEEDS_MAX);

  constructor(db: Database, seen = new SeenIndex(db)) {
    this.#db = db;
    this.#seen = seen;
  }

  /** After a rollback: what was remembered inside it may not be true. */
  forget(): void {
    this.#hostIds = new LruMap(HOST_IDS_MAX);
    this.#seeds.clear();
    this.#seen.forget();
  }

  /** Before the connection is closed. What cannot be written now, say on a full disk, is written by the next one. */
  close(): void {
    try {
      this.#seen.finishLoad();
    } catch {
      this.forget();
    }
  }

  insert(
    jobId: number,
    tasks: readonly NewTask[],
    options: CounterUpdates & { perTemplateMax: number | null },
  ): EnqueueResult {
    const seed = this.#seed(jobId);
    const templates = new TemplateBudget(this.#db, jobId, options.perTemplateMax);
    const result: EnqueueResult = { accepted: 0, duplicates: 0, dropped: 0 };
    this.#seen.begin();
    let nextId = 0;
    let pass: PassFacts | null = null;
    const keys = tasks.map(({ url }) => keyOf(url, seed));
    const verdicts = this.#seen.judge(jobId, tasks, keys);
    for (const [index, task] of tasks.entries()) {
      const { modifiedAt } = task;
      const slot = this.#seen.slotFor(jobId, task.url, keys[index]!, verdicts[index]);
      if (slot === null) {
        if (modifiedAt !== null) {
          pass ??= readPass(this.#db, jobId);
          if (this.#renew(jobId, task.url, modifiedAt, pass, options)) continue;
        }
        result.duplicates++;
        continue;
      }
      if (task.template !== null && !templates.take(task.template)) {
        result.dropped++;
        continue;
      }
      if (nextId === 0) nextId = this.#nextTaskId(jobId);
      const hostId = this.hostId(task.host);
      this.#db.run(
        INSERT_TASK,
        nextId,
        jobId,
        hostId,
        task.priority,
        task.depth,
        task.hops,
        task.route,
        task.meta && JSON.stringify(task.meta),
        task.url,
        modifiedAt,
        task.referrer ?? null,
      );
      this.#seen.add(slot, nextId);
      options.queues.add(hostId, 1);
      nextId++;
      result.accepted++;
    }
    this.#seen.writeBehind(result.accepted);
    templates.write();
    options.counters.add('accepted', result.accepted);
    options.counters.add('pending', result.accepted);
    options.counters.add('duplicates', result.duplicates);
    options.counters.add('dropped', result.dropped);
    return result;
  }

  knows(jobId: number, url: string): boolean {
    return this.find(jobId, url) !== null;
  }

  /** Id of the task of that URL, or null. */
  find(jobId: number, url: string): number | null {
    return this.#seen.find(jobId, url, this.#seed(jobId));
  }

  hostId(host: string): number {
    let id = this.#hostIds.get(host);
    if (id !== undefined) return id;
    this.#db.run('INSERT OR IGNORE INTO hosts (host) VALUES (?)', host);
    id = this.#db.get<{ id: number }>('SELECT id FROM hosts WHERE host = ?', host)!.id;
    this.#hostIds.set(host, id);
    return id;
  }

  /** A known page has this date. True when that makes it due again: it was visited before, and not in this pass. */
  #renew(
    jobId: number,
    url: string,
    modifiedAt: number,
    pass: PassFacts,
    counterUpdates: CounterUpdates,
  ): boolean {
    const task = this.#db.get<VisitedTask>(`${SELECT_VISITED} WHERE tasks.id = ?`, this.find(jobId, url));
    if (!task) return false;
    if (task.modified_at !== modifiedAt)
      this.#db.run('UPDATE tasks SET modified_at = ? WHERE id = ?', modifiedAt, task.id);
    const { visited_at: visitedAt } = task;
    if (pass.pass === 1 || visitedAt === null || !isFinished(task.state)) return false;
    if (visitedAt >= modifiedAt || visitedAt > pass.startedAt) return false;
    reopenTask(this.#db, this, task, counterUpdates);
    return true;
  }

  #nextTaskId(jobId: number): number {
    const id = this.#seen.lastId + 1;
    this.#db.run('UPDATE jobs SET first_task_id = ? WHERE id = ? AND first_task_id IS NULL', id, jobId);
    return id;
  }

  #seed(jobId: number): number {
    let seed = this.#seeds.get(jobId);
    if (seed === undefined) {
      const row = this.#db.get<{ seed: number }>('SELECT seed FROM jobs WHERE id = ?', jobId);
      if (!row) throw new Error(`no job ${jobId}`);
      seed = row.seed;
      this.#seeds.set(jobId, seed);
    }
    return seed;
  }
}

const INSERT_TASK = `
  INSERT INTO tasks (id, job_id, host_id, state, priority, depth, hops, batch_id, attempt_id, route, meta, url, modified_at, referrer)
  VALUES (?, ?, ?, ${READY}, ?, ?, ?, ${NO_ID}, ${NO_ID}, ?, ?, ?, ?, ?)`;

/** Counts URLs by template; one read and one write for each template of a transaction. */
class TemplateBudget {
  readonly #db: Database;
  readonly #jobId: number;
  readonly #max: number | null;
  readonly #counts = new Map<string, number>();

  constructor(db: Database, jobId: number, max: number | null) {
    this.#db = db;
    this.#jobId = jobId;
    this.#max = max;
  }

  take(template: string): boolean {
    if (this.#max === null) return true;
    let count = this.#counts.get(template);
    if (count === undefined) {
      const row = this.#db.get<{ count: number }>(
        'SELECT count FROM templates WHERE job_id = ? AND template = ?',
        this.#jobId,
        template,
      );
      count = row?.count ?? 0;
    }
    if (count >= this.#max) return false;
    this.#counts.set(template, count + 1);
    return true;
  }

  write(): void {
    for (const [template, count] of this.#counts) {
      this.#db.run(
        `INSERT INTO templates (job_id, template, count) VALUES (?, ?, ?)
         ON CONFLICT (job_id, template) DO UPDATE SET count = excluded.count`,
        this.#jobId,
        template,
        count,
      );
    }
  }
}
