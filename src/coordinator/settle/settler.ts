import type { Report } from '../../core/batch/batch.ts';
import type { Outcome } from '../../core/batch/outcome.ts';
import type { Usage } from '../../core/cost/cost.ts';
import type { FailedHost } from '../../core/giving-up/giving-up.ts';
import { reportEntry, textOf } from '../../core/host-log/host-log.ts';
import { compileHostLimits, type HostLimiter } from '../../core/politeness/host-limits.ts';
import { inheritanceOf } from '../../core/row-meta/row-meta.ts';
import { tellsReferrers } from '../../core/url/referrer.ts';
import { compileFollow } from '../../core/url/scope.ts';
import type { Clock, Random } from '../../ports/ambient.ts';
import type { Frontier, HostStore, Job, RobotsEntry, Settlement } from '../../ports/store.ts';
import type { BanLog } from '../bans/ban-log.ts';
import type { BudgetWatch } from '../budget/budget-watch.ts';
import type { EscalationPolicy } from '../escalation/escalation-policy.ts';
import type { SlotAccountant } from '../explain/slot-accountant.ts';
import type { GivenUp } from '../giving-up/giving-up.ts';
import type { HostGroups } from '../hosts/host-groups.ts';
import type { OpenPermits } from '../hosts/open-permits.ts';
import type { OutageWatch } from '../outage/outage-watch.ts';
import type { OpenBatch } from '../plan/open-batch.ts';
import type { TaskPriorities } from '../priority/task-priorities.ts';
import type { AccessAssigner } from '../proxies/access-assigner.ts';
import type { RobotsCache } from '../robots/robots-cache.ts';
import type { HostRollups } from '../rollups/host-rollups.ts';
import type { RejectLog } from '../sources/reject-log.ts';
import type { TimeoutLearner } from '../timeouts/timeout-learner.ts';
import { type Decision, type DecisionRules, decide, finalOf, type Judgement } from './decide.ts';
import { RepeatedPages } from './repeated-pages.ts';
import {
  banDecisionOf,
  type HostReport,
  hostChangeOf,
  hostReportsOf,
  robotsRetryAt,
} from './settle-hosts.ts';

/** The logs of the hosts of one batch in so many are looked at: a host that is asked often is met often. */
const BATCHES_PER_CHECKPOINT = 200;
const HOST_LOG_MS = 365 * 86_400_000;

const NONE: ReadonlySet<number> = new Set();
const NO_PROXY_TROUBLE = { untried: NONE, elsewhere: NONE };

export interface SettledReport {
  applied: boolean;
  /** Hosts whose every probe failed: their tasks will be given up. */
  failedHosts: FailedHost[];
  /** Something of the report was not kept, so workers must find its links again. */
  lostLinks: boolean;
}

interface SettlerParts {
  store: {
    readonly frontier: Pick<Frontier, 'hostsNamed' | 'settle'>;
    readonly hosts: Pick<HostStore, 'checkpointLog'>;
  };
  job: Job;
  /** How long entries of host logs are kept. */
  hostLogMs?: number;
  permits: OpenPermits;
  robots: RobotsCache;
  clock: Clock;
  random: Random;
  timeouts: Pick<TimeoutLearner, 'learn'> | null;
  escalation: EscalationPolicy | null;
  access: AccessAssigner | null;
  groups: HostGroups;
  givenUp: GivenUp;
  priorities: TaskPriorities;
  bans: BanLog;
  outages: OutageWatch;
  rollups: HostRollups;
  budget: Pick<BudgetWatch, 'billOf'>;
  rejects: RejectLog | null;
  accountant: Pick<SlotAccountant, 'noteHostWait'>;
}

/** Turns reports into one store transaction each. */
export class Settler {
  readonly #store: SettlerParts['store'];
  readonly #permits: OpenPermits;
  readonly #robots: RobotsCache;
  readonly #clock: Clock;
  readonly #limitsOf: HostLimiter;
  readonly #timeouts: SettlerParts['timeouts'];
  readonly #escalation: EscalationPolicy | null;
  readonly #access: AccessAssigner | null;
  readonly #rejects: RejectLog | null;
  readonly #groups: HostGroups;
  readonly #givenUp: GivenUp;
  readonly #priorities: TaskPriorities;
  readonly #bans: BanLog;
  readonly #outages: OutageWatch;
  readonly #rollups: HostRollups;
  readonly #accountant: SettlerParts['accountant'];
  readonly #budget: SettlerParts['budget'];
  readonly #rules: DecisionRules;
  /** How the run is named in the logs of hosts. */
  readonly #run: string;
  readonly #repeats = new RepeatedPages();
  readonly #hostLogMs: number;

