import type { Report } from '../../core/batch/batch.ts';
import type { Outcome, QualityDelta } from '../../core/batch/outcome.ts';
import { isFault } from '../../core/circuit-breaker/circuit-breaker.ts';
import type { CostLine } from '../../core/cost/cost.ts';
import {
  type FailedHost,
  type FailedPlace,
  failedHostsOf,
  failedPlacesOf,
} from '../../core/giving-up/giving-up.ts';
import type { HostGrouper } from '../../core/politeness/host-groups.ts';
import { revisitBoundsOf } from '../../core/revisits/revisit-interval.ts';
import type { InheritMeta } from '../../core/row-meta/row-meta.ts';
import type { CompiledFollow } from '../../core/url/scope.ts';
import type { Reject } from '../../ports/source.ts';
import type { HostChange, Job, RobotsEntry, Settlement, TaskChange } from '../../ports/store.ts';
import type { OpenBatch } from '../plan/open-batch.ts';
import { changeOf, linksAhead, rejectsOf, type SettleContext } from './settle-tasks.ts';

/** What a report means, once everything that the run has learned was asked about it. */
export interface Judgement {
  now: number;
  /** Of tasks that the batch still holds. */
  outcomes: readonly Outcome[];
  /** Whether one of them is another than the worker reported: its links were not taken. */
  isRejudged: boolean;
  /** Refused tasks that have another fetch method or proxy left. */
  escalating: ReadonlySet<number>;
  /** Tasks of which nothing was sent, because their proxy is down. */
  untried: ReadonlySet<number>;
  /** Tasks that wait until a ban of their host is over, and those whose forbidden page is tried once more. */
  banned: ReadonlySet<number>;
  forbidden: ReadonlySet<number>;
  robots: readonly RobotsEntry[];
  hosts: readonly HostChange[];
  /** What the report adds to the bill of the job. */
  costs: readonly CostLine[];
  groupOf: HostGrouper;
}

/** What is the same for all reports of a job. */
export interface DecisionRules {
  job: Pick<Job, 'id' | 'spec' | 'owner'>;
  follow: readonly CompiledFollow[];
  tellsReferrers: boolean;
  inherit: InheritMeta;
  /** Whether hosts are counted together: then one of them must not take the others down. */
  areGroups: boolean;
  random: () => number;
}

export interface Decision {
  settlement: Settlement;
  rejects: Reject[];
  /** Hosts whose tasks are all given up, or places where hosts are counted together. */
  failedHosts: FailedHost[];
  failedPlaces: FailedPlace[];
  /** What the report adds to the tally of its batch. */
  failed: number;
  relapsed: number;
  succeeded: number;
  /** Some links of the report are not kept, even when the settlement is. */
  lostLinks: boolean;
}

/** What is written down about a report, and what the run remembers of it. Pure but for the given randomness. */
export function decide(
  open: Pick<OpenBatch, 'batch' | 'tasks'>,
  report: Report,
  judged: Judgement,
  rules: DecisionRules,
): Decision {
  const { outcomes, robots, hosts } = judged;
  const { spec } = rules.job;
  const final = finalOf(judged).filter(({ taskId }) => !judged.banned.has(taskId));
  const failed = failedHostsOf(hosts, report.robots, robots, spec);
  const failures = final.filter(({ kind }) => kind === 'failed');
  const relapses = failures.filter(({ taskId }) => (open.tasks.get(taskId)?.attempt ?? 1) > 1);
  const isOfWorker = report.part >= 0;
  const deferred = final.filter(({ kind }) => kind === 'deferred').length;
  return {
    settlement: settlementOf(open, report, judged, rules),
    rejects: rejectsOf(open.tasks, outcomes),
    failedHosts: rules.areGroups ? [] : failed,
    failedPlaces: rules.areGroups ? failedPlacesOf(failed, faultsOf(open, final), robots) : [],
    // What the coordinator refused by itself is no failure of a batch. One that met nothing but dead proxies has failed,
    // also when it came no further than robots.txt.
    failed: (isOfWorker ? failures.length : 0) + (report.proxyFaults?.length ?? 0),
    relapsed: isOfWorker ? relapses.length : 0,
    succeeded: final.length - failures.length - deferred,
    lostLinks: Boolean(report.trouble) || judged.isRejudged || outcomes.some(isInternal),
  };
}

/** A task that is still looking for a fetch method that works has not failed yet, and nor has its host. */
export function finalOf({ outcomes, escalating }: Pick<Judgement, 'outcomes' | 'escalating'>): Outcome[] {
  return outcomes.filter(({ taskId }) => !escalating.has(taskId));
}

function settlementOf(
  open: Pick<OpenBatch, 'tasks'>,
  report: Report,
  judged: Judgement,
  { job, follow, tellsReferrers, inherit, random }: DecisionRules,
): Settlement {
  const { limits, records, sink, name } = job.spec;
  const revisits = revisitBoundsOf(job.spec);
  const { now, escalating, untried, banned, forbidden, groupOf } = judged;
  const context: SettleContext = {
    ...{ spec: job.spec, follow, tellsReferrers, inherit, random },
    ...{ now, escalating, untried, banned, forbidden, groupOf },
  };
  const tasks = judged.outcomes.map((outcome) => changeOf(open.tasks.get(outcome.taskId)!, outcome, context));
  return {
    jobId: job.id,
    batchId: report.batchId,
    now: Math.floor(now),
    worker: report.worker,
    final: report.final,
    durationMs: Math.round(report.durationMs),
    archive: report.archive,
    pack: report.pack ?? null,
    requests: report.permits.reduce((sum, use) => sum + use.sent, 0),
    owner: job.owner,
    costs: judged.costs,
    perTemplateMax: limits.perTemplate,
    records: {
      guardMs: records.guardSeconds * 1_000,
      history: records.history,
      ...(sink ? { sink: { spec: sink, job: name } } : {}),
    },
    ...(revisits && { revisits }),
    quality: [...report.quality, ...refusedPages(tasks)],
    tasks,
    ...(report.found ? { links: linksAhead(open.tasks, report.found, context) } : {}),
    hosts: [...judged.hosts],
    robots: [...judged.robots],
  };
}

/** Pages given up because their records did not pass; those that pass at another attempt do not count. */
function refusedPages(tasks: readonly TaskChange[]): QualityDelta[] {
  const counts = new Map<string, number>();
  for (const { to, code, page } of tasks) {
    if (to === 'dead' && code === 'validation' && page?.route)
      counts.set(page.route, (counts.get(page.route) ?? 0) + 1);
  }
  return [...counts].map(([route, invalid]) => ({ route, records: 0, invalid, filled: {} }));
}

function faultsOf(
  open: Pick<OpenBatch, 'batch' | 'tasks'>,
  outcomes: readonly Outcome[],
): { group: string; url: string }[] {
  return outcomes.filter(isFault).map(({ taskId }) => {
    const { permit, url } = open.tasks.get(taskId)!;
    return { group: open.batch.permits[permit]!.host, url };
  });
}

function isInternal(outcome: Outcome): boolean {
  return outcome.kind === 'failed' && outcome.code === 'internal';
}
