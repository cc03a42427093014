import type { BatchTask } from '../../core/batch/batch.ts';
import type { Outcome } from '../../core/batch/outcome.ts';
import { attemptDollars, usualDollars } from '../../core/cost/attempt-cost.ts';
import { PRICES_DEFAULT, type Prices } from '../../core/cost/cost.ts';
import {
  bestLevel,
  chanceOf,
  chooseLevel,
  dollarsOf,
  EXPLORE_SHARE,
  isHopeless,
  type LevelOption,
  meanOf,
  noteAttempt,
  RETRY_EVERY,
  reopened,
} from '../../core/escalation/cheapest.ts';
import { RETRY_SHARE, type Verdict, WORKS } from '../../core/escalation/score.ts';
import { BoundedMap } from '../../core/lru.ts';
import { templateOf } from '../../core/url/url.ts';
import { type HostScores, methodsJudged, type RouteLevels, type Scores } from './host-scores.ts';

/** Tasks whose failed levels are remembered, and those that explore; what is forgotten begins again. */
const TASKS_MAX = 50_000;

/** A task is not sent to a host more often than this in the same way, however little that costs. */
const FAILURES_MAX = 3;
/** Through a pool each attempt is another visitor. */
const POOL_FAILURES_MAX = 6;

/** What was paid for all attempts, and for those that explored in vain. */
export interface ExploreMoney {
  paid: number;
  explored: number;
}

/** What a task failed with: how often at each level, and the levels that cannot bring its page. */
interface FailedLevels {
  failed: Map<number, number>;
  barred: Set<number>;
}

/** Chooses levels by their cost per success; the decisions are in `core/escalation/cheapest.ts`. */
export class CheapestLevels {
  readonly #prices: Prices;
  readonly #exploreMax: number;
  readonly #random: () => number;
  readonly #failed = new BoundedMap<number, FailedLevels>(TASKS_MAX);
  /** By task that explores: what was set aside for it, and what its page would have cost otherwise. */
  readonly #exploring = new BoundedMap<number, { dollars: number; insteadOf: number }>(TASKS_MAX);
  /** By host: tasks since one of them last tried a hopeless level. */
  readonly #sinceRetry = new WeakMap<HostScores, number>();
  #money: ExploreMoney = { paid: 0, explored: 0 };

  constructor(exploreDollars: number, random: () => number, prices: Prices = PRICES_DEFAULT) {
    this.#exploreMax = exploreDollars;
    this.#random = random;
    this.#prices = prices;
  }

