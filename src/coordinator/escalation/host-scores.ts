import type { BatchTask } from '../../core/batch/batch.ts';
import { fetcherOfRoute, ladderOf, type Rung } from '../../core/escalation/escalation.ts';
import { addTry, type Score, type ScoreOf, type Verdict } from '../../core/escalation/score.ts';
import type { JobSpec } from '../../core/job-schema/job.ts';
import { compilePatterns } from '../../core/url/pattern.ts';
import { templateOf } from '../../core/url/url.ts';
import { type HostIdentities, noIdentities } from './identities.ts';

/** What is known of one host: how each way of asking fared, for it all and by URL template. */

/** By way of asking. */
export type Scores = Record<string, Score>;

export interface HostWays {
  scores: Scores;
  templates: Map<string, Scores>;
  identities: HostIdentities;
  /** The longest that its tasks were seen to have; null when all go the plain way. */
  ladder: Rung[] | null;
  /** Some task of it went to a browser. */
  renders: boolean;
}

export function newHost(): HostWays {
  return { scores: {}, templates: new Map(), identities: noIdentities(), ladder: null, renders: false };
}

export function scoresFor(
  entry: HostWays,
  { url }: BatchTask,
  { ladder, scriptsKey }: Ladder,
): Record<'ofTemplate' | 'ofHost', ScoreOf> {
  const own = entry.templates.get(templateOf(url));
  const alike = scriptsKey === null ? undefined : entry.templates.get(scriptsKey);
  return {
    ofTemplate: (rung) => own?.[ladder[rung]!.way] ?? alike?.[ladder[rung]!.way],
    ofHost: (rung) => entry.scores[ladder[rung]!.way],
  };
}

/**
 * What the host taught is a guess about a route of which nothing is known yet: one of its tasks tries the cheap way at
 * once, as if the guess were old, and decides.
 */
export function guessRoute(entry: HostWays, { scriptsKey }: Ladder): void {
  if (scriptsKey === null || entry.templates.has(scriptsKey)) return;
  const known = Object.entries(entry.scores);
  if (known.length === 0) return;
  const guess = known.map(([way, { rate }]) => [way, { tries: 0, rate, at: 0 }]);
  entry.templates.set(scriptsKey, Object.fromEntries(guess));
}

/** The rung at which pages that need scripts go on; null when there is none above. */
export function renderingRung({ ladder, scriptsKey }: Ladder, rung: number): number | null {
  if (scriptsKey === null || ladder[rung]!.fetcher === 'browser') return null;
  const above = ladder.findIndex(({ fetcher }, index) => index > rung && fetcher === 'browser');
  return above === -1 ? null : above;
}

/** How many rungs a refused page may take. */
export function refusalRungs({ ladder }: Ladder): number {
  return ladder.at(-1)!.onlyForScripts ? ladder.length - 1 : ladder.length;
}

/**
 * What a verdict is about. Without a browser, a page that needs scripts is the same nothing in every way. A refusal
 * without another way is no reason for the browser that stands by for scripts.
 */
export function waysJudged(ways: Ladder, rung: number, verdict: Verdict): string[] {
  const { ladder, scriptsKey } = ways;
  const { way, fetcher } = ladder[rung]!;
  const isRefusal = verdict === 'refused' || verdict === 'forbidden';
  if (isRefusal && ladder[rung + 1]?.onlyForScripts) return [];
  const wants = scriptsKey !== null && (verdict === 'scripts' || verdict === 'lacking');
  if (!wants || fetcher === 'browser') return [way];
  return ladder
    .filter((other) => other.fetcher !== 'browser' && other.fetcher !== 'api')
    .map((one) => one.way);
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
export interface Ladder {
  ladder: Rung[];
  /** Under which a route that takes a browser where pages need one keeps what it learns; null for others. */
  scriptsKey: string | null;
}

/** The ways of asking that a job allows, by the route of a task. */
export class Ladders {
  readonly #routes: (Ladder & { name: string; matches: (url: string) => boolean })[];
  readonly #ofNone: Ladder;

  constructor(spec: JobSpec) {
    this.#routes = spec.routes.map((route) => ({
      name: route.name,
      matches: route.match ? compilePatterns(route.match) : () => true,
      ladder: ladderOf(route, spec),
      // Pages of a route are alike also where their URLs are not: titles in paths make templates of their own.
      scriptsKey: fetcherOfRoute(route) === 'auto' ? `@route ${route.name}` : null,
    }));
    this.#ofNone = { ladder: ladderOf(null, spec), scriptsKey: null };
  }

  some(test: (ladder: Rung[]) => boolean): boolean {
    return [this.#ofNone, ...this.#routes].some(({ ladder }) => test(ladder));
  }

  of({ route, url }: BatchTask): Ladder {
    const found =
      route === null
        ? this.#routes.find(({ matches }) => matches(url))
        : this.#routes.find(({ name }) => name === route);
    return found ?? this.#ofNone;
  }
}
