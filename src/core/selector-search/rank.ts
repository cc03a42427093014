import type { Candidate } from './candidates.ts';

/** Which of several ways to read a field is proposed. */

export interface Tried extends Candidate {
  /** Pages with a known value, and those of them on which it is read. */
  known: number;
  right: number;
  /** Pages of the archive, and those of them on which anything is read. */
  pages: number;
  filled: number;
  /** Different values among them. */
  different: number;
}

/** On fewer of the pages with a known value, it is another thing that happens to be the same now and then. */
const RIGHT_SHARE_MIN = 0.5;
/** A share that differs by less says nothing. */
const SHARE_STEP = 0.05;

/** The best first. What misses the known values is left out. */
export function rankTried<T extends Tried>(tried: readonly T[]): T[] {
  return tried
    .filter(
      ({ right, known, filled }) =>
        filled > 0 && (known === 0 || (right > 0 && right / known >= RIGHT_SHARE_MIN)),
    )
    .sort(
      (a, b) =>
        stepOf(b.right, b.known) - stepOf(a.right, a.known) ||
        stepOf(b.filled, b.pages) - stepOf(a.filled, a.pages) ||
        sameness(a) - sameness(b) ||
        a.cost - b.cost,
    );
}

function stepOf(count: number, of: number): number {
  return of === 0 ? 0 : Math.round(count / of / SHARE_STEP);
}

/** One value on every page belongs to the site, and not to the pages. */
function sameness({ filled, different }: Tried): number {
  return filled >= 3 && different === 1 ? 1 : 0;
}
