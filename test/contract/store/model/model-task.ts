import type { TaskChange } from '../../../../src/ports/store.ts';

/** One task as the model sees it. */
export class ModelTask {
  readonly url: string;
  readonly priority: number;
  /** In which all tasks of all jobs came. */
  readonly order: number;
  host: string;
  state: 'ready' | 'waiting' | 'leased' | 'done' | 'unchanged' | 'skipped' | 'dead' = 'ready';
  dueAt = 0;
  attempts = 0;
  losses = 0;
  crashes = 0;
  visitedAt: number | null = null;
  modifiedAt: number | null;
  page: { sha256: string; outcome: string } | null = null;

  constructor(url: string, order: number, priority: number, modifiedAt: number | null) {
    this.url = url;
    this.host = new URL(url).host;
    this.order = order;
    this.priority = priority;
    this.modifiedAt = modifiedAt;
  }

  get isFinished(): boolean {
    return this.state === 'done' || this.state === 'unchanged' || this.isLost;
  }

  get isLost(): boolean {
    return this.state === 'skipped' || this.state === 'dead';
  }

  /** What the next visit is compared with. */
  get comparedWith(): string | null {
    return this.page?.outcome === 'fetched' || this.page?.outcome === 'unchanged' ? this.page.sha256 : null;
  }

  apply(change: TaskChange, now: number, pass: number): void {
    if (change.countsAsAttempt) {
      this.attempts++;
      this.losses = 0;
      this.crashes = 0;
    }
    if (change.moveTo) this.host = change.moveTo.host;
    if (change.trace) {
      this.visitedAt = change.trace.startedAt;
      this.#see(change, pass);
    }
    this.dueAt = change.dueAt ?? 0;
    if (change.to !== 'pending') this.state = change.to;
    else this.state = this.dueAt > now ? 'waiting' : 'ready';
  }

  #see({ page, outcome, moveTo }: TaskChange, pass: number): void {
    const keeps = outcome === 'unchanged' ? page === null : pass > 1 && (page === null || moveTo !== null);
    if (keeps && this.page !== null && this.page.outcome !== 'redirected') return;
    this.page = page && { sha256: page.sha256, outcome };
  }

  reopen(): void {
    Object.assign(this, { state: 'ready', attempts: 0, losses: 0, crashes: 0, dueAt: 0 });
    this.host = new URL(this.url).host;
  }
}

/** The present pass of a job. */
export class ModelPass {
  readonly number: number;
  readonly startedAt: number;
  readonly lastOrder: number;
  isReopened = false;

  constructor(number: number, startedAt: number, lastOrder: number) {
    this.number = number;
    this.startedAt = startedAt;
    this.lastOrder = lastOrder;
  }

  /** Whether the tasks of earlier passes that are reopened have this one among them. */
  reopens(task: ModelTask, visitedBefore: number): boolean {
    if (!task.isFinished || task.order > this.lastOrder) return false;
    if (task.visitedAt === null) return true;
    if (task.visitedAt >= visitedBefore) return false;
    return task.isLost || task.modifiedAt === null || task.modifiedAt > task.visitedAt;
  }

  /** Notes a date; true when it makes the task due. */
  renew(task: ModelTask, modifiedAt: number): boolean {
    task.modifiedAt = modifiedAt;
    const { visitedAt } = task;
    if (this.number === 1 || !task.isFinished || visitedAt === null) return false;
    if (visitedAt >= modifiedAt || visitedAt > this.startedAt) return false;
    task.reopen();
    return true;
  }
}
