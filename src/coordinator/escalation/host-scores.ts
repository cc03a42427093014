import type { BatchTask } from '../../core/batch/batch.ts';
import { type EscalationLevel, escalationLevels, fetcherOfRoute } from '../../core/escalation/escalation.ts';
import { addTry, type Score, type ScoreOf, type Verdict } from '../../core/escalation/score.ts';
import type { JobSpec } from '../../core/job-schema/job.ts';
import { compilePatterns } from '../../core/url/pattern.ts';
import { templateOf } from '../../core/url/url.ts';
import { type HostIdentities, noIdentities } from './identities.ts';

/** What is known of one host: how each way of asking fared, for it all and by URL template. */

/** By way of asking. */
export type Scores = Record<string, Score>;

export interface HostScores {
  scores: Scores;
  templates: Map<string, Scores>;
  identities: HostIdentities;
  /** The longest that its tasks were seen to have; null when all go the plain way. */
  levels: EscalationLevel[] | null;
  /** Some task of it went to a browser. */
  renders: boolean;
}

export function newHost(): HostScores {
  return { scores: {}, templates: new Map(), identities: noIdentities(), levels: null, renders: false };
}

export function scoresFor(
  entry: HostScores,
  { url }: BatchTask,
  { levels, scriptsKey }: RouteLevels,
): Record<'ofTemplate' | 'ofHost', ScoreOf> {
  const own = entry.templates.get(templateOf(url));
  const alike = scriptsKey === null ? undefined : entry.templates.get(scriptsKey);
  return {
    ofTemplate: (level) => own?.[levels[level]!.methodName] ?? alike?.[levels[level]!.methodName],
    ofHost: (level) => entry.scores[levels[level]!.methodName],
  };
}

/**
 * What the host taught is a guess about a route of which nothing is known yet: one of its tasks tries the cheap way at
 * once, as if the guess were old, and decides.
 */
export function guessRoute(entry: HostScores, { scriptsKey }: RouteLevels): void {
  if (scriptsKey === null || entry.templates.has(scriptsKey)) return;
  const known = Object.entries(entry.scores);
  if (known.length === 0) return;
  const guess = known.map(([way, { rate }]) => [way, { tries: 0, rate, at: 0 }]);
  entry.templates.set(scriptsKey, Object.fromEntries(guess));
}

/** The level at which pages that need scripts go on; null when there is none above. */
export function renderingLevel({ levels, scriptsKey }: RouteLevels, level: number): number | null {
  if (scriptsKey === null || levels[level]!.fetcher === 'browser') return null;
  const above = levels.findIndex(({ fetcher }, index) => index > level && fetcher === 'browser');
  return above === -1 ? null : above;
}

/** How many levels a refused page may take. */
export function refusalLevels({ levels }: RouteLevels): number {
  return levels.at(-1)!.onlyForScripts ? levels.length - 1 : levels.length;
}

/**
 * What a verdict is about. Without a browser, a page that needs scripts is the same nothing in every way. A refusal
 * without another way is no reason for the browser that stands by for scripts.
 */
export function methodsJudged(ways: RouteLevels, level: number, verdict: Verdict): string[] {
  const { levels, scriptsKey } = ways;
  const { methodName: way, fetcher } = levels[level]!;
  const isRefusal = verdict === 'refused' || verdict === 'forbidden';
  if (isRefusal && levels[level + 1]?.onlyForScripts) return [];
  const wants = scriptsKey !== null && (verdict === 'scripts' || verdict === 'lacking');
  if (!wants || fetcher === 'browser') return [way];
  return levels
    .filter((other) => other.fetcher !== 'browser' && other.fetcher !== 'api')
    .map((one) => one.methodName);
}

/** What one more try makes of what is known of these ways. */
export function tried(
  known: Scores | undefined,
  ways: readonly string[],
  success: boolean,
  now: number,
): Scores {
  return Object.fromEntries(ways.map((way) => [way, addTry(known?.[way], success, now)]));
}

/** The ways of one route. */
export interface RouteLevels {
  levels: EscalationLevel[];
  /** Under which a route that takes a browser where pages need one keeps what it learns; null for others. */
  scriptsKey: string | null;
}

/** The ways of asking that a job allows, by the route of a task. */
export class LevelsByRoute {
  readonly #routes: (RouteLevels & { name: string; matches: (url: string) => boolean })[];
  readonly #ofNone: RouteLevels;

  constructor(spec: JobSpec) {
    this.#routes = spec.routes.map((route) => ({
      name: route.name,
      matches: route.match ? compilePatterns(route.match) : () => true,
      levels: escalationLevels(route, spec),
      // Pages of a route are alike also where their URLs are not: titles in paths make templates of their own.
      scriptsKey: fetcherOfRoute(route) === 'auto' ? `@route ${route.name}` : null,
    }));
    this.#ofNone = { levels: escalationLevels(null, spec), scriptsKey: null };
  }

  some(test: (levels: EscalationLevel[]) => boolean): boolean {
    return [this.#ofNone, ...this.#routes].some(({ levels }) => test(levels));
  }

  of({ route, url }: BatchTask): RouteLevels {
    const found =
      route === null
        ? this.#routes.find(({ matches }) => matches(url))
        : this.#routes.find(({ name }) => name === route);
    return found ?? this.#ofNone;
  }
}
