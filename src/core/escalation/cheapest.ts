/**
 * The cheapest fetch method that works, where a job has `escalation.choose: cheapest`. Methods are compared by cost per
 * success: what an attempt costs that brings the page, and the failures that come before it. A method that costs little is
 * worth trying first even where it seldom works; one that costs more than the best does for a page is never worth a try.
 *
 * Chance      of a method for the pages of a template: a Beta distribution over wins and losses, of which recent ones count
 *             most. Before there are any, what is known of the host stands for them.
 * Again       the chance of a second attempt with the same method, after the first failed: high where failures are chance
 *             (a bad proxy), low where they are the page's (it needs scripts). It is learned by itself.
 * Surprise    a streak that the chance makes next to impossible: the site has changed, and only the streak counts.
 * Hopeless    a method that works for fewer than one page in ten. It is not used, however cheap it is, because each failure
 *             is a request to the host; one task of fifty still tries it, and when it works again for one template, the
 *             others try it soon.
 * Exploring   using another method than the best one known, because it may be better. Thompson sampling: each method is
 *             chosen as often as it is likely to be the best. It is paid from an allowance: a share of what was spent.
 */

/** Wins and losses, where each counts a little less than the next. */
interface Counts {
  wins: number;
  losses: number;
  /** Wins in a row, or losses in a row as a negative number. */
  streak: number;
}

export interface MethodCosts {
  first: Counts;
  again: Counts;
  /** Of one attempt; recent ones count most. Null before there was one. */
  dollars: number | null;
  /** The same of those that brought a page, and of those that did not: a refusal is small. Absent before there was one. */
  won?: number;
  lost?: number;
  /** Paid since the last verdict, for attempts that say nothing of the method. */
  unjudged: number;
  /** All that was paid, and for how many pages. */
  paid: number;
  pages: number;
}

/** A level that a task may take. */
export interface LevelOption {
  level: number;
  /** Of an attempt that brings the page, as far as is known, and at the most; and of one that does not. */
  dollars: number;
  dollarsMost: number;
  dollarsLost: number;
  chance: Counts;
  /** It works for too few pages of the template. */
  isHopeless: boolean;
  /** Not tried yet for the template. */
  isNew: boolean;
}

interface LevelChoice {
  level: number;
  /** What exploring costs here if it fails, and the cost per success of the level that would have been used; else null. */
  explores: { dollars: number; insteadOf: number } | null;
}

/** What may be paid for exploring: this share of all that was paid, and no more than the job says. */
export const EXPLORE_SHARE = 0.05;
/** With this the last thirty or so attempts count. */
const FADE = 0.97;
const COST_WEIGHT = 0.1;
/** A level that could save less than a tenth is not explored: it is not worth looking like a browser for. */
const WORTHWHILE = 0.9;
const SURPRISE = 1e-4;
/** Nothing is certain: a surprise must be possible. */
const CHANCE_MAX = 0.97;
/** No method brings every page: otherwise one that it cannot bring would be tried for ever. */
const WORKS_MAX = 0.98;
/** What is known of a host counts for a template like so many attempts. */
const HOST_TRIES = 6;
const HOPELESS = 0.1;
/** Fewer tries say nothing. */
const HOPELESS_TRIES = 6;
/**
 * One task of so many at a host tries a hopeless level again. Not by chance: at the same distance, a site that opens is
 * noticed twice as soon for the same number of requests.
 */
export const RETRY_EVERY = 50;
/** Share of tasks that try a level which is hopeless at the host, but new to the template. */
const HOPELESS_SHARE_NEW = 0.1;
/** Where a hopeless level works again for one template, what was known for the others counts like so many attempts. */
const REOPENED_TRIES = 4;
/** Sums of fractions: what is 6 may come out as a little less. */
const EPSILON = 1e-9;

const NO_COUNTS: Readonly<Counts> = { wins: 0, losses: 0, streak: 0 };
const NO_COSTS: Readonly<MethodCosts> = {
  ...{ first: NO_COUNTS, again: NO_COUNTS, dollars: null, unjudged: 0, paid: 0, pages: 0 },
};

/**
 * What one more attempt makes of what is known. `isWon` is null when it says nothing of its method; `isAgain` for a task that
 * failed before in the same way. `dollars` is null for a method that was not used: another attempt told that it fails as well.
 */
