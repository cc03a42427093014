import { isRefusal } from './failures.ts';
import type { Outcome } from './outcome.ts';

/** `scripts`: the answer is nothing without a browser. `forbidden` may be the page's own affair, and so may what it lacks; other refusals concern who asks. */
export type Verdict = 'answered' | 'refused' | 'forbidden' | 'lacking' | 'scripts';

/** Null for what says nothing of the approach: a broken connection, an overloaded host, one that asks for less. */
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
