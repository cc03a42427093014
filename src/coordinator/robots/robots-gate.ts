import type { RobotsFetch } from '../../core/batch/batch.ts';
import type { Outcome } from '../../core/batch/outcome.ts';
import { parallelOf } from '../../core/job-schema/job.ts';
import { compileHostLimits, type HostLimiter } from '../../core/politeness/host-limits.ts';
import { originOf } from '../../core/url/url-shape.ts';
import type { DueHost, Frontier, Job, LeasedTask, RobotsEntry } from '../../ports/store.ts';
import type { GivenUp } from '../giving-up/giving-up.ts';
import type { HostGroups } from '../hosts/host-groups.ts';
import { type Grant, hasRoom, type PlanHost } from '../plan/plan-batches.ts';
import type { RobotsCache, RobotsStep } from './robots-cache.ts';

/** Hosts that are asked on behalf of others in one plan. */
const PIGGYBACKED_MAX = 100;
/** Who waits for a host that is busy stays in the plan, to be there when it is free; from here on it is put off. */
const WAIT_MS_MAX = 10_000;
/** As many may wait in the plan for one host, or they would keep others out of it. */
const WAITING_MAX = 20;
/** When the others look again, and tasks of a host that is counted together with others. */
const LOOK_AGAIN_MS = 1_000;

/** What can be said of leased tasks before they go out. */
interface Checked {
  /** What needs no worker: tasks that are forbidden, and those that must wait for a robots.txt. */
  refused: Outcome[];
  robots: RobotsFetch[];
  /** To be written down: what robots.txt redirects to was known already. */
  found: RobotsEntry[];
  /** Hosts that may not be asked before. */
  late: { hostId: number; until: number }[];
}

interface RobotsGateParts {
  store: { readonly frontier: Pick<Frontier, 'hostsNamed' | 'postpone'> };
  job: Pick<Job, 'id' | 'spec'>;
  robots: RobotsCache;
  groups: HostGroups;
  givenUp: GivenUp;
}

/** Sees to it that robots.txt is asked for, at another host where it redirects there, before any page is. */
export class RobotsGate {
  readonly #parts: RobotsGateParts;
  readonly #limitsOf: HostLimiter;

  constructor(parts: RobotsGateParts) {
    this.#parts = parts;
    this.#limitsOf = compileHostLimits(parts.job.spec);
  }

