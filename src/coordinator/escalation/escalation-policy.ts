import type { Batch, BatchTask, OriginCookies } from '../../core/batch/batch.ts';
import type { Outcome } from '../../core/batch/outcome.ts';
import { type Approach, approachOf, isPlain, ladderOf } from '../../core/escalation/escalation.ts';
import {
  cheapestRung,
  isHopeful,
  rungToRetry,
  type Verdict,
  verdictOf,
  worksBelow,
} from '../../core/escalation/score.ts';
import type { JobSpec } from '../../core/job-schema/job.ts';
import { LIMITS } from '../../core/limits.ts';
import { templateOf } from '../../core/url/url.ts';
import { originOf } from '../../core/url/url-shape.ts';
import type { ApproachRow } from '../../ports/store.ts';
import {
  guessRoute,
  type HostWays,
  type Ladder,
  Ladders,
  newHost,
  refusalRungs,
  renderingRung,
  type Scores,
  scoresFor,
  tried,
  waysJudged,
} from './host-scores.ts';
import { CookieBook, noteIdentity, pickIdentity } from './identities.ts';

/** Rows that keep cookies; templates begin with a host. */
const COOKIES = '@cookies ';
/** Tasks that try an approach of which nothing is known yet, before the others follow. */
export const SCOUTS = 4;

/** Null when every request of the job goes the plain way, as for nearly all jobs. */
export function openApproachBook(spec: JobSpec, jobName: string, random: () => number): ApproachBook | null {
  const ladders = [null, ...spec.routes].map((route) => ladderOf(route, spec));
  if (ladders.every(isPlain) && spec.identity.cookies !== true) return null;
  return new ApproachBook(spec, jobName, random);
}

/** Which way of asking works where: chosen for each task, learned from what became of it. */
export class ApproachBook {
  readonly #spec: JobSpec;
  readonly #jobName: string;
  readonly #random: () => number;
  readonly #ladders: Ladders;
  readonly #hosts = new Map<string, HostWays>();
  readonly #cookies = new CookieBook();
  /** By task: the cheapest rung that it may take after a refusal. */
  readonly #floors = new Map<number, number>();
  readonly #changed = new Map<string, { host: string; template: string }>();

  constructor(spec: JobSpec, jobName: string, random: () => number) {
    this.#spec = spec;
    this.#jobName = jobName;
    this.#random = random;
    this.#ladders = new Ladders(spec);
  }

  /** Whether only a few tasks should be sent to a host for now, as nobody knows how it will answer. */
  isUnsure(host: string): boolean {
    const entry = this.#hosts.get(host);
    if (!entry) return this.#ladders.some(({ length }) => length > 1);
    const { ladder, scores } = entry;
    if (ladder === null) return false;
    const scoreOf = (rung: number) => scores[ladder[rung]!.way];
    return scoreOf(cheapestRung(ladder.length, scoreOf)) === undefined;
  }

  /** Whether tasks of the host go to a browser, as far as is known. */
  renders(host: string): boolean {
    return this.#hosts.get(host)?.renders || this.#ladders.some(([first]) => first!.fetcher === 'browser');
  }

