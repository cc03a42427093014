/**
 * How large a site is, told from a part of it. While a crawl visits pages it learns of others: fast at first, then slower, as
 * more and more links lead to pages that it knows. Two slopes are measured, new pages by visited page in the second and in
 * the last third of the sample. The last one is followed on, shrinking from third to third as it did before, until all pages
 * that are known are visited. What is known is certain; what was added to it is rough.
 */
export interface GrowthPoint {
  visited: number;
  known: number;
}

interface SiteSize {
  known: number;
  /** Pages that will be found besides. */
  more: number;
}

/** A site that shows no end is taken for so many times what is known of it. */
const OPEN_TIMES = 5;
const THIRDS_MAX = 1_000;

export function siteSizeOf(points: readonly GrowthPoint[]): SiteSize {
  const last = points.at(-1);
  if (!last) return { known: 0, more: 0 };
  const { known, visited } = last;
  const third = visited / 3;
  if (visited >= known || third < 1) return { known, more: 0 };
  const before = knownAt(points, visited - third);
  const middle = Math.max(0, before - knownAt(points, visited - 2 * third)) / third;
  const slope = Math.max(0, known - before) / third;
  const shrinks = middle > 0 ? Math.min(1, slope / middle) : 1;
  let next = slope * shrinks;
  let site = known;
  let done = visited;
  for (let step = 0; step < THIRDS_MAX && done < site && site < known * OPEN_TIMES; step++) {
    const pages = Math.min(third, site - done);
    site += pages * next;
    done += pages;
    next *= shrinks;
  }
  return { known, more: Math.min(site, known * OPEN_TIMES) - known };
}

/** Between two looks, as if it had grown evenly. */
function knownAt(points: readonly GrowthPoint[], visited: number): number {
  const after = points.findIndex((point) => point.visited >= visited);
  const [a, b] = [points[Math.max(0, after - 1)]!, points[after]!];
  if (b.visited === a.visited) return b.known;
  return a.known + ((b.known - a.known) * (visited - a.visited)) / (b.visited - a.visited);
}
