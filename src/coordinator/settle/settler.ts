import type { Report } from '../../core/batch/batch.ts';
import type { Outcome, QualityDelta } from '../../core/batch/outcome.ts';
import { failureKind } from '../../core/failures.ts';
import { compileHostLimits, type HostLimiter } from '../../core/politeness/host-limits.ts';
import { backoffMs } from '../../core/retry/retry.ts';
import { isOrigin } from '../../core/robots/robots.ts';
import { tellsReferrers } from '../../core/url/referrer.ts';
import { type CompiledFollow, compileFollow } from '../../core/url/scope.ts';
import type { Clock, Random } from '../../ports/ambient.ts';
import type { HostChange, Job, RobotsEntry, Settlement, Store, TaskChange } from '../../ports/store.ts';
import type { EscalationPolicy } from '../escalation/escalation-policy.ts';
import { HostGroups } from '../hosts/host-groups.ts';
import type { OpenPermits } from '../hosts/open-permits.ts';
import type { OpenBatch } from '../plan/open-batch.ts';
import type { AccessAssigner } from '../proxies/access-assigner.ts';
import type { RobotsCache } from '../robots/robots-cache.ts';
import type { RejectLog } from '../sources/reject-log.ts';
import { type FailedHost, failedHosts, GivenUp, giveUpMember } from './giving-up.ts';
import { RepeatedPages } from './repeated-pages.ts';
import { hostChangeOf } from './settle-hosts.ts';
import { changeOf, linksAhead, rejectsOf, type SettleContext } from './settle-tasks.ts';

export interface SettledReport {
  applied: boolean;
  /** Hosts whose every probe failed: their tasks will be given up. */
  failedHosts: FailedHost[];
  /** Something of the report was not kept, so workers must find its links again. */
  lostLinks: boolean;
}

/** Turns reports into one store transaction each. */
export class Settler {
  readonly #store: Store;
  readonly #job: Job;
  readonly #permits: OpenPermits;
  readonly #robots: RobotsCache;
  readonly #clock: Clock;
  readonly #random: Random;
  readonly #follow: CompiledFollow[];
  readonly #limitsOf: HostLimiter;
  readonly #escalation: EscalationPolicy | null;
  readonly #access: AccessAssigner | null;
  readonly #rejects: RejectLog | null;
  readonly #groups: HostGroups;
  readonly #givenUp: GivenUp;
  readonly #tellsReferrers: boolean;
  readonly #repeats = new RepeatedPages();

  constructor(options: {
    store: Store;
    job: Job;
    permits: OpenPermits;
    robots: RobotsCache;
    clock: Clock;
    random: Random;
    escalation?: EscalationPolicy | null;
    access?: AccessAssigner | null;
    groups?: HostGroups;
    givenUp?: GivenUp;
    rejects?: RejectLog | null;
  }) {
    this.#store = options.store;
    this.#job = options.job;
    this.#permits = options.permits;
    this.#robots = options.robots;
    this.#clock = options.clock;
    this.#random = options.random;
    this.#follow = options.job.spec.follow.map(compileFollow);
    this.#limitsOf = compileHostLimits(options.job.spec);
    this.#escalation = options.escalation ?? null;
    this.#access = options.access ?? null;
    this.#groups = options.groups ?? new HostGroups(options);
    this.#givenUp = options.givenUp ?? new GivenUp();
    this.#tellsReferrers = tellsReferrers(options.job.spec);
    this.#rejects = options.rejects ?? null;
  }