  async check(grants: readonly Grant[], tasks: readonly LeasedTask[], now: number): Promise<Checked> {
    const { givenUp, robots, job } = this.#parts;
    const checked: Checked = { refused: [], robots: [], found: [], late: [] };
    const steps = new Map<string, RobotsStep>();
    for (const task of tasks) {
      const reason = givenUp.reasonFor(task.url);
      if (reason) {
        checked.refused.push(failedOf(task, reason));
        continue;
      }
      if (!job.spec.politeness.robots) continue;
      const origin = originOf(task.url);
      const asked = checked.robots.find((fetch) => fetch.origin === origin);
      if (asked) {
        // Where it is asked elsewhere, one task is sent with it, only so that the batch has one.
        if (asked.for !== undefined) checked.refused.push(this.#deferred(task, null));
        continue;
      }
      const permit = grants.findIndex((grant) => grant.hostId === task.hostId);
      const { host } = grants[permit]!.permit;
      let step = steps.get(origin);
      if (!step) {
        const rules = await robots.rulesOf(origin, host, now);
        if (rules?.allows(task.url)) continue;
        if (rules) {
          checked.refused.push({
            kind: 'skipped',
            taskId: task.id,
            code: 'robots',
            detail: null,
            trace: null,
          });
          continue;
        }
        step = await robots.nextStep(origin, host, now);
        steps.set(origin, step);
        if (step.kind === 'found') checked.found.push(step.entry);
        // It waits as a whole, unless others are counted together with it.
        if (step.kind === 'wait' && !this.#parts.groups.areShared)
          checked.late.push({ hostId: task.hostId, until: step.until });
      }
      const outcome = await this.#take(step, { task, origin, permit, host }, grants, checked, now);
      if (outcome) checked.refused.push(outcome);
    }
    return checked;
  }

  /** What becomes of a task whose rules are not known; null when it goes out, robots.txt first. */
  async #take(
    step: RobotsStep,
    about: { task: LeasedTask; origin: string; permit: number; host: string },
    grants: readonly Grant[],
    { robots: fetches }: Checked,
    now: number,
  ): Promise<Outcome | null> {
    const { robots } = this.#parts;
    const { task, origin, permit, host } = about;
    if (step.kind === 'unreachable')
      return failedOf(task, { code: 'robots-unreachable', detail: step.detail });
    if (step.kind === 'found') return this.#deferred(task, null);
    if (step.kind === 'wait') return this.#deferred(task, step.until);
    const { url } = step;
    const at = await this.#groupOf(url, origin, host);
    if (robots.isAsking(host) && fetches.every((fetch) => fetch.permit !== permit))
      return this.#deferred(task, null);
    if (at === host) {
      fetches.push(robots.ask(origin, { url, host, at }, { permit }));
      return null;
    }
    const piggybackedHost = grants.findIndex((grant) => grant.piggybackedHost?.host === at);
    if (
      piggybackedHost >= 0 &&
      fetches.every((fetch) => fetch.permit !== piggybackedHost) &&
      !robots.isAsking(at)
    ) {
      fetches.push(robots.ask(origin, { url, host, at }, { permit: piggybackedHost, for: permit }));
      return null;
    }
    const dueAt = this.#parts.groups.areShared ? now + LOOK_AGAIN_MS : now;
    robots.want(host, { url, at, dueAt });
    return this.#deferred(task, dueAt);
  }

  /**
   * Hosts whose robots.txt is at another host get a request there together with a task of their own, as soon as the other
   * has time for it. It has none for its own tasks meanwhile: those can go on for ever.
   */
  async withPiggybackedHosts(
    hosts: readonly PlanHost[],
    before: number,
    planHost: (host: DueHost) => PlanHost,
  ): Promise<PlanHost[]> {
    const { robots, groups } = this.#parts;
    if (!robots.hasWanted) return [...hosts];
    const wanting = hosts.filter(({ host }) => (robots.wantedBy(host)?.dueAt ?? before) < before);
    if (wanting.length === 0) return [...hosts];
    const others = await this.#othersFor(wanting);
    const taken = new Set<string>();
    const waiting = new Map<string, number>();
    const late: { hostId: number; until: number }[] = [];
    const stays = new Set(hosts);
    const first: PlanHost[] = [];
    for (const host of wanting) {
      const wanted = robots.wantedBy(host.host);
      // Answered while the store was asked for the others.
      if (!wanted) continue;
      const { at } = wanted;
      const other = others.get(at);
      const freeAt = other ? this.#freeAt(other, before) : null;
      const isTaken = taken.has(at) || taken.has(host.host) || robots.isAsking(at);
      const isFree = other && freeAt! <= before && !isTaken;
      const piggybackedHost = isFree ? planHost(other) : null;
      if (piggybackedHost && hasRoom(piggybackedHost, this.#limits)) {
        taken.add(at).add(host.host);
        // One is enough to ask with. Of hosts that are counted together, the others need not wait.
        first.push({ ...host, piggybackedHost, ready: groups.areShared ? host.ready : 1 });
        stays.delete(host);
        robots.dropWanted(host.host);
        continue;
      }
      if (groups.areShared) continue;
      stays.delete(host);
      const count = (waiting.get(at) ?? 0) + 1;
      waiting.set(at, count);
      if (freeAt !== null && freeAt > before + WAIT_MS_MAX) late.push({ hostId: host.id, until: freeAt });
      else if (count > WAITING_MAX) late.push({ hostId: host.id, until: before + LOOK_AGAIN_MS });
    }
    const { store, job } = this.#parts;
    if (late.length > 0) await store.frontier.postpone(job.id, late);
    return [...first, ...hosts.filter((host) => stays.has(host) && !taken.has(host.host))];
  }

  get #limits(): { parallel: number; probeAfter: number } {
    const { spec } = this.#parts.job;
    return { parallel: parallelOf(spec), probeAfter: spec.breaker.hostFailures };
  }

  async #othersFor(hosts: readonly PlanHost[]): Promise<Map<string, DueHost>> {
    const { robots, store } = this.#parts;
    const names = new Set<string>();
    for (const { host } of hosts) if (names.size < PIGGYBACKED_MAX) names.add(robots.wantedBy(host)!.at);
    const others = await store.frontier.hostsNamed([...names]);
    return new Map(others.map((other) => [other.host, other]));
  }

  #freeAt({ host, nextAt }: DueHost, now: number): number {
    return this.#limitsOf(host).window?.nextPermit(Math.max(nextAt, now)).opensAt ?? nextAt;
  }

  async #groupOf(url: string, origin: string, host: string): Promise<string> {
    if (url.startsWith(`${origin}/`)) return host;
    const name = new URL(url).host;
    return (await this.#parts.groups.of(() => [name]))(name);
  }

  #deferred({ id }: LeasedTask, until: number | null): Outcome {
    const isAlone = until === null || !this.#parts.groups.areShared;
    return isAlone ? { kind: 'deferred', taskId: id } : { kind: 'deferred', taskId: id, until };
  }
}

function failedOf(
  { id }: LeasedTask,
  reason: Pick<Extract<Outcome, { kind: 'failed' }>, 'code' | 'detail'>,
): Outcome {
  return { kind: 'failed', taskId: id, ...reason, page: null, retryAfterMs: null, trace: null };
}
