/**
 * Wald's sequential test of a share of refusals: is it 0.2 % (`P0`), which is an accident, or 2 % (`P1`), which is a limit?
 * Either answer is wrong in 5 of 100 cases at the most. 162 clean answers accept a rate, 2 refusals within the first 91
 * reject it, and what lies between goes on.
 */
const P0 = 0.002;
const P1 = 0.02;
const ERROR_SHARE = 0.05;

const REFUSED_WEIGHT = Math.log(P1 / P0);
const ANSWERED_WEIGHT = Math.log((1 - P1) / (1 - P0));
const BOUND = Math.log((1 - ERROR_SHARE) / ERROR_SHARE);

type Verdict = 'accepted' | 'rejected' | 'open';

/**
 * The score stays at the bound of acceptance while a rate is held for longer: an hour without a refusal must not outweigh
 * a limit that begins then.
 */
export function addAnswer(score: number, isRefused: boolean): number {
  return Math.max(-BOUND, score + (isRefused ? REFUSED_WEIGHT : ANSWERED_WEIGHT));
}

export function verdictOf(score: number): Verdict {
  if (score >= BOUND) return 'rejected';
  return score <= -BOUND + 1e-9 ? 'accepted' : 'open';
}

/** The share of refusals, with its 95 % interval (Wilson): it holds for few answers and for none refused. */
export function refusedShare(refused: number, answers: number): { share: number; low: number; high: number } {
  if (answers === 0) return { share: 0, low: 0, high: 1 };
  const z = 1.96;
  const share = refused / answers;
  const spread = 1 + (z * z) / answers;
  const middle = (share + (z * z) / (2 * answers)) / spread;
  const half = (z / spread) * Math.sqrt((share * (1 - share)) / answers + (z * z) / (4 * answers * answers));
  return { share, low: Math.max(0, middle - half), high: Math.min(1, middle + half) };
}