  /** `found`: robots.txt that became known without a request. */
  async settle(open: OpenBatch, report: Report, found: readonly RobotsEntry[] = []): Promise<SettledReport> {
    const { spec } = this.#job;
    const groupOf = await this.#groups.of(() => hostsIn(report));
    const now = this.#clock.now();
    const robots = [...found, ...(await this.#robotsEntries(open, report, now))];
    const taken = report.outcomes.filter((outcome) => open.tasks.has(outcome.taskId));
    const known = taken.map((outcome) => this.#repeats.judge(outcome, this.#urlHostOf(open, outcome)));
    const trouble = this.#access?.note(open, report, known);
    const judged = trouble ? known.filter(({ taskId }) => !trouble.elsewhere.has(taskId)) : known;
    const escalating = union(this.#learn(open, report, judged, now), trouble?.elsewhere);
    const context: SettleContext = {
      spec,
      follow: this.#follow,
      now,
      random: () => this.#random.next(),
      escalating,
      untried: trouble?.untried,
      groupOf,
      tellsReferrers: this.#tellsReferrers,
    };
    const tasks = known.map((outcome) => changeOf(open.tasks.get(outcome.taskId)!, outcome, context));
    // Who is still looking for a way in has not failed yet, and nor has the host.
    const final = escalating ? known.filter((outcome) => !escalating.has(outcome.taskId)) : known;
    const hosts = this.#hostChanges(open, report, final, robots, now);
    const settlement: Settlement = {
      jobId: this.#job.id,
      batchId: report.batchId,
      now: Math.floor(now),
      worker: report.worker,
      final: report.final,
      durationMs: Math.round(report.durationMs),
      archive: report.archive,
      pack: report.pack ?? null,
      requests: report.permits.reduce((sum, use) => sum + use.sent, 0),
      perTemplateMax: spec.limits.perTemplate,
      records: { guardMs: spec.records.guardSeconds * 1_000, history: spec.records.history },
      quality: [...report.quality, ...refusedPages(tasks)],
      tasks,
      ...(report.found ? { links: linksAhead(open.tasks, report.found, context) } : {}),
      hosts,
      robots,
    };
    const { applied } = await this.#store.frontier.settle(settlement);
    // Not before: whoever looks next must find the answer.
    for (const { origin, permit } of open.batch.robots)
      if (open.released[permit]) this.#robots.doneAsking(origin);
    if (applied) for (const reject of rejectsOf(open.tasks, known)) this.#rejects?.note(reject);
    const failed = failedHosts(report, hosts, robots, spec);
    if (this.#groups.areShared)
      giveUpMember(failed.splice(0), { open, outcomes: final, robots }, this.#givenUp);
    for (const outcome of known) open.tasks.delete(outcome.taskId);
    if (report.part >= 0) open.failed += final.filter(({ kind }) => kind === 'failed').length;
    // A batch that met nothing but dead proxies has failed, also when it came no further than robots.txt.
    open.failed += report.proxyFaults?.length ?? 0;
    open.succeeded += final.filter(
      (outcome) => outcome.kind !== 'failed' && outcome.kind !== 'deferred',
    ).length;
    const lostLinks =
      !applied ||
      Boolean(report.trouble) ||
      known.some(
        (outcome, index) =>
          outcome !== taken[index] || (outcome.kind === 'failed' && outcome.code === 'internal'),
      );
    return { applied, failedHosts: failed, lostLinks };
  }

  #learn(open: OpenBatch, report: Report, known: Outcome[], now: number): Set<number> | undefined {
    if (!this.#escalation) return undefined;
    if (report.cookies) this.#escalation.takeCookies(report.cookies);
    const done = known.map((outcome) => ({
      task: open.tasks.get(outcome.taskId)!,
      host: hostOf(open, outcome),
      outcome,
    }));
    return this.#escalation.learn(done, now);
  }

  #hostChanges(
    open: OpenBatch,
    report: Report,
    known: Outcome[],
    robots: RobotsEntry[],
    now: number,
  ): HostChange[] {
    const changes: HostChange[] = [];
    open.batch.permits.forEach((permit, index) => {
      // A last report that forgets a permit must not keep its host: nothing of it will be sent any more.
      const forgotten = report.final
        ? { host: permit.host, sent: 0, lastSentAt: permit.endAt, finished: true }
        : null;
      const use = report.permits[index] ?? forgotten;
      if (!use || open.released[index]) return;
      const outcomes = known.filter((outcome) => open.tasks.get(outcome.taskId)?.permit === index);
      if (outcomes.length === 0 && use.sent === 0 && !use.finished) return;
      const origins = new Set(
        open.batch.robots.filter((fetch) => fetch.permit === index).map((fetch) => fetch.origin),
      );
      const answers = report.robots.filter((answer) => origins.has(answer.origin));
      if (use.finished) open.released[index] = true;
      const entries = robots.filter((entry) => entry.host === permit.host);
      const crawlDelayMs =
        entries.reduce((most, entry) => Math.max(most, entry.crawlDelayMs ?? 0), 0) || null;
      const change = hostChangeOf(
        { permit, use, outcomes, robots: answers, crawlDelayMs },
        this.#permits,
        this.#job.spec,
        now,
        this.#limitsOf,
      );
      const failures = Math.max(0, ...entries.map((entry) => (isOrigin(entry.origin) ? entry.failures : 0)));
      const hopeless = answers.some(
        (answer) => answer.kind === 'failed' && failureKind(answer.code).retry === 'permanent',
      );
      if (failures > 0 && !hopeless) {
        const pauseMs = backoffMs(failures, this.#job.spec.retry, this.#random.next());
        change.nextAt = Math.ceil(Math.max(change.nextAt ?? 0, now + pauseMs));
      }
      changes.push(change);
    });
    return changes;
  }

  /** Repetition is of a host, whatever it is counted with. */
  #urlHostOf(open: OpenBatch, outcome: Outcome): string {
    return this.#groups.areShared ? new URL(open.tasks.get(outcome.taskId)!.url).host : hostOf(open, outcome);
  }

  async #robotsEntries(open: OpenBatch, report: Report, now: number): Promise<RobotsEntry[]> {
    const entries: RobotsEntry[] = [];
    for (const outcome of report.robots) {
      const fetch = open.batch.robots.find((asked) => asked.origin === outcome.origin);
      if (!fetch) continue;
      const { url, permit } = fetch;
      const [at, host] = [permit, fetch.for ?? permit].map((index) => open.batch.permits[index]!.host);
      const question = { url, at: at!, host: host! };
      entries.push(...(await this.#robots.entriesOf(outcome, question, Math.floor(now))));
    }
    return entries;
  }
}

/** Hosts that new tasks, and tasks that move, will belong to. */
function* hostsIn({ outcomes, found, robots }: Report): Iterable<string> {
  for (const answer of robots) if (answer.kind === 'redirected') yield new URL(answer.to).host;
  for (const { links } of found ?? []) for (const { host } of links) yield host;
  for (const outcome of outcomes) {
    if (outcome.kind === 'fetched') for (const { host } of outcome.links) yield host;
    else if (outcome.kind === 'redirected') yield new URL(outcome.to).host;
  }
}

function hostOf(open: OpenBatch, { taskId }: Outcome): string {
  return open.batch.permits[open.tasks.get(taskId)!.permit]!.host;
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

function union<T>(one: Set<T> | undefined, other: Set<T> | undefined): Set<T> | undefined {
  return one && other ? new Set([...one, ...other]) : (one ?? other);
}
