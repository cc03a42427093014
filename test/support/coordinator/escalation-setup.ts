import {
  type EscalatedBatch,
  type EscalationPolicy,
  openEscalationPolicy,
} from '../../../src/coordinator/escalation/escalation-policy.ts';
import type { BatchTask } from '../../../src/core/batch/batch.ts';
import type { Outcome } from '../../../src/core/batch/outcome.ts';
import type { FetchMethod } from '../../../src/core/escalation/escalation.ts';
import type { FailureCode } from '../../../src/core/failures.ts';
import type { JobInput } from '../../../src/core/job-schema/job.ts';
import { pageOf, specOf, T0, traceOf } from '../fixtures.ts';

export const HOST = 'a.example';
type Site = (fetchMethod: FetchMethod, task: BatchTask) => FailureCode | null;

/** A job against a pretended site: gives out tasks, lets the site answer, and learns. */
export class EscalationSetup {
  policy: EscalationPolicy;
  now = T0;
  chance = 0.5;
  readonly #site: Site;
  readonly #input: Partial<JobInput>;
  #lastId = 0;

  constructor(input: Partial<JobInput>, site: Site) {
    this.#input = input;
    this.#site = site;
    this.policy = this.#open();
  }

  #open(): EscalationPolicy {
    return openEscalationPolicy(specOf(this.#input), 'shop', () => this.chance)!;
  }

  restart(): void {
    const rows = JSON.parse(JSON.stringify(this.policy.takeChanges()));
    this.policy = this.#open();
    this.policy.load(rows);
  }

  tasks(count: number, path = '/p/'): BatchTask[] {
    return Array.from({ length: count }, () => {
      const id = ++this.#lastId;
      return {
        id,
        url: `https://${HOST}${path}${id}`,
        permit: 0,
        depth: 0,
        route: null,
        attempt: 1,
        hops: 0,
        meta: null,
        lastVisit: null,
      };
    });
  }

  give(tasks: BatchTask[]): EscalatedBatch {
    const batch: EscalatedBatch = { tasks, permits: [{ host: HOST }] };
    this.policy.assign(batch, this.now);
    return batch;
  }

  /** One round: what each task was asked with, and which of them go on. */
  round(tasks: BatchTask[]): { methods: FetchMethod[]; escalating: Set<number> } {
    this.give(tasks);
    this.now += 1_000;
    const done = tasks.map((task) => {
      const code = this.#site(task.fetchMethod!, task);
      const trace = traceOf({ httpStatus: code === 'forbidden' ? 403 : 200 });
      const outcome: Outcome = code
        ? { kind: 'failed', taskId: task.id, code, detail: '', page: null, retryAfterMs: null, trace }
        : { kind: 'fetched', taskId: task.id, page: pageOf(), links: [], records: [], shows: [], trace };
      return { task, host: HOST, outcome };
    });
    const methods = tasks.map((task) => task.fetchMethod!);
    return { methods, escalating: this.policy.learn(done, this.now) };
  }

  /** Runs tasks until none escalates any more; levels of all attempts, by task. */
  finish(tasks: BatchTask[]): number[][] {
    const levels = new Map<number, number[]>(tasks.map(({ id }) => [id, []]));
    for (let left = tasks; left.length > 0; ) {
      const { methods, escalating } = this.round(left);
      for (const [index, { id }] of left.entries()) levels.get(id)!.push(methods[index]!.level);
      left = left
        .filter(({ id }) => escalating.has(id))
        .map((task) => ({ ...task, attempt: task.attempt + 1 }));
    }
    return [...levels.values()];
  }
}

export const everything: Partial<JobInput> = {
  routes: [{ name: 'all', escalate: ['identity', 'impersonate', 'browser'] }],
};
