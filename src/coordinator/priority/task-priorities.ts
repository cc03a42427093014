import type { JobSpec } from '../../core/job-schema/job.ts';
import {
  addPriorityRule,
  compilePriorities,
  type PriorityOf,
  type PriorityRule,
} from '../../core/priority/priority.ts';
import type { Job, Store } from '../../ports/store.ts';

/** The priorities that people gave to tasks of a running job: new tasks get them, too. */
export class TaskPriorities {
  readonly #spec: Pick<JobSpec, 'routes'>;
  #rules: readonly PriorityRule[] = [];
  #priorityOf: PriorityOf = () => null;

  constructor({ spec, priorities }: Pick<Job, 'spec' | 'priorities'>) {
    this.#spec = spec;
    this.update(priorities);
  }

  update(rules: readonly PriorityRule[]): void {
    if (JSON.stringify(rules) === JSON.stringify(this.#rules)) return;
    this.#rules = rules;
    this.#priorityOf = compilePriorities(rules, this.#spec);
  }

  /** Gives tasks that are about to be written what rules say of them. */
  apply(tasks: readonly { url: string; route: string | null; priority: number }[]): void {
    if (this.#rules.length === 0) return;
    for (const task of tasks) task.priority = this.#priorityOf(task) ?? task.priority;
  }
}

/** Tasks looked at in one transaction: what runs the job waits no longer than for a report. */
const STEP_TASKS = 2_000;

/**
 * Changes the priority of the tasks of a job that wait, and of those to come. Another process may be running the job:
 * `noticed` ends when that one knows of the rule. Tasks that it wrote before are looked at then.
 */
export async function changePriority(
  store: Store,
  job: Pick<Job, 'id' | 'spec' | 'priorities'>,
  rule: PriorityRule,
  noticed: () => Promise<void>,
): Promise<number> {
  await store.jobs.update(job.id, { priorities: addPriorityRule(job.priorities, rule) });
  const priorityOf = compilePriorities([rule], job.spec);
  let changed = 0;
  let after = 0;
  const walk = async () => {
    for (let isDone = false; !isDone; ) {
      const step = await store.frontier.setPriorities(job.id, { after, limit: STEP_TASKS, priorityOf });
      changed += step.changed;
      ({ after, isDone } = step);
    }
  };
  await walk();
  await noticed();
  await walk();
  return changed;
}
