import type { BatchTask, OriginCookies } from '../../core/batch/batch.ts';
import type { Outcome } from '../../core/batch/outcome.ts';
import type { Prices } from '../../core/cost/cost.ts';
import {
  escalationLevels,
  type FetchMethod,
  fetchMethodOf,
  isPlain,
} from '../../core/escalation/escalation.ts';
import {
  cheapestLevel,
  isHopeful,
  levelToRetry,
  type Verdict,
  verdictOf,
  worksBelow,
} from '../../core/escalation/score.ts';
import type { JobSpec } from '../../core/job-schema/job.ts';
import { BoundedMap } from '../../core/lru.ts';
import { rowProxyOf } from '../../core/proxies/row-proxy.ts';
import { templateOf } from '../../core/url/url.ts';
import { originOf } from '../../core/url/url-shape.ts';
import type { EscalationRow } from '../../ports/store.ts';
import { CookieJars } from '../cookies/cookie-jars.ts';
import { CheapestLevels, type ExploreMoney } from './cheapest-levels.ts';
import {
  ALL_PAGES,
  folderOf,
  guessFolder,
  type HostScores,
  LevelsByRoute,
  methodsJudged,
  newHost,
  type RouteLevels,
  refusalLevels,
  renderingLevel,
  type Scores,
  scoresFor,
  tried,
} from './host-scores.ts';
import { noteIdentity, pickIdentity } from './identities.ts';

/** Hosts whose working methods are remembered. */
const ESCALATION_HOSTS_MAX = 20_000;
/** URL templates and folders of a host; URLs of others use what is known of their host. */
const ESCALATION_TEMPLATES_MAX = 100;
/** Refused tasks that wait for another way; a task that is forgotten begins again at the bottom. */
const ESCALATION_TASKS_MAX = 50_000;

/** Rows that keep cookies; templates begin with a host. */
const COOKIES = '@cookies ';
/** The row of what exploring cost; it is of no host. */
export const EXPLORE_MONEY = '@explored';
/** Tasks that try a fetch method of which nothing is known yet, before the others follow. */
export const SCOUTS = 4;

/** What of a batch is looked at and changed. */
export interface EscalatedBatch {
  tasks: BatchTask[];
  permits: readonly { host: string }[];
  cookies?: OriginCookies[];
}

/** Null when every request of the job goes the plain way, as for nearly all jobs. */
export function openEscalationPolicy(
  spec: JobSpec,
  jobName: string,
  random: () => number,
  prices?: Prices,
): EscalationPolicy | null {
  const levelsByRoute = [null, ...spec.routes].map((route) => escalationLevels(route, spec));
  // Rows of sources may name a pool.
  if (levelsByRoute.every(isPlain) && spec.identity.cookies !== true && !spec.proxies) return null;
  return new EscalationPolicy(spec, jobName, random, prices);
}

/** Which way of asking works where: chosen for each task, learned from what became of it. */
export class EscalationPolicy {
  readonly #spec: JobSpec;
  readonly #jobName: string;
  readonly #random: () => number;
  readonly #levels: LevelsByRoute;
  readonly #hosts = new BoundedMap<string, HostScores>(ESCALATION_HOSTS_MAX);
  readonly #cookies = new CookieJars();
  /** By task: the cheapest level that it may take after a refusal. */
  readonly #floors = new BoundedMap<number, number>(ESCALATION_TASKS_MAX);
  readonly #changed = new Map<string, { host: string; template: string }>();
  /** Null unless the job compares costs. */
  readonly #cheapest: CheapestLevels | null;

  constructor(spec: JobSpec, jobName: string, random: () => number, prices?: Prices) {
    this.#spec = spec;
    this.#jobName = jobName;
    this.#random = random;
    this.#levels = new LevelsByRoute(spec);
    // Jobs of earlier versions do not have the field.
    this.#cheapest =
      spec.escalation?.choose === 'cheapest'
        ? new CheapestLevels(spec.escalation.exploreDollars, random, prices)
        : null;
  }