export function noteAttempt(
  known: MethodCosts | undefined,
  { isWon, isAgain, dollars }: { isWon: boolean | null; isAgain: boolean; dollars: number | null },
): MethodCosts {
  const before = known ?? NO_COSTS;
  const paid = before.paid + (dollars ?? 0);
  if (isWon === null) return { ...before, paid, unjudged: before.unjudged + (dollars ?? 0) };
  return {
    ...before,
    first: isAgain ? before.first : counted(before.first, isWon),
    again: isAgain ? counted(before.again, isWon) : before.again,
    ...dollarsAfter(before, dollars, isWon),
    unjudged: dollars === null ? before.unjudged : 0,
    paid,
    pages: before.pages + (isWon ? 1 : 0),
  };
}

function dollarsAfter(
  before: MethodCosts,
  dollars: number | null,
  isWon: boolean,
): Pick<MethodCosts, 'dollars' | 'won' | 'lost'> {
  if (dollars === null) return { dollars: before.dollars };
  const latest = dollars + before.unjudged;
  const mean = meanDollars(before.dollars, latest);
  return isWon
    ? { dollars: mean, won: meanDollars(before.won ?? null, latest) }
    : { dollars: mean, lost: meanDollars(before.lost ?? null, latest) };
}

function meanDollars(before: number | null, latest: number): number {
  return before === null ? latest : before + (latest - before) * COST_WEIGHT;
}

function counted(counts: Counts, isWon: boolean): Counts {
  const { wins, losses, streak } = counts;
  const length = isWon === streak > 0 ? Math.abs(streak) + 1 : 1;
  const next = isWon ? length : -length;
  const share = meanOf({ wins: wins + 0.5, losses: losses + 0.5, streak });
  // One success of a hopeless method: it is worth some tries again.
  if (isWon && share < HOPELESS) return { wins: 1, losses: 1, streak: next };
  const expected = Math.min(CHANCE_MAX, isWon ? share : 1 - share);
  // Only where something else was known: a first streak is no surprise.
  if (expected ** length < SURPRISE && (isWon ? losses : wins) >= 1)
    return { wins: isWon ? length : 0, losses: isWon ? 0 : length, streak: next };
  return { wins: wins * FADE + (isWon ? 1 : 0), losses: losses * FADE + (isWon ? 0 : 1), streak: next };
}

/** The chance of a method for a template, from what is known of both, for a task that failed with it so often. */
export function chanceOf(
  ofTemplate: MethodCosts | undefined,
  ofHost: MethodCosts | undefined,
  failures: number,
): Counts {
  const host = withPrior(ofHost?.first ?? NO_COUNTS, { wins: 0.5, losses: 0.5, streak: 0 });
  const first = withPrior(ofTemplate?.first ?? NO_COUNTS, scaled(host, HOST_TRIES));
  if (failures === 0) return first;
  // As likely as not, a failure is the page's own.
  const half = meanOf(first) / 2;
  const prior = { wins: half, losses: 1 - half, streak: 0 };
  const ofHostAgain = withPrior(ofHost?.again ?? NO_COUNTS, prior);
  const again = withPrior(ofTemplate?.again ?? NO_COUNTS, scaled(ofHostAgain, HOST_TRIES));
  if (failures === 1) return again;
  const share = chanceAfter(failures, meanOf(first), meanOf(again));
  const tries = again.wins + again.losses;
  return { wins: tries * share, losses: tries * (1 - share), streak: 0 };
}

/**
 * A method brings some share of the pages at all, and those with some luck in each attempt. The chances of the first attempt
 * and of the second tell both, and so the chance after more failures: the more there were, the likelier the page is to blame.
 */
function chanceAfter(failures: number, first: number, again: number): number {
  const luck = Math.min(0.99, Math.max(again, 1 - (again * (1 - first)) / first));
  const works = Math.min(WORKS_MAX, first / luck);
  const unlucky = works * (1 - luck) ** failures;
  return (luck * unlucky) / (1 - works + unlucky);
}

/** Of an attempt, from what is known of the template, else of the host; null when that is nothing. */
export function dollarsOf(
  ofTemplate: MethodCosts | undefined,
  ofHost: MethodCosts | undefined,
): { all: number; won: number | null; lost: number | null } | null {
  const known = ofTemplate?.dollars == null ? ofHost : ofTemplate;
  if (known?.dollars == null) return null;
  const of = (kind: 'won' | 'lost') => {
    const mean = ofTemplate?.[kind] ?? ofHost?.[kind];
    return mean === undefined ? null : mean + known.unjudged;
  };
  return { all: known.dollars + known.unjudged, won: of('won'), lost: of('lost') };
}

