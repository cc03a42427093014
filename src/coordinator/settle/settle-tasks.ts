import type { BatchTask, Report } from '../../core/batch/batch.ts';
import type { Discovered, Outcome } from '../../core/batch/outcome.ts';
import { type FailureCode, failureKind, isHostThrottling } from '../../core/failures.ts';
import { isOutOfAttempts, isThrottledOnly } from '../../core/giving-up/giving-up.ts';
import { followsRedirects, isMediaRoute, type JobSpec } from '../../core/job-schema/job.ts';
import type { NewTask } from '../../core/model.ts';
import type { HostGrouper } from '../../core/politeness/host-groups.ts';
import { backoffMs } from '../../core/retry/retry.ts';
import type { InheritMeta } from '../../core/row-meta/row-meta.ts';
import { type CompiledFollow, mayRedirect } from '../../core/url/scope.ts';
import { templateOf } from '../../core/url/url.ts';
import type { Reject } from '../../ports/source.ts';
import type { TaskChange } from '../../ports/store.ts';

/** What new tasks are made with. */
interface LinkContext {
  /** By the host itself when absent. */
  groupOf?: HostGrouper | undefined;
  /** Whether tasks are to know the page that links to them. */
  tellsReferrers?: boolean | undefined;
  /** What they get of the row that led to that page; nothing when absent. */
  inherit?: InheritMeta | undefined;
}

export interface SettleContext extends LinkContext {
  spec: JobSpec;
  follow: readonly CompiledFollow[];
  now: number;
  random: () => number;
  /** Refused tasks that have another way of asking left. */
  escalating?: ReadonlySet<number> | undefined;
  /** Tasks of which nothing was sent, because their proxy is down. */
  untried?: ReadonlySet<number> | undefined;
  /** Tasks that wait until a ban of their host is over. */
  banned?: ReadonlySet<number> | undefined;
  /** Tasks with a forbidden page that are tried once more, as their host answers others. */
  forbidden?: ReadonlySet<number> | undefined;
}

/** Of pages that fail for the first time, so many are tried again soon: whether they answer then tells page from host. */
const RETRIED_SOON_SHARE = 0.25;

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
  shows: [],
} satisfies Partial<TaskChange>;

