import { fingerprint } from '../../core/fingerprint.ts';
import { LIMITS } from '../../core/limits.ts';
import type { NewTask } from '../../core/model.ts';
import { RecentStrings } from '../../core/recent.ts';
import type { EnqueueResult } from '../../ports/store.ts';
import type { Database } from './database.ts';
import { isFinished, reopenTask, SELECT_VISITED, type VisitedTask } from './reopen.ts';
import { type CounterDelta, NO_ID, type PassFacts, type QueueDelta, READY, readPass } from './rows.ts';

const HOST_IDS_MAX = 100_000;
/** Prefilters are kept for this many jobs at once. */
const JOBS_REMEMBERED_MAX = 8;

interface Books {
  counters: CounterDelta;
  queues: QueueDelta;
}

interface JobMemory {
  seed: number;
  recent: RecentStrings;
}

/** Adds URLs to the frontier, each exactly once. Lives inside somebody's transaction. */
export class TaskInserter {
  readonly #db: Database;
  #hostIds = new Map<string, number>();
  #jobs = new Map<number, JobMemory>();

  constructor(db: Database) {
    this.#db = db;
  }

  /** After a rollback: what was remembered inside it may not be true. */
  forget(): void {
    this.#hostIds = new Map();
    this.#jobs = new Map();
  }

  insert(
    jobId: number,
    tasks: readonly NewTask[],
    options: Books & { perTemplateMax: number | null },
  ): EnqueueResult {
    const memory = this.#memory(jobId);
    const templates = new TemplateBudget(this.#db, jobId, options.perTemplateMax);
    const result: EnqueueResult = { accepted: 0, duplicates: 0, dropped: 0 };
    let nextId = 0;
    let pass: PassFacts | null = null;
    for (const task of tasks) {
      const { modifiedAt } = task;
      // A date must reach the task itself, so it goes past the prefilter.
      if (modifiedAt === null && memory.recent.has(task.url)) {
        result.duplicates++;
        continue;
      }
      const slot = this.#freeSlot(jobId, task.url, memory.seed);
      if (slot === null) {
        memory.recent.add(task.url);
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
      );
      this.#db.run('INSERT INTO seen (fingerprint, task_id) VALUES (?, ?)', slot, nextId);
      options.queues.add(hostId, 1);
      memory.recent.add(task.url);
      nextId++;
      result.accepted++;
    }
    templates.write();
    options.counters.add('accepted', result.accepted);
    options.counters.add('pending', result.accepted);
    options.counters.add('duplicates', result.duplicates);
    options.counters.add('dropped', result.dropped);
    return result;
  }

  knows(jobId: number, url: string): boolean {
    const memory = this.#memory(jobId);
    return memory.recent.has(url) || this.find(jobId, url) !== null;
  }

  /** Id of the task of that URL, or null. */
  find(jobId: number, url: string): number | null {
    const { seed } = this.#memory(jobId);
    for (let slot = fingerprint(url, authorityOf(url), seed); ; slot++) {
      const row = this.#db.get<SeenRow>(FIND_SEEN, slot);
      if (!row) return null;
      if (row.url === url && row.job_id === jobId) return row.id;
    }
  }

  hostId(host: string): number {
    let id = this.#hostIds.get(host);
    if (id !== undefined) return id;
    if (this.#hostIds.size >= HOST_IDS_MAX) this.#hostIds.clear();
    this.#db.run('INSERT OR IGNORE INTO hosts (host) VALUES (?)', host);
    id = this.#db.get<{ id: number }>('SELECT id FROM hosts WHERE host = ?', host)!.id;
    this.#hostIds.set(host, id);
    return id;
  }

  /** The first unused fingerprint from the URL's own on, or null when the URL is known. */
  #freeSlot(jobId: number, url: string, seed: number): number | null {
    for (let slot = fingerprint(url, authorityOf(url), seed); ; slot++) {
      const row = this.#db.get<SeenRow>(FIND_SEEN, slot);
      if (!row) return slot;
      if (row.url === url && row.job_id === jobId) return null;
    }
  }

  /** A known page has this date. True when that makes it due again: it was visited before, and not in this pass. */
  #renew(jobId: number, url: string, modifiedAt: number, pass: PassFacts, books: Books): boolean {
    const task = this.#db.get<VisitedTask>(`${SELECT_VISITED} WHERE tasks.id = ?`, this.find(jobId, url));
    if (!task) return false;
    if (task.modified_at !== modifiedAt)
      this.#db.run('UPDATE tasks SET modified_at = ? WHERE id = ?', modifiedAt, task.id);
    const { visited_at: visitedAt } = task;
    if (pass.pass === 1 || visitedAt === null || !isFinished(task.state)) return false;
    if (visitedAt >= modifiedAt || visitedAt > pass.startedAt) return false;
    reopenTask(this.#db, this, task, books);
    return true;
  }

  #nextTaskId(jobId: number): number {
    const id = this.#db.get<{ id: number }>('SELECT coalesce(max(id), 0) + 1 AS id FROM tasks')!.id;
    this.#db.run('UPDATE jobs SET first_task_id = ? WHERE id = ? AND first_task_id IS NULL', id, jobId);
    return id;
  }

  #memory(jobId: number): JobMemory {
    let memory = this.#jobs.get(jobId);
    if (!memory) {
      const row = this.#db.get<{ seed: number }>('SELECT seed FROM jobs WHERE id = ?', jobId);
      if (!row) throw new Error(`no job ${jobId}`);
      if (this.#jobs.size >= JOBS_REMEMBERED_MAX) this.#jobs.clear();
      memory = { seed: row.seed, recent: new RecentStrings(LIMITS.recentUrlsMax) };
      this.#jobs.set(jobId, memory);
    }
    return memory;
  }
}

interface SeenRow {
  id: number;
  job_id: number;
  url: string;
}

/** Host and port of a normalised URL. Not the host that rates are counted by, which a job may choose. */
function authorityOf(url: string): string {
  const start = url.indexOf('//') + 2;
  return url.slice(start, url.indexOf('/', start));
}

const FIND_SEEN = `
  SELECT tasks.id, tasks.job_id, tasks.url FROM seen JOIN tasks ON tasks.id = seen.task_id WHERE seen.fingerprint = ?`;

const INSERT_TASK = `
  INSERT INTO tasks (id, job_id, host_id, state, priority, depth, hops, batch_id, attempt_id, route, meta, url, modified_at)
  VALUES (?, ?, ?, ${READY}, ?, ?, ?, ${NO_ID}, ${NO_ID}, ?, ?, ?, ?)`;

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