  get money(): Readonly<ExploreMoney> {
    return { ...this.#money };
  }

  load(money: ExploreMoney): void {
    this.#money = { ...money };
  }

  choose(task: BatchTask, entry: HostScores, routeLevels: RouteLevels): number {
    const known = this.#failed.get(task.id);
    const options = this.#optionsOf(entry, task.url, routeLevels, known);
    const allowance = Math.min(this.#exploreMax, this.#money.paid * EXPLORE_SHARE) - this.#money.explored;
    const isRetryDue = options.some((option) => option.isHopeless) && this.#isRetryDue(entry);
    const { level, explores } = chooseLevel(options, { allowance, isRetryDue }, this.#random);
    if (explores) {
      this.#money.explored += explores.dollars;
      this.#exploring.set(task.id, explores);
    }
    return level;
  }

  #isRetryDue(entry: HostScores): boolean {
    const count = (this.#sinceRetry.get(entry) ?? Math.floor(this.#random() * RETRY_EVERY)) + 1;
    this.#sinceRetry.set(entry, count % RETRY_EVERY);
    return count >= RETRY_EVERY;
  }

  /** Whether the level that a host would get has never been tried there. */
  isUnsure(entry: HostScores): boolean {
    const { levels, scores } = entry;
    if (levels === null) return false;
    const { level, isHopeless: failsHere } = bestLevel(
      this.#optionsOf(entry, null, { levels, learnsScripts: false }),
    );
    const tries = scores[levels[level]!.methodName]?.costs?.first;
    // One answer is enough; refusals must tell first that they are no accident.
    return (tries?.wins ?? 0) === 0 && !failsHere;
  }

  /** Notes what an attempt cost and brought. The verdict is null when it says nothing of the level. */
  note(
    entry: HostScores,
    task: BatchTask,
    routeLevels: RouteLevels,
    verdict: Verdict | null,
    outcome: Outcome,
  ): void {
    const { id, url, fetchMethod } = task;
    const trace = outcome.kind === 'deferred' ? null : outcome.trace;
    if (trace === null) return;
    const dollars = attemptDollars(
      {
        fetcher: fetchMethod!.fetcher,
        isProxied: Boolean(trace.via?.proxy ?? fetchMethod!.pool),
        bytes: trace.bytes,
        durationMs: trace.durationMs,
        credits: trace.via?.cost ?? 1,
      },
      this.#prices,
    );
    this.#money.paid += dollars;
    const isWon = verdict === null ? null : verdict === 'answered';
    this.#settleExploring(id, isWon);
    const isAgain = this.#failed.get(id)?.failed.has(fetchMethod!.level) ?? false;
    const method = routeLevels.levels[fetchMethod!.level]!.methodName;
    const judged = verdict === null ? [method] : methodsJudged(routeLevels, fetchMethod!.level, verdict);
    if (isWon) this.#reopen(entry, url, method);
    for (const scores of [entry.scores, entry.templates.get(templateOf(url))]) {
      if (!scores) continue;
      for (const name of judged)
        noteCosts(scores, name, { isWon, isAgain, dollars: name === method ? dollars : null });
    }
    if (isWon) this.#failed.delete(id);
  }

  /** A method that was hopeless for a template works there: it may work for the others again, too. */
  #reopen(entry: HostScores, url: string, method: string): void {
    const own = entry.templates.get(templateOf(url));
    const ofHost = entry.scores[method]?.costs;
    if (!isHopeless(chanceOf(own?.[method]?.costs, ofHost, 0))) return;
    for (const scores of entry.templates.values()) {
      const known = scores[method];
      if (scores !== own && known?.costs) scores[method] = { ...known, costs: reopened(known.costs) };
    }
  }

  /** The task failed: whether another attempt may bring its page. `isOwn`: what failed may be the page's own affair. */
  escalates(entry: HostScores, task: BatchTask, routeLevels: RouteLevels, verdict: Verdict): boolean {
    const { level } = task.fetchMethod!;
    const { levels, learnsScripts } = routeLevels;
    const known = this.#failed.get(task.id) ?? { failed: new Map(), barred: new Set() };
    const before = this.#optionsOf(entry, task.url, routeLevels).filter(({ level: one }) =>
      known.failed.has(one),
    );
    // Where it fails while similar pages are answered, one other level is tried and no more.
    const isOwn = verdict !== 'refused' && before.some(({ chance }) => meanOf(chance) >= WORKS);
    known.failed.set(level, (known.failed.get(level) ?? 0) + 1);
    const isLacking = verdict === 'scripts' || verdict === 'lacking';
    const failuresMax = task.fetchMethod!.pool === null ? FAILURES_MAX : POOL_FAILURES_MAX;
    if (isLacking || known.failed.get(level)! >= failuresMax) known.barred.add(level);
    if (isLacking && learnsScripts)
      for (const { level: one, fetcher } of levels)
        if (fetcher === 'http' || fetcher === 'impersonate') known.barred.add(one);
    this.#failed.set(task.id, known);
    if (known.barred.size >= levels.length) return false;
    const left = this.#optionsOf(entry, task.url, routeLevels, known);
    if (verdict === 'scripts') return true;
    return !isOwn && (left.some((option) => !option.isHopeless) || this.#random() < RETRY_SHARE);
  }

  /** Of every level that the task may take. Without a URL: of the host. */
  #optionsOf(
    entry: HostScores,
    url: string | null,
    { levels }: RouteLevels,
    known?: FailedLevels,
  ): LevelOption[] {
    const own = url === null ? undefined : entry.templates.get(templateOf(url));
    const options = levels.map(({ level, methodName, fetcher, pool }) => {
      const ofTemplate = own?.[methodName]?.costs;
      const ofHost = entry.scores[methodName]?.costs;
      const dollars = dollarsOf(ofTemplate, ofHost);
      const usual = usualDollars({ fetcher, pool }, this.#prices);
      return {
        level,
        dollars: dollars?.won ?? Math.max(dollars?.all ?? 0, usual.least),
        dollarsMost: dollars?.won ?? Math.max(dollars?.all ?? 0, usual.most),
        dollarsLost: dollars?.lost ?? dollars?.all ?? usual.least,
        chance: chanceOf(ofTemplate, ofHost, known?.failed.get(level) ?? 0),
        isHopeless: isHopeless(chanceOf(ofTemplate, ofHost, 0)),
        isNew: ofTemplate === undefined,
      };
    });
    const open = options.filter(({ level }) => !known?.barred.has(level));
    return open.length > 0 ? open : options;
  }

  /** A page that exploring brought would have cost something anyway. */
  #settleExploring(taskId: number, isWon: boolean | null): void {
    const explores = this.#exploring.get(taskId);
    if (!explores) return;
    this.#exploring.delete(taskId);
    if (isWon) this.#money.explored -= Math.min(explores.dollars, explores.insteadOf);
  }
}

function noteCosts(scores: Scores, name: string, attempt: Parameters<typeof noteAttempt>[1]): void {
  const score = scores[name] ?? { tries: 0, rate: 0, at: 0 };
  scores[name] = { ...score, costs: noteAttempt(score.costs, attempt) };
}