/** What an outcome means for its task. Pure; the one place where retries are decided. */
export function changeOf(task: BatchTask, outcome: Outcome, context: SettleContext): TaskChange {
  const base = { ...UNTOUCHED, id: task.id, outcome: outcome.kind };
  switch (outcome.kind) {
    case 'fetched':
      return {
        ...base,
        to: 'done',
        detail: outcome.note ?? null,
        page: outcome.page,
        trace: outcome.trace,
        links: outcome.links.map((link) => toNewTask(task, link, context)),
        records: outcome.records,
        shows: outcome.shows,
        ...(outcome.rejected ? { rejected: outcome.rejected.count } : {}),
      };
    case 'unchanged':
      return { ...base, to: 'unchanged', page: outcome.page, trace: outcome.trace };
    case 'skipped':
      return {
        ...base,
        to: 'skipped',
        code: outcome.code,
        detail: outcome.detail,
        trace: outcome.trace,
        countsAsAttempt: outcome.trace !== null,
      };
    case 'deferred': {
      const dueAt = outcome.until === undefined ? null : Math.ceil(outcome.until);
      const order = outcome.last ? { lowersPriority: true as const } : {};
      return { ...base, to: 'pending', countsAsAttempt: false, dueAt, ...order };
    }
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
  if (context.untried?.has(task.id)) {
    const dueAt = Math.ceil(context.now + backoffMs(1, retry, context.random()));
    return { ...failure, to: 'pending', dueAt, countsAsAttempt: false };
  }
  if (context.banned?.has(task.id)) return { ...failure, to: 'pending', countsAsAttempt: false };
  if (context.forbidden?.has(task.id)) {
    const dueAt = Math.ceil(context.now + backoffMs(task.attempt, retry, context.random()));
    return { ...failure, to: 'pending', dueAt, lowersPriority: true };
  }
  if (context.escalating?.has(task.id) && wantsBrowser(code))
    return { ...failure, outcome: 'deferred', page: null, to: 'pending', countsAsAttempt: false };
  const httpStatus = trace?.httpStatus ?? null;
  const throttles = task.throttles ?? 0;
  if (isThrottledOnly({ code, httpStatus, retryAfterMs: outcome.retryAfterMs }, throttles)) {
    const waitMs = backoffMs(throttles + 1, retry, context.random());
    const dueAt = Math.ceil(context.now + Math.max(outcome.retryAfterMs ?? 0, waitMs));
    // One that the host refuses again lets others have their turn: it may always have come last before the host had enough.
    const isAgain = throttles > 0;
    return {
      ...failure,
      ...{ to: 'pending', dueAt, countsAsAttempt: false, throttled: true },
      ...(isAgain ? { lowersPriority: true as const } : {}),
    };
  }
  const isOver = isOutOfAttempts(code, task.attempt, retry);
  if (isOver && !context.escalating?.has(task.id)) return { ...failure, to: 'dead' };
  const pauseMs = Math.max(outcome.retryAfterMs ?? 0, backoffMs(task.attempt, retry, context.random()));
  const isPageTrouble =
    failureKind(code).hostFault && !isHostThrottling(code, httpStatus, outcome.retryAfterMs);
  // Pages that fail again and again come after those that may still answer.
  const isLast = isPageTrouble && (task.attempt > 1 || context.random() >= RETRIED_SOON_SHARE);
  return {
    ...failure,
    to: 'pending',
    dueAt: Math.ceil(context.now + pauseMs),
    ...(isLast ? { lowersPriority: true as const } : {}),
  };
}

/** What a browser may still make of the page: until it has tried, nothing has failed. */
function wantsBrowser(code: FailureCode): boolean {
  return code === 'script-only' || code === 'validation';
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
  // What a page shows often lies elsewhere: media go wherever they are sent.
  const isMedia = isMediaRoute(context.spec, outcome.page.route);
  if (!isMedia && !mayRedirect(context.follow, from, to)) {
    return { ...base, to: 'skipped', code: 'scope', detail: `redirects to ${to.url}` };
  }
  const moveTo = { url: to.url, host: context.groupOf?.(to.host) ?? to.host };
  if (followsRedirects(context.spec)) return { ...base, to: 'pending', countsAsAttempt: false, moveTo };
  const target: NewTask = {
    ...moveTo,
    depth: task.depth,
    priority: 0,
    route: isMedia ? outcome.page.route : task.route,
    meta: task.meta,
    hops: task.hops + 1,
    template: null,
    modifiedAt: null,
    ...(task.referrer === undefined ? {} : { referrer: task.referrer }),
  };
  return { ...base, to: 'done', links: [target] };
}

export function toNewTask(
  task: Pick<BatchTask, 'depth' | 'url' | 'meta'>,
  link: Discovered,
  { groupOf, tellsReferrers, inherit }: LinkContext,
): NewTask {
  const inherited = inherit?.(task.meta) ?? null;
  // A list adds to what its row says; a handler that gives a link its own columns means those alone.
  const joined = link.listed && link.meta ? { ...inherited, ...link.meta } : null;
  return {
    url: link.url,
    host: groupOf ? groupOf(link.host) : link.host,
    depth: link.listed ? task.depth : task.depth + 1,
    priority: link.priority,
    route: link.route,
    meta: joined ?? link.meta ?? inherited,
    hops: 0,
    template: link.listed ? null : templateOf(link.url),
    modifiedAt: link.modifiedAt ?? null,
    ...(tellsReferrers && !link.listed ? { referrer: task.url } : {}),
  };
}

/** Links that come before the outcome of their task. */
export function linksAhead(
  tasks: ReadonlyMap<number, BatchTask>,
  found: NonNullable<Report['found']>,
  context: LinkContext,
): NewTask[] {
  return found.flatMap(({ taskId, links }) => {
    const task = tasks.get(taskId);
    return task ? links.map((link) => toNewTask(task, link, context)) : [];
  });
}

/** What lists that are tasks have that is of no use. */
export function rejectsOf(tasks: ReadonlyMap<number, BatchTask>, outcomes: readonly Outcome[]): Reject[] {
  return outcomes.flatMap((outcome) => {
    if (outcome.kind !== 'fetched' || !outcome.rejected) return [];
    const source = tasks.get(outcome.taskId)?.url ?? '';
    return outcome.rejected.first.map((entry) => ({ source, ...entry }));
  });
}
