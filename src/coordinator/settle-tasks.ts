import type { BatchTask } from '../core/batch.ts';
import { failureKind } from '../core/failures.ts';
import { followsRedirects, type JobSpec } from '../core/job.ts';
import type { NewTask } from '../core/model.ts';
import type { Discovered, Outcome } from '../core/outcome.ts';
import { backoffMs } from '../core/retry.ts';
import { type CompiledFollow, mayRedirect } from '../core/scope.ts';
import { templateOf } from '../core/url.ts';
import type { TaskChange } from '../ports/store.ts';

export interface SettleContext {
  spec: JobSpec;
  follow: readonly CompiledFollow[];
  now: number;
  random: () => number;
}

const UNTOUCHED = {
  code: null,
  detail: null,
  dueAt: null,
  countsAsAttempt: true,
  moveTo: null,
  redirectTo: null,
  page: null,
  trace: null,
  links: [],
  records: [],
} satisfies Partial<TaskChange>;

/** What an outcome means for its task. Pure; the one place where retries are decided. */
export function changeOf(task: BatchTask, outcome: Outcome, context: SettleContext): TaskChange {
  const base = { ...UNTOUCHED, id: task.id, outcome: outcome.kind };
  switch (outcome.kind) {
    case 'fetched':
      return {
        ...base,
        to: 'done',
        page: outcome.page,
        trace: outcome.trace,
        links: outcome.links.map((link) => toNewTask(task, link)),
        records: outcome.records,
      };
    case 'unchanged':
      return {
        ...base,
        to: 'unchanged',
        page: outcome.page,
        trace: outcome.trace,
        links: outcome.links.map((link) => toNewTask(task, link)),
      };
    case 'skipped':
      return {
        ...base,
        to: 'skipped',
        code: outcome.code,
        detail: outcome.detail,
        trace: outcome.trace,
        countsAsAttempt: outcome.trace !== null,
      };
    case 'deferred':
      return { ...base, to: 'pending', countsAsAttempt: false };
    case 'redirected':
      return redirectOf(task, outcome, context);
    case 'failed':
      return failureOf(task, outcome, context);
  }
}

function failureOf(
  task: BatchTask,
  outcome: Extract<Outcome, { kind: 'failed' }>,
  context: SettleContext,
): TaskChange {
  const { retry } = context.spec;
  const { code, detail, page, trace } = outcome;
  const failure = { ...UNTOUCHED, id: task.id, outcome: outcome.kind, code, detail, page, trace };
  if (failureKind(code).retry === 'permanent' || task.attempt >= retry.attempts)
    return { ...failure, to: 'dead' };
  const pauseMs = Math.max(outcome.retryAfterMs ?? 0, backoffMs(task.attempt, retry, context.random()));
  return { ...failure, to: 'pending', dueAt: Math.ceil(context.now + pauseMs) };
}

function redirectOf(
  task: BatchTask,
  outcome: Extract<Outcome, { kind: 'redirected' }>,
  context: SettleContext,
): TaskChange {
  const to = { url: outcome.to, host: new URL(outcome.to).host };
  const from = { host: new URL(task.url).host, depth: task.depth };
  const base = {
    ...UNTOUCHED,
    id: task.id,
    outcome: outcome.kind,
    page: outcome.page,
    trace: outcome.trace,
    redirectTo: to.url,
  };
  if (!mayRedirect(context.follow, from, to)) {
    return { ...base, to: 'skipped', code: 'scope', detail: `redirects to ${to.url}` };
  }
  if (followsRedirects(context.spec)) return { ...base, to: 'pending', countsAsAttempt: false, moveTo: to };
  const target: NewTask = {
    ...to,
    depth: task.depth,
    priority: 0,
    route: task.route,
    meta: task.meta,
    hops: task.hops + 1,
    template: null,
  };
  return { ...base, to: 'done', links: [target] };
}

function toNewTask(task: BatchTask, link: Discovered): NewTask {
  return {
    url: link.url,
    host: link.host,
    depth: task.depth + 1,
    priority: link.priority,
    route: link.route,
    meta: link.meta ?? null,
    hops: 0,
    template: templateOf(link.url),
  };
}
