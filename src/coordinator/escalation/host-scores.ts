import type { BatchTask } from '../../core/batch/batch.ts';
import { type EscalationLevel, escalationLevels, fetcherOfRoute } from '../../core/escalation/escalation.ts';
import { addTry, type Score, type ScoreOf, type Verdict, WORKS } from '../../core/escalation/score.ts';
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
  /** Pages of it that were read. */
  reads: number;
}

export function newHost(): HostScores {
  return {
    scores: {},
    templates: new Map(),
    identities: noIdentities(),
    levels: null,
    renders: false,
    reads: 0,
  };
}

/** So many pages of a template must have needed scripts before its others are not asked for plainly. */
const TEMPLATE_TRIES = 2;
/** The same of a folder, for URLs of templates that are not known; and no more may have done without. */
const FOLDER_TRIES = 4;
const FOLDER_RATE_MAX = 0.15;

/** A page that is fetched plainly in vain costs less than one that is rendered in vain: only evidence says otherwise. */
export function scoresFor(
  entry: HostScores,
  { url }: BatchTask,
  { levels, learnsScripts }: RouteLevels,
): Record<'ofTemplate' | 'ofHost', ScoreOf> {
  const own = entry.templates.get(templateOf(url));
  const folder = learnsScripts ? entry.templates.get(folderOf(url)) : undefined;
  const isCredible = (score: Score, tries: number) =>
    !learnsScripts || score.rate >= WORKS || score.tries >= tries;
  const scoreOf = (methodName: string): Score | undefined => {
    const ofOwn = own?.[methodName];
    if (ofOwn) return isCredible(ofOwn, TEMPLATE_TRIES) ? ofOwn : undefined;
    const ofFolder = folder?.[methodName];
    const isMixed = ofFolder && ofFolder.rate >= FOLDER_RATE_MAX && ofFolder.rate < WORKS;
    return ofFolder && !isMixed && isCredible(ofFolder, FOLDER_TRIES) ? ofFolder : undefined;
  };
  return {
    ofTemplate: (level) => scoreOf(levels[level]!.methodName),
    ofHost: (level) => entry.scores[levels[level]!.methodName],
  };
}

/** Rows of folders; templates begin with a host. */
const FOLDER = '@folder ';

/** Pages with titles in their paths have templates of their own, but are alike within a folder. */
export function folderOf(url: string): string {
  const [path = ''] = templateOf(url).split('?', 1);
  return FOLDER + path.slice(0, path.lastIndexOf('/') + 1);
}

/** The row of all pages of a host. */
export const ALL_PAGES = '@pages';
/** So many of them, and nearly all, must have needed scripts before a folder of which nothing is known is taken to. */
const PAGES_TRIES = 5;
const PAGES_RATE_MAX = 0.02;

/** That is a guess: one page of the folder is asked for plainly at once, as if the guess were old, and decides. */
export function guessFolder(entry: HostScores, { url }: BatchTask, { learnsScripts }: RouteLevels): void {
  if (!learnsScripts || entry.templates.has(folderOf(url))) return;
  const known = Object.entries(entry.templates.get(ALL_PAGES) ?? {});
  const needsScripts = known.filter(([, { tries, rate }]) => tries >= PAGES_TRIES && rate < PAGES_RATE_MAX);
  if (needsScripts.length === 0) return;
  const guess = needsScripts.map(([name]) => [name, { tries: FOLDER_TRIES, rate: 0, at: 0 }]);
  entry.templates.set(folderOf(url), Object.fromEntries(guess));
}

/** The level at which pages that need scripts go on; null when there is none above. */
export function renderingLevel({ levels, learnsScripts }: RouteLevels, level: number): number | null {
  if (!learnsScripts || levels[level]!.fetcher === 'browser') return null;
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
  const { levels, learnsScripts } = ways;
  const { methodName: way, fetcher } = levels[level]!;
  const isRefusal = verdict === 'refused' || verdict === 'forbidden';
  if (isRefusal && levels[level + 1]?.onlyForScripts) return [];
  const wants = learnsScripts && (verdict === 'scripts' || verdict === 'lacking');
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
  /** Whether it takes a browser where pages need one. */
  learnsScripts: boolean;
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
      learnsScripts: fetcherOfRoute(route) === 'auto',
    }));
    this.#ofNone = { levels: escalationLevels(null, spec), learnsScripts: false };
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
