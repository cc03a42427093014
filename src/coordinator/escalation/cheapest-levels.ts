import type { BatchTask } from '../../core/batch/batch.ts';
import type { Outcome } from '../../core/batch/outcome.ts';
import { attemptDollars, type SeenBytes, USUAL_SPREAD, usualDollars } from '../../core/cost/attempt-cost.ts';
import { PRICES_DEFAULT, type Prices } from '../../core/cost/cost.ts';
import {
  bestLevel,
  chanceOf,
  chooseLevel,
  dollarsOf,
  EXPLORE_SHARE,
  isHopeless,
  isRetryDue,
  type LevelOption,
  type MethodCosts,
  meanOf,
  type NotedAttempt,
  noteAttempt,
  plainOf,
  reopened,
  surestLevel,
  withPlain,
} from '../../core/escalation/cheapest.ts';
import type { EscalationLevel } from '../../core/escalation/escalation.ts';
import { RETRY_SHARE, type Verdict, WORKS } from '../../core/escalation/score.ts';
import { BoundedMap } from '../../core/lru.ts';
import { templateOf } from '../../core/url/url.ts';
import { type HostScores, methodsJudged, type RouteLevels, type Scores } from './host-scores.ts';

/** Tasks whose failed levels are remembered, and those that explore; what is forgotten begins again. */
const TASKS_MAX = 50_000;

/**
 * A task is not sent to a host more often than this in the same way, however little that costs. At sites that refuse by chance
 * it is the cheapest thing to do: with three, a thousand pages cost up to eight times as much.
 */
const FAILURES_MAX = 6;

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

  choose(task: BatchTask, entry: HostScores, routeLevels: RouteLevels, attemptsMax: number): number {
    const known = this.#failed.get(task.id);
    const options = this.#optionsOf(entry, task.url, routeLevels, known);
    const surest = known ? surestLevel(options, attemptsMax + 1 - task.attempt) : null;
    if (surest !== null) return surest;
    const allowance = Math.min(this.#exploreMax, this.#money.paid * EXPLORE_SHARE) - this.#money.explored;
    const tasksSince = (this.#sinceRetry.get(entry) ?? 0) + 1;
    const mayRetry = options.some((option) => option.isHopeless) && isRetryDue(options, tasksSince);
    const { level, explores } = chooseLevel(options, { allowance, mayRetry }, this.#random);
    const isRetry = options.some((option) => option.level === level && option.isHopeless);
    this.#sinceRetry.set(entry, isRetry ? 0 : tasksSince);
    if (explores) {
      this.#money.explored += explores.dollars;
      this.#exploring.set(task.id, explores);
    }
    return level;
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
    const rendersNot = isWithoutBrowser(fetchMethod!) && routeLevels.learnsScripts;
    const isShell = verdict === 'scripts' || verdict === 'lacking';
    const attempt: NotedAttempt = {
      ...{ isWon, isAgain, dollars },
      isPlain: rendersNot && (isWon || isShell) ? !isShell : undefined,
      bytes: fetchMethod!.fetcher === 'api' ? undefined : trace.bytes,
    };
    if (isWon) this.#reopen(entry, url, method, fetchMethod!.pool !== null);
    const isJudged = verdict === null || methodsJudged(routeLevels, fetchMethod!.level, verdict).length > 0;
    for (const scores of [entry.scores, entry.templates.get(templateOf(url))])
      if (scores && isJudged) noteCosts(scores, method, attempt);
    if (isWon) this.#failed.delete(id);
  }

  /** A method that was hopeless for a template works there: it may work for the others again, too. */
  #reopen(entry: HostScores, url: string, method: string, isPooled: boolean): void {
    const own = entry.templates.get(templateOf(url));
    const ofHost = entry.scores[method]?.costs;
    if (!isHopeless(chanceOf(own?.[method]?.costs, ofHost, 0), isPooled)) return;
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
    if (isLacking || known.failed.get(level)! >= FAILURES_MAX) known.barred.add(level);
    if (isLacking && learnsScripts)
      for (const { level: one, fetcher } of levels) if (isWithoutBrowser({ fetcher })) known.barred.add(one);
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
    { levels, learnsScripts }: RouteLevels,
    known?: FailedLevels,
  ): LevelOption[] {
    const own = url === null ? undefined : entry.templates.get(templateOf(url));
    const ofTemplate = (name: string) => own?.[name]?.costs;
    const ofHost = (name: string) => entry.scores[name]?.costs;
    const plainNames = levels.filter(isWithoutBrowser).map(({ methodName }) => methodName);
    const plain = learnsScripts ? plainOf(plainNames.map(ofTemplate), plainNames.map(ofHost)) : null;
    const options = levels.map((one): LevelOption => {
      const { level, methodName } = one;
      const isPooled = one.pool !== null;
      const [template, host] = [ofTemplate(methodName), ofHost(methodName)];
      const dollars = dollarsOf(template, host);
      const usual = usualDollars(one, this.#prices, seenBytes(one, levels, ofTemplate, ofHost));
      const least = Math.max(dollars?.all ?? 0, usual.least);
      // Pages of another template may be much smaller, or larger.
      const isBySize = isPooled || one.fetcher === 'browser';
      const spread = own !== undefined && template?.won === undefined && isBySize ? USUAL_SPREAD : 1;
      const letIn = (failures: number) => chanceOf(template, host, failures, isPooled);
      const factor = isWithoutBrowser(one) ? plain : null;
      const chance = (failures: number) => (factor ? withPlain(letIn(failures), factor) : letIn(failures));
      return {
        level,
        dollars: dollars?.won ?? least,
        dollarsLeast: dollars?.won != null ? dollars.won / spread : least,
        dollarsMost: dollars?.won != null ? dollars.won * spread : Math.max(dollars?.all ?? 0, usual.most),
        dollarsLost: dollars?.lost ?? dollars?.all ?? usual.least,
        chance: chance(known?.failed.get(level) ?? 0),
        isHopeless: isHopeless(chance(0), isPooled) || (factor !== null && isHopeless(factor)),
        isNew: template === undefined,
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

function isWithoutBrowser({ fetcher }: Pick<EscalationLevel, 'fetcher'>): boolean {
  return fetcher === 'http' || fetcher === 'impersonate';
}

/** How large pages were, as a document and with all that a browser loads for it. What a proxy will take depends on it. */
function seenBytes(
  { fetcher }: EscalationLevel,
  levels: readonly EscalationLevel[],
  ...known: ((methodName: string) => MethodCosts | undefined)[]
): SeenBytes {
  const bytesOf = (isAsked: (level: EscalationLevel) => boolean) => {
    for (const of of known)
      for (const level of levels) {
        const bytes = isAsked(level) ? of(level.methodName)?.bytes : undefined;
        if (bytes !== undefined) return bytes;
      }
    return null;
  };
  return {
    document: bytesOf(isWithoutBrowser),
    browser: fetcher === 'browser' ? bytesOf((level) => level.fetcher === 'browser') : null,
  };
}

function noteCosts(scores: Scores, name: string, attempt: NotedAttempt): void {
  const score = scores[name] ?? { tries: 0, rate: 0, at: 0 };
  scores[name] = { ...score, costs: noteAttempt(score.costs, attempt) };
}