  /** Gives each task of a batch its approach, and the batch the cookies that go with them. */
  assign(batch: Batch, now: number): void {
    const identities = new Map<string, string>();
    const wanted: { origin: string; identity: string | null }[] = [];
    for (const task of batch.tasks) {
      const ways = this.#ladders.of(task);
      const { ladder } = ways;
      const { host } = batch.permits[task.permit]!;
      const entry = this.#entryOf(host);
      if (ladder.length > (entry.ladder?.length ?? 1)) entry.ladder = ladder;
      if (isPlain(ladder) && this.#spec.identity.cookies !== true) continue;
      const rung = ladder[this.#rungFor(task, host, ways, now)]!;
      const identity = rung.browserLike ? this.#identityFor(host, rung.otherIdentity, identities) : null;
      task.approach = approachOf(rung, identity);
      entry.renders ||= rung.fetcher === 'browser';
      if (this.#keepsCookies(task.approach)) wanted.push({ origin: originOf(task.url), identity });
    }
    if (wanted.length > 0) batch.cookies = this.#cookies.of(wanted);
  }

  /**
   * Learns from what became of tasks, and returns those that were refused but may go on at a higher rung. A task climbs
   * one rung for each attempt. A page that is forbidden or incomplete where others are not climbs one rung in all. A page
   * that needs scripts goes to the browser at once, where its route has one for that.
   */
  learn(done: readonly { task: BatchTask; host: string; outcome: Outcome }[], now: number): Set<number> {
    const climbing = new Set<number>();
    for (const { task, host, outcome } of done) {
      const { approach } = task;
      if (!approach || outcome.kind === 'deferred') continue;
      const verdict = verdictOf(outcome);
      if (verdict === null) continue;
      const entry = this.#entryOf(host);
      const ways = this.#ladders.of(task);
      const { ofTemplate, ofHost } = scoresFor(entry, task, ways);
      const isOwn = verdict !== 'refused' && worksBelow(approach.rung, ofTemplate, ofHost);
      this.#note(entry, host, task, ways, verdict, now);
      if (verdict === 'answered') {
        this.#floors.delete(task.id);
        continue;
      }
      const rendering = renderingRung(ways, approach.rung);
      const isLacking = verdict === 'scripts' || verdict === 'lacking';
      const count = isLacking ? ways.ladder.length : refusalRungs(ways);
      const mayClimb = !isOwn && isHopeful(approach.rung, count, ofTemplate, this.#random);
      if (isLacking && rendering !== null && (mayClimb || verdict === 'scripts')) {
        this.#raise(task.id, rendering);
        climbing.add(task.id);
        continue;
      }
      if (mayClimb) this.#raise(task.id, approach.rung + 1);
      // Through a proxy the next attempt is another visitor to the host, on the same rung too.
      const { attempts } = this.#spec.retry;
      const attemptsMax = mayClimb ? attempts + count : approach.pool === null ? 0 : attempts;
      if (verdict !== 'lacking' && task.attempt < attemptsMax) climbing.add(task.id);
    }
    return climbing;
  }

  takeCookies(jars: readonly OriginCookies[]): void {
    this.#cookies.take(jars);
  }

  load(rows: readonly ApproachRow[]): void {
    for (const { host, template, stats } of rows) {
      if (template.startsWith(COOKIES)) this.#cookies.take([stats as OriginCookies]);
      else if (template === '') Object.assign(this.#entryOf(host), stats);
      else this.#entryOf(host).templates.set(template, stats as Scores);
    }
    this.#cookies.takeChanges();
  }

  /** What is to be written down since the last call; null stands for what is gone. */
  takeChanges(): ApproachRow[] {
    const rows: ApproachRow[] = [];
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
    return rows;
  }

  #rungFor(task: BatchTask, host: string, ways: Ladder, now: number): number {
    const { ladder } = ways;
    if (ladder.length === 1) return 0;
    const entry = this.#entryOf(host);
    guessRoute(entry, ways);
    const { ofTemplate, ofHost } = scoresFor(entry, task, ways);
    const scoreOf = (rung: number) => ofTemplate(rung) ?? ofHost(rung);
    const floor = this.#floors.get(task.id) ?? 0;
    const rung = cheapestRung(ladder.length, scoreOf, floor);
    if (floor > 0) return rung;
    const again = rungToRetry(rung, scoreOf, now, this.#random);
    if (again === null) return rung;
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

  #keepsCookies({ identity }: Approach): boolean {
    const { cookies } = this.#spec.identity;
    return identity === null ? cookies === true : cookies !== false;
  }

  #note(
    entry: HostWays,
    host: string,
    { url, approach }: BatchTask,
    ways: Ladder,
    verdict: Verdict,
    now: number,
  ): void {
    const success = verdict === 'answered';
    const isLacking = verdict === 'lacking' || verdict === 'scripts';
    const judged = waysJudged(ways, approach!.rung, verdict);
    for (const template of [templateOf(url), ways.scriptsKey]) {
      if (template === null) continue;
      const known = entry.templates.get(template);
      const hasRoom = entry.templates.size < LIMITS.approachTemplatesMax || template === ways.scriptsKey;
      if (!known && !hasRoom) continue;
      entry.templates.set(template, { ...known, ...tried(known, judged, success, now) });
      this.#changed.set(`${host} ${template}`, { host, template });
    }
    this.#changed.set(host, { host, template: '' });
    // A page that lacks something says nothing of the identity, or of the host unless a browser stands by for it.
    if (!isLacking || ways.scriptsKey !== null)
      Object.assign(entry.scores, tried(entry.scores, judged, success, now));
    const identity = isLacking ? null : approach!.identity;
    if (identity !== null && noteIdentity(entry.identities, identity, success, now))
      this.#cookies.drop(identity);
  }

  #raise(taskId: number, floor: number): void {
    this.#floors.delete(taskId);
    this.#floors.set(taskId, floor);
    if (this.#floors.size <= LIMITS.approachTasksMax) return;
    this.#floors.delete(this.#floors.keys().next().value!);
  }

  #entryOf(host: string): HostWays {
    let entry = this.#hosts.get(host);
    if (entry) return entry;
    if (this.#hosts.size >= LIMITS.approachHostsMax) this.#hosts.delete(this.#hosts.keys().next().value!);
    entry = newHost();
    this.#hosts.set(host, entry);
    return entry;
  }
}
