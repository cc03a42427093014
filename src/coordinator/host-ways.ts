import type { Rung } from '../core/approach.ts';
import type { Score, ScoreOf } from '../core/approach-score.ts';
import type { BatchTask } from '../core/batch.ts';
import { templateOf } from '../core/url.ts';
import { type HostIdentities, noIdentities } from './identity-book.ts';

/** What is known of one host: how each way of asking fared, for it all and by URL template. */

/** By way of asking. */
export type Scores = Record<string, Score>;

export interface HostWays {
  scores: Scores;
  templates: Map<string, Scores>;
  identities: HostIdentities;
  /** The longest that its tasks were seen to have; null when all go the plain way. */
  ladder: Rung[] | null;
}

export function newHost(): HostWays {
  return { scores: {}, templates: new Map(), identities: noIdentities(), ladder: null };
}

export function scoresFor(
  entry: HostWays,
  { url }: BatchTask,
  ladder: Rung[],
): Record<'ofTemplate' | 'ofHost', ScoreOf> {
  const own = entry.templates.get(templateOf(url));
  return {
    ofTemplate: (rung) => own?.[ladder[rung]!.way],
    ofHost: (rung) => entry.scores[ladder[rung]!.way],
  };
}