/** For a page, with all attempts that fail before one brings it. */
function perSuccess(
  { dollars, dollarsLost }: Pick<LevelOption, 'dollars' | 'dollarsLost'>,
  chance: number,
): number {
  return dollars + (dollarsLost * (1 - chance)) / chance;
}

/**
 * The level for a task, and whether it explores with it. `allowance`: dollars that may be paid for that now; `isRetryDue`:
 * hopeless levels may be tried.
 */
export function chooseLevel(
  options: readonly LevelOption[],
  { allowance, isRetryDue }: { allowance: number; isRetryDue: boolean },
  random: () => number,
): LevelChoice {
  const best = bestLevel(options);
  const insteadOf = perSuccess(best, meanOf(best.chance));
  const retry = random();
  // At its best, a level costs what one attempt does: those above that cannot win, and those near to it hardly.
  const others = options.filter(
    (option) =>
      option !== best &&
      option.dollars < insteadOf * WORTHWHILE &&
      option.dollarsMost <= allowance &&
      (!option.isHopeless || isRetryDue || (option.isNew && retry < HOPELESS_SHARE_NEW)),
  );
  if (others.length === 0) return { level: best.level, explores: null };
  const sampled = lowest([best, ...others], (option) => perSuccess(option, sampleOf(option.chance, random)));
  if (sampled === best) return { level: best.level, explores: null };
  return { level: sampled.level, explores: { dollars: sampled.dollarsMost, insteadOf } };
}

/** The method works again for another template: little is certain any more. */
export function reopened(costs: MethodCosts): MethodCosts {
  return { ...costs, first: scaled(costs.first, REOPENED_TRIES) };
}

/** The level that is used when nothing is explored. */
export function bestLevel(options: readonly LevelOption[]): LevelOption {
  const hopeful = options.filter((option) => !option.isHopeless);
  return lowest(hopeful.length > 0 ? hopeful : options, (option) =>
    perSuccess(option, meanOf(option.chance)),
  );
}

export function isHopeless(chance: Counts): boolean {
  return chance.wins + chance.losses >= HOPELESS_TRIES - EPSILON && meanOf(chance) < HOPELESS;
}

export function meanOf({ wins, losses }: Counts): number {
  return wins / (wins + losses);
}

function withPrior(counts: Counts, prior: Counts): Counts {
  return { wins: counts.wins + prior.wins, losses: counts.losses + prior.losses, streak: counts.streak };
}

/** With no more weight than so many tries. */
function scaled(counts: Counts, tries: number): Counts {
  const factor = Math.min(1, tries / (counts.wins + counts.losses || 1));
  return { wins: counts.wins * factor, losses: counts.losses * factor, streak: 0 };
}

function lowest(list: readonly LevelOption[], of: (option: LevelOption) => number): LevelOption {
  let best = list[0]!;
  let bestValue = of(best);
  for (const option of list.slice(1)) {
    const value = of(option);
    if (value < bestValue) [best, bestValue] = [option, value];
  }
  return best;
}

/** A chance drawn from its distribution: a Beta variate, by two of Gamma. */
function sampleOf({ wins, losses }: Counts, random: () => number): number {
  const win = gammaOf(wins, random);
  const loss = gammaOf(losses, random);
  return Math.max(1e-9, win / (win + loss || 1));
}

/** Marsaglia and Tsang's method needs 1.05 rounds on average; a generator that never agrees must not stop the coordinator. */
const GAMMA_ROUNDS_MAX = 50;

function gammaOf(shape: number, random: () => number): number {
  if (shape < 1) return gammaOf(shape + 1, random) * (1 - random()) ** (1 / shape);
  const d = shape - 1 / 3;
  const c = 1 / Math.sqrt(9 * d);
  for (let round = 0; round < GAMMA_ROUNDS_MAX; round++) {
    const x = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
    const v = (1 + c * x) ** 3;
    if (v > 0 && Math.log(1 - random()) < 0.5 * x * x + d - d * v + d * Math.log(v)) return d * v;
  }
  return d;
}