  constructor(parts: SettlerParts) {
    this.#store = parts.store;
    this.#permits = parts.permits;
    this.#robots = parts.robots;
    this.#clock = parts.clock;
    this.#limitsOf = compileHostLimits(parts.job.spec);
    this.#timeouts = parts.timeouts;
    this.#escalation = parts.escalation;
    this.#access = parts.access;
    this.#groups = parts.groups;
    this.#givenUp = parts.givenUp;
    this.#priorities = parts.priorities;
    this.#bans = parts.bans;
    this.#outages = parts.outages;
    this.#rollups = parts.rollups;
    this.#budget = parts.budget;
    this.#rejects = parts.rejects;
    this.#accountant = parts.accountant;
    this.#hostLogMs = parts.hostLogMs ?? HOST_LOG_MS;
    this.#run = `${parts.job.name}-${parts.job.run}`;
    this.#rules = {
      job: parts.job,
      follow: parts.job.spec.follow.map(compileFollow),
      tellsReferrers: tellsReferrers(parts.job.spec),
      inherit: inheritanceOf(parts.job.spec),
      areGroups: parts.groups.areShared,
      random: () => parts.random.next(),
    };
  }

  /**
   * In three steps: judge what the outcomes mean, decide what follows from that, apply it. `found`: robots.txt that
   * became known without a request. `used`: what carrying the batch cost.
   */
  async settle(
    open: OpenBatch,
    received: Report,
    found: readonly RobotsEntry[] = [],
    used: Usage = {},
  ): Promise<SettledReport> {
    const late = lateHostsOf(open, received);
    if (late.size === 0) return this.#settle(open, received, found, used);
    return this.#permits.holding(late, async () => {
      const known = await this.#store.frontier.hostsNamed([...late]);
      for (const health of known) this.#permits.know(health.host, health);
      return this.#settle(open, received, found, used);
    });
  }

  async #settle(
    open: OpenBatch,
    received: Report,
    found: readonly RobotsEntry[],
    used: Usage,
  ): Promise<SettledReport> {
    const reachedAt = (host: string) => this.#permits.entry(host)?.reachedAt ?? null;
    const report = this.#outages.judge(open, received, reachedAt);
    const costs = this.#budget.billOf(received, used);
    const judged = { ...(await this.#judge(open, report, found)), costs };
    const decision = decide(open, report, judged, this.#rules);
    return this.#apply(open, judged, decision);
  }

  /** Asks all that learn from reports: robots.txt, repeated pages, proxies, escalation, the health of hosts. */
  async #judge(
    open: OpenBatch,
    report: Report,
    found: readonly RobotsEntry[],
  ): Promise<Omit<Judgement, 'costs'>> {
    const groupOf = await this.#groups.of(() => hostsIn(report));
    const now = this.#clock.now();
    const robots = [...found, ...(await this.#robotsEntries(open, report, now))];
    // From here on without a pause: reports of other batches must see what this one has noted.
    const reported = report.outcomes.filter(({ taskId }) => open.tasks.has(taskId));
    const outcomes = reported.map((outcome) => this.#repeats.judge(outcome, this.#urlHostOf(open, outcome)));
    const { untried, elsewhere } = this.#access?.note(open, report, outcomes) ?? NO_PROXY_TROUBLE;
    const answered = outcomes.filter(({ taskId }) => !elsewhere.has(taskId));
    const escalating = new Set([...this.#learn(open, report, answered, now), ...elsewhere]);
    const final = finalOf({ outcomes, escalating });
    const { hosts, banned, forbidden } = this.#hostChanges(open, report, final, robots, now);
    const isRejudged = outcomes.some((outcome, index) => outcome !== reported[index]);
    return { now, outcomes, isRejudged, escalating, untried, banned, forbidden, robots, hosts, groupOf };
  }

  /** One transaction, and then what memory must learn: whoever looks next must find it in the store. */
  async #apply(open: OpenBatch, { outcomes, hosts }: Judgement, decision: Decision): Promise<SettledReport> {
    const { settlement, rejects, failedHosts, failedPlaces } = decision;
    for (const { links } of [settlement, ...settlement.tasks]) this.#priorities.apply(links ?? []);
    const { applied } = await this.#store.frontier.settle(settlement);
    for (const { host } of hosts) this.#permits.settled(host);
    for (const { origin, permit } of open.batch.robots)
      if (open.released[permit]) this.#robots.doneAsking(origin);
    if (applied) for (const reject of rejects) this.#rejects?.note(reject);
    if (applied) this.#noteHosts(open, settlement);
    if (applied && settlement.final && settlement.batchId % BATCHES_PER_CHECKPOINT === 0)
      await this.#checkpointLogs(settlement);
    for (const place of failedPlaces) this.#givenUp.add(place);
    for (const { taskId } of outcomes) open.tasks.delete(taskId);
    open.failed += decision.failed;
    open.relapsed += decision.relapsed;
    open.succeeded += decision.succeeded;
    return { applied, failedHosts, lostLinks: !applied || decision.lostLinks };
  }

  /** What goes wrong here shows elsewhere, too, and the next look comes: no report is lost for it. */
  async #checkpointLogs({ hosts, now }: Settlement): Promise<void> {
    for (const { host, log } of hosts) {
      if (log === undefined) continue;
      await this.#store.hosts.checkpointLog(host, { now, keepMs: this.#hostLogMs }).catch(() => {});
    }
  }

  #noteHosts(open: OpenBatch, { tasks, hosts, now }: Settlement): void {
    const tasksOf = Map.groupBy(tasks, ({ id }) => hostOf(open, { taskId: id }));
    const sent = new Map(hosts.map((change) => [change.host, change.sent]));
    for (const host of new Set([...tasksOf.keys(), ...sent.keys()]))
      this.#rollups.add(host, tasksOf.get(host) ?? [], sent.get(host) ?? 0, now);
  }

  #learn(open: OpenBatch, report: Report, outcomes: readonly Outcome[], now: number): ReadonlySet<number> {
    if (!this.#escalation) return NONE;
    if (report.cookies) this.#escalation.takeCookies(report.cookies);
    const done = outcomes.map((outcome) => ({
      task: open.tasks.get(outcome.taskId)!,
      host: hostOf(open, outcome),
      outcome,
    }));
    return this.#escalation.learn(done, now);
  }

  #hostChanges(
    open: OpenBatch,
    report: Report,
    outcomes: readonly Outcome[],
    robots: readonly RobotsEntry[],
    now: number,
  ): Pick<Judgement, 'hosts' | 'banned' | 'forbidden'> {
    const { job, random } = this.#rules;
    const { retry } = job.spec;
    const banned = new Set<number>();
    const forbidden = new Set<number>();
    // The log tells of all requests, also of those that are made again in another way.
    const sent = job.spec.politeness.log
      ? Map.groupBy(report.outcomes, ({ taskId }) => open.tasks.get(taskId)?.permit)
      : null;
    const hosts = [...hostReportsOf(open, report, outcomes, robots)].map(([index, about]) => {
      if (about.use.finished) open.released[index] = true;
      this.#permits.keep(about.permit.host);
      const decision = banDecisionOf(about, this.#permits, job.spec, now);
      for (const taskId of decision?.waiting ?? []) banned.add(taskId);
      for (const taskId of decision?.again ?? []) forbidden.add(taskId);
      if (decision) this.#bans.note(about.permit.host, decision.ban, now);
      const entry = this.#permits.entry(about.permit.host);
      this.#timeouts?.learn(about.permit.host, about.outcomes);
      const log = sent && logOf(open, { ...about, outcomes: sent.get(index) ?? [] }, robots, this.#run, now);
      const change = {
        ...hostChangeOf(about, this.#permits, job.spec, now, this.#limitsOf, decision),
        ...(log === null ? {} : { log }),
      };
      const retryAt = robotsRetryAt(about, robots, { retry, now, random });
      const quietUntil = Math.max(
        entry?.pauseUntil ?? 0,
        entry?.restUntil ?? 0,
        decision?.ban.restUntil ?? 0,
      );
      if (quietUntil > now) this.#accountant.noteHostWait(change.host, quietUntil, 'retryBackoff');
      if (retryAt === null) return change;
      this.#accountant.noteHostWait(change.host, retryAt, 'robots');
      // Another job may have the host for longer.
      const takenUntil = about.permit.gapMs === 0 ? 0 : (change.takenUntil ?? 0);
      const nextAt = Math.ceil(Math.max(change.nextAt ?? takenUntil, retryAt));
      return { ...change, nextAt, isPaced: false };
    });
    return { hosts, banned, forbidden };
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

/** Hosts whose permits came back before the report did: nothing may be known of them here any more. */
function lateHostsOf({ batch, tasks, released }: OpenBatch, { outcomes }: Report): Set<string> {
  const late = new Set<string>();
  if (!released.includes(true)) return late;
  for (const { taskId } of outcomes) {
    const permit = tasks.get(taskId)?.permit;
    if (permit !== undefined && released[permit]) late.add(batch.permits[permit]!.host);
  }
  return late;
}

/** What the log of a host says of a report. */
function logOf(
  { batch }: OpenBatch,
  about: HostReport,
  entries: readonly RobotsEntry[],
  job: string,
  now: number,
): string | null {
  const asked = new Set(about.robots.map(({ origin }) => origin));
  const fetched = asked.size === 0 ? [] : entries.filter(({ origin }) => asked.has(origin));
  const entry = reportEntry({ ...about, now, job, batch: batch.id, fetched });
  return entry && textOf(entry);
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

function hostOf(open: OpenBatch, { taskId }: Pick<Outcome, 'taskId'>): string {
  return open.batch.permits[open.tasks.get(taskId)!.permit]!.host;
}
