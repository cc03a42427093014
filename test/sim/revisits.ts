import { addVisit, type RevisitBounds, type VisitHistory } from '../../src/core/revisits/revisit-interval.ts';
import { SeededRandom } from './virtual-time.ts';

/** Pages that change at random, visited at fixed intervals and at intervals that adapt, over half a year. */

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const PAGES = 300;
const END_MS = 180 * DAY_MS;

interface RevisitResult {
  visits: number;
  /** Share of all changes that a visit found; of several changes between two visits, one is found. */
  found: number;
  /** Share of the time in which what is stored is not what the page has. */
  outdated: number;
}

/** Times of changes of each page: means from 6 hours to 180 days, and a fifth takes up another habit half-way. */
function changingPages(random: SeededRandom): number[][] {
  return Array.from({ length: PAGES }, () => {
    const meanMs = 6 * HOUR_MS * (4 * 180) ** random.next();
    const changesHabit = random.next() < 0.2;
    const laterMs = meanMs > 10 * DAY_MS ? meanMs / 20 : meanMs * 20;
    const times: number[] = [];
    let at = 0;
    while (true) {
      at -= Math.log(1 - random.next()) * (changesHabit && at > END_MS / 2 ? laterMs : meanMs);
      if (at > END_MS) return times;
      times.push(at);
    }
  });
}

function visitAll(pages: readonly number[][], bounds: RevisitBounds): RevisitResult {
  let visits = 0;
  let found = 0;
  let outdatedMs = 0;
  for (const changes of pages) {
    let history: VisitHistory | null = null;
    let seen = 0;
    for (let at = 0; at < END_MS; ) {
      visits++;
      const first = changes[seen];
      const isChanged = first !== undefined && first <= at;
      if (isChanged) {
        found++;
        outdatedMs += at - first;
      }
      while (seen < changes.length && changes[seen]! <= at) seen++;
      history = addVisit(history, { at, finding: isChanged ? 'changed' : 'same' }, bounds);
      // A refresh starts every hour.
      at = Math.ceil((at + history.intervalMs) / HOUR_MS) * HOUR_MS;
    }
    if (seen < changes.length) outdatedMs += END_MS - changes[seen]!;
  }
  const all = pages.reduce((sum, { length }) => sum + length, 0);
  return { visits, found: found / all, outdated: outdatedMs / (PAGES * END_MS) };
}

const hours = (min: number, max = min): RevisitBounds => ({ minMs: min * HOUR_MS, maxMs: max * HOUR_MS });

const POLICIES = {
  'every 6 hours': hours(6),
  'adaptive, 6 hours to 30 days': hours(6, 720),
  'every day': hours(24),
  'adaptive, 1 day to 30 days': hours(24, 720),
  'every 2 days': hours(48),
  'every week': hours(168),
};
type PolicyName = keyof typeof POLICIES;

export function comparePolicies(seed: number): Map<PolicyName, RevisitResult> {
  const pages = changingPages(new SeededRandom(seed));
  const names = Object.keys(POLICIES) as PolicyName[];
  return new Map(names.map((name) => [name, visitAll(pages, POLICIES[name])]));
}
