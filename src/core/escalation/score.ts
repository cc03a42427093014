import type { Outcome } from '../batch/outcome.ts';
import { isRefusal } from '../failures.ts';
import type { MethodCosts } from './cheapest.ts';

/** What is known of one level: how it fared lately. */
export interface Score {
  tries: number;
  /** Share of successes, recent ones above all. */
  rate: number;
  /** Epoch milliseconds of the last try. */
  at: number;
  /** Where levels are compared by cost. */
  costs?: MethodCosts;
}

/** By level of a levels; those that were never tried have none. */
export type ScoreOf = (level: number) => Score | undefined;

/** From here on a level counts as working. */
export const WORKS = 0.5;
/** The last five or so tries decide. */
const WEIGHT = 0.2;
/** Share of tasks that try a cheaper level again, and a larger one while that looks promising. */
export const RETRY_SHARE = 0.02;
const PROMISING_SHARE = 0.25;
const PROMISING = 0.15;
/** A cheaper level that was not tried for so long is tried once. */
export const STALE_MS = 10 * 60_000;

/** A level that failed so often for a template is taken to fail for all of it. */
const TRIES_MIN = 3;

export function addTry(score: Score | undefined, success: boolean, now: number): Score {
  const tries = score?.tries ?? 0;
  const weight = Math.max(WEIGHT, 1 / (tries + 1));
  const rate = (score?.rate ?? 0) * (1 - weight) + (success ? weight : 0);
  const next = { tries: tries + 1, rate: Math.round(rate * 1_000) / 1_000, at: Math.round(now) };
  return score?.costs ? { ...next, costs: score.costs } : next;
}

/** The cheapest level from `floor` on that works or was never tried; when there is none, the best of them. */
export function cheapestLevel(count: number, scoreOf: ScoreOf, floor = 0): number {
  let best = Math.min(floor, count - 1);
  let bestRate = -1;
  for (let level = best; level < count; level++) {
    const score = scoreOf(level);
    if (score === undefined || score.rate >= WORKS) return level;
    if (score.rate > bestRate) [best, bestRate] = [level, score.rate];
  }
  return best;
}

/** A level below `level` that is worth another try now, or null. */
export function levelToRetry(
  level: number,
  scoreOf: ScoreOf,
  now: number,
  random: () => number,
): number | null {
  for (let below = 0; below < level; below++) {
    const score = scoreOf(below);
    if (score === undefined || now - score.at > STALE_MS) return below;
  }
  const chance = random();
  for (let below = 0; below < level; below++) {
    if (scoreOf(below)!.rate >= PROMISING && chance < PROMISING_SHARE) return below;
  }
  return level > 0 && chance < RETRY_SHARE ? Math.floor((chance / RETRY_SHARE) * level) : null;
}

/** Whether a level below is known to work for pages like this one; a template with few tries goes by its host. */
export function worksBelow(level: number, ofTemplate: ScoreOf, ofHost: ScoreOf): boolean {
  for (let below = 0; below < level; below++) {
    const own = ofTemplate(below);
    const score = own && own.tries >= TRIES_MIN ? own : (ofHost(below) ?? own);
    if (score && score.rate >= WORKS) return true;
  }
  return false;
}

/** Whether a level above may work for a template; where all are known to fail, only few tasks still try them. */
export function isHopeful(level: number, count: number, ofTemplate: ScoreOf, random: () => number): boolean {
  for (let above = level + 1; above < count; above++) {
    const score = ofTemplate(above);
    if (!score || score.rate >= WORKS || score.tries < TRIES_MIN) return true;
  }
  return level + 1 < count && random() < RETRY_SHARE;
}

/** `scripts`: the answer is nothing without a browser. `forbidden` may be the page's own affair, and so may what it lacks; other refusals concern the fetch method. */
export type Verdict = 'answered' | 'refused' | 'forbidden' | 'lacking' | 'scripts';

/** Null for what says nothing of the fetchMethod: a broken connection, an overloaded host, one that asks for less. */
export function verdictOf(outcome: Outcome): Verdict | null {
  if (outcome.kind === 'deferred') return null;
  if (outcome.kind !== 'failed') return outcome.trace === null ? null : 'answered';
  const status = outcome.trace?.httpStatus ?? null;
  if (outcome.code === 'forbidden') return 'forbidden';
  if (isRefusal(outcome.code, status)) return 'refused';
  if (outcome.code === 'script-only') return 'scripts';
  if (outcome.code === 'validation') return 'lacking';
  const answered = status !== null && status < 500 && status !== 429;
  return answered && outcome.code !== 'internal' ? 'answered' : null;
}