  /** Whether only a few tasks should be sent to a host for now, as it is not known how it will answer. */
  isUnsure(host: string): boolean {
    const entry = this.#hosts.get(host);
    if (!entry) return this.#levels.some(({ length }) => length > 1);
    const { levels, scores, reads } = entry;
    if (levels === null) return false;
    if (this.#cheapest) return this.#cheapest.isUnsure(entry);
    const scoreOf = (level: number) => scores[levels[level]!.methodName];
    const level = cheapestLevel(levels.length, scoreOf);
    return scoreOf(level) === undefined && !(level === 0 && reads >= SCOUTS);
  }

  /** Whether tasks of the host go to a browser, as far as is known. */
  renders(host: string): boolean {
    return this.#hosts.get(host)?.renders || this.#levels.some(([first]) => first!.fetcher === 'browser');
  }

  /** Gives each task of a batch its fetch method, and the batch the cookies that go with them. */
  assign(batch: EscalatedBatch, now: number): void {
    const identities = new Map<string, string>();
    const wanted: { origin: string; identity: string | null }[] = [];
    for (const task of batch.tasks) {
      const routeLevels = this.#levels.of(task);
      const { levels } = routeLevels;
      const { host } = batch.permits[task.permit]!;
      const entry = this.#entryOf(host);
      if (levels.length > (entry.levels?.length ?? 1)) entry.levels = levels;
      const pool = this.#poolOfRow(task);
      if (isPlain(levels) && pool === null && this.#spec.identity.cookies !== true) continue;
      const level = levels[this.#levelFor(task, host, routeLevels, now)]!;
      const identity = level.browserLike ? this.#identityFor(host, level.otherIdentity, identities) : null;
      // The API asks from addresses of its own.
      const own = pool === null || level.fetcher === 'api' ? level : { ...level, pool };
      task.fetchMethod = fetchMethodOf(own, identity);
      entry.renders ||= level.fetcher === 'browser';
      if (this.#keepsCookies(task.fetchMethod)) wanted.push({ origin: originOf(task.url), identity });
    }
    if (wanted.length > 0) batch.cookies = this.#cookies.of(wanted);
  }

  #poolOfRow({ meta }: BatchTask): string | null {
    const { pool } = rowProxyOf(meta);
    return pool !== undefined && Object.hasOwn(this.#spec.proxies?.pools ?? {}, pool) ? pool : null;
  }

  /**
   * Learns from what became of tasks, and returns those that were refused but may go on at a higher level. A task escalates
   * one level for each attempt. A page that is forbidden or incomplete where others are not escalates one level in all. A page
   * that needs scripts goes to the browser at once, where its route has one for that.
   */
  learn(done: readonly { task: BatchTask; host: string; outcome: Outcome }[], now: number): Set<number> {
    const escalating = new Set<number>();
    for (const { task, host, outcome } of done) {
      const { fetchMethod } = task;
      if (!fetchMethod || outcome.kind === 'deferred') continue;
      const verdict = verdictOf(outcome);
      const entry = this.#entryOf(host);
      const routeLevels = this.#levels.of(task);
      if (this.#cheapest) {
        if (this.#learnCosts(this.#cheapest, entry, { task, host, outcome }, verdict, now))
          escalating.add(task.id);
        continue;
      }
      if (verdict === null) continue;
      const { ofTemplate, ofHost } = scoresFor(entry, task, routeLevels);
      const isOwn = verdict !== 'refused' && worksBelow(fetchMethod.level, ofTemplate, ofHost);
      this.#note(entry, host, task, routeLevels, verdict, now);
      if (verdict === 'answered') {
        this.#floors.delete(task.id);
        continue;
      }
      const rendering = renderingLevel(routeLevels, fetchMethod.level);
      const isLacking = verdict === 'scripts' || verdict === 'lacking';
      const count = isLacking ? routeLevels.levels.length : refusalLevels(routeLevels);
      const mayEscalate = !isOwn && isHopeful(fetchMethod.level, count, ofTemplate, this.#random);
      if (isLacking && rendering !== null && (mayEscalate || verdict === 'scripts')) {
        this.#floors.set(task.id, rendering);
        escalating.add(task.id);
        continue;
      }
      if (mayEscalate) this.#floors.set(task.id, fetchMethod.level + 1);
      // Through a proxy the next attempt is another visitor to the host, on the same level too.
      const { attempts } = this.#spec.retry;
      const attemptsMax = mayEscalate ? attempts + count : fetchMethod.pool === null ? 0 : attempts;
      if (verdict !== 'lacking' && task.attempt < attemptsMax) escalating.add(task.id);
    }
    return escalating;
  }

  /** The same where levels are compared by their cost per success; true when the task goes on. */
  #learnCosts(
    cheapest: CheapestLevels,
    entry: HostScores,
    { task, host, outcome }: { task: BatchTask; host: string; outcome: Outcome },
    verdict: Verdict | null,
    now: number,
  ): boolean {
    const routeLevels = this.#levels.of(task);
    if (verdict !== null) this.#note(entry, host, task, routeLevels, verdict, now);
    cheapest.note(entry, task, routeLevels, verdict, outcome);
    this.#changed.set(host, { host, template: '' });
    if (verdict === null || verdict === 'answered') return false;
    const mayEscalate = cheapest.escalates(entry, task, routeLevels, verdict);
    // What a page lacks costs an attempt, unless a browser can make it up.
    if (verdict === 'lacking' && renderingLevel(routeLevels, task.fetchMethod!.level) === null) return false;
    return mayEscalate && (verdict === 'scripts' || task.attempt < this.#attemptsMax(routeLevels));
  }

  /**
   * Of a task whose levels are compared by cost. Where plain requests are refused by chance, a page that runs out of attempts
   * goes to a browser, which costs as much as a thousand of them: with `retry.attempts` once, two or three pages of a
   * thousand did, and such sites cost 11 % more than they had to, up to 2.7 times as much.
   */
  #attemptsMax({ levels }: RouteLevels): number {
    return 2 * this.#spec.retry.attempts + levels.length;
  }

  takeCookies(jars: readonly OriginCookies[]): void {
    this.#cookies.take(jars);
  }

  load(rows: readonly EscalationRow[]): void {
    for (const { host, template, stats } of rows) {
      if (template.startsWith(COOKIES)) this.#cookies.take([stats as OriginCookies]);
      else if (template === EXPLORE_MONEY) this.#cheapest?.load(stats as ExploreMoney);
      else if (template === '') Object.assign(this.#entryOf(host), stats);
      else {
        const entry = this.#entryOf(host);
        entry.templates.set(template, stats as Scores);
        entry.reads = SCOUTS;
      }
    }
    this.#cookies.takeChanges();
  }

  /** What is to be written down since the last call; null stands for what is gone. */
  takeChanges(): EscalationRow[] {
    const rows: EscalationRow[] = [];
    for (const { host, template } of this.#changed.values()) {
      const entry = this.#hosts.get(host);
      if (!entry) rows.push({ host, template, stats: null });
      else if (template === '')
        rows.push({ host, template, stats: { scores: entry.scores, identities: entry.identities } });
      else rows.push({ host, template, stats: entry.templates.get(template) ?? null });
    }
    this.#changed.clear();
    for (const { origin, identity, jar } of this.#cookies.takeChanges())
      rows.push({ host: origin, template: COOKIES + identity, stats: jar });
    if (this.#cheapest && rows.length > 0)
      rows.push({ host: '', template: EXPLORE_MONEY, stats: this.#cheapest.money });
    return rows;
  }

  #levelFor(task: BatchTask, host: string, routeLevels: RouteLevels, now: number): number {
    const { levels } = routeLevels;
    if (levels.length === 1) return 0;
    const entry = this.#entryOf(host);
    if (this.#cheapest)
      return this.#cheapest.choose(task, entry, routeLevels, this.#attemptsMax(routeLevels));
    guessFolder(entry, task, routeLevels);
    const { ofTemplate, ofHost } = scoresFor(entry, task, routeLevels);
    const scoreOf = (level: number) => ofTemplate(level) ?? ofHost(level);
    const floor = this.#floors.get(task.id) ?? 0;
    const level = cheapestLevel(levels.length, scoreOf, floor);
    if (floor > 0) return level;
    const again = levelToRetry(level, scoreOf, now, this.#random);
    if (again === null) return level;
    // One scout is enough: the others must not take it for stale, too.
    const score = scoreOf(again);
    if (score) score.at = now;
    return again;
  }

  #identityFor(host: string, other: boolean, chosen: Map<string, string>): string {
    const key = `${host} ${other}`;
    let identity = chosen.get(key);
    if (identity === undefined) {
      identity = pickIdentity(this.#entryOf(host).identities, `${this.#jobName} ${host}`, other);
      chosen.set(key, identity);
    }
    return identity;
  }

  #keepsCookies({ identity }: FetchMethod): boolean {
    const { cookies } = this.#spec.identity;
    return identity === null ? cookies === true : cookies !== false;
  }

  #note(
    entry: HostScores,
    host: string,
    { url, fetchMethod }: BatchTask,
    routeLevels: RouteLevels,
    verdict: Verdict,
    now: number,
  ): void {
    const success = verdict === 'answered';
    const isLacking = verdict === 'lacking' || verdict === 'scripts';
    const judged = methodsJudged(routeLevels, fetchMethod!.level, verdict);
    const scriptKeys = routeLevels.learnsScripts ? [folderOf(url), ALL_PAGES] : [];
    for (const template of [templateOf(url), ...scriptKeys]) {
      const known = entry.templates.get(template);
      // Those that were tried last are kept.
      entry.templates.delete(template);
      entry.templates.set(template, { ...known, ...tried(known, judged, success, now) });
      this.#changed.set(`${host} ${template}`, { host, template });
    }
    this.#forgetTemplates(entry, host);
    entry.reads++;
    this.#changed.set(host, { host, template: '' });
    // A page that lacks something says nothing of the identity, nor of the host.
    if (!isLacking) Object.assign(entry.scores, tried(entry.scores, judged, success, now));
    const identity = isLacking ? null : fetchMethod!.identity;
    if (identity !== null && noteIdentity(entry.identities, identity, success, now))
      this.#cookies.drop(identity);
  }

  #forgetTemplates(entry: HostScores, host: string): void {
    for (const template of entry.templates.keys()) {
      if (entry.templates.size <= ESCALATION_TEMPLATES_MAX) return;
      entry.templates.delete(template);
      this.#changed.set(`${host} ${template}`, { host, template });
    }
  }

  #entryOf(host: string): HostScores {
    let entry = this.#hosts.get(host);
    if (entry) return entry;
    entry = newHost();
    this.#hosts.set(host, entry);
    return entry;
  }
}
