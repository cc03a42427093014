/**
 * The cheapest fetch method that works, where a job has `escalation.choose: cheapest`. Methods are compared by cost per
 * success: what an attempt costs that brings the page, and the failures that come before it. A method that costs little is
 * worth trying first even where it seldom works; one that costs more than the best does for a page is never worth a try.
 *
 * Chance      of a method for the pages of a template: a Beta distribution over wins and losses, of which recent ones count
 *             most. Before there are any, what is known of the host's other templates stands for them.
 * Plain       share of a template's pages that are something without scripts. It is the same for all methods without a
 *             browser: a shell says nothing against the one that brought it, because it was let in.
 * Again       the chance of a second attempt with the same method, after the first failed: high where failures are chance
 *             (a bad proxy), low where they are the page's (it needs scripts). It is learned by itself.
 * Surprise    a streak that the chance makes next to impossible: the site has changed, and only the streak counts.
 * Hopeless    a method that works for fewer than one page in ten. It is not used, however cheap it is, because each failure
 *             is a request to the host; one task of fifty still tries it (of 25 where it would save nearly all), and when it
 *             works again for one template, the others try it soon. Who has to pay much more otherwise tries it first.
 * Surest      the method with the highest chance, whatever it costs: what a page gets when few attempts are left to it.
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
  /** Of those that brought a page, without those of an API. */
  bytes?: number;
  /** Pages that were something without scripts, and those that were not. */
  plain?: Counts;
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
  /** What it may cost at best, where only other templates tell: reason enough to explore it, not to use it. */
  dollarsLeast: number;
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
/** No method brings every page, so one in fifty is taken to be out of reach; of a thousand that it brought, one more. */
const UNREACHED_PAGES = 50;
/** What is known of a host counts for a template like so many attempts. */
const HOST_TRIES = 6;
/** About one page in ten: four refusals and nothing else are enough, of which the first count a little less already. */
const HOPELESS = 0.105;
/**
 * Fewer tries say nothing; one is the prior. Through a pool each is another visitor, and many are refused by chance: the
 * first four at one site in forty.
 */
const HOPELESS_TRIES = 4.5;
const HOPELESS_POOL_TRIES = 12;
/**
 * One task of so many at a host tries a hopeless level again. Not by chance: at the same distance, a site that opens is
 * noticed twice as soon for the same number of requests. Where it would cost less than a tenth, the distance is shorter.
 */
const RETRY_EVERY = 50;
const RETRY_EVERY_LARGE = 25;
const LARGE_SAVING = 0.1;
/** Share of tasks that try a level which is hopeless at the host, but new to the template. */
const HOPELESS_SHARE_NEW = 0.1;
/** Where a hopeless level works again for one template, what was known for the others counts like so many attempts. */
const REOPENED_TRIES = 1;
/** So many of its attempts a page keeps for the surest level. */
const SUREST_ATTEMPTS = 2;
/** The first of these takes the cheapest that works for a third of the pages, if there is one. */
const OFTEN = 0.33;
/** Of those that are nearly as sure as the surest, the last takes the cheapest. */
const NEARLY_SUREST = 0.9;
/** Before it is known: how much less a second attempt helps than a first. Through a pool, failures are mostly chance. */
const AGAIN = 0.71;
const POOL_AGAIN = 0.85;
/** A second attempt that helps nearly as often as a first: failures are chance, and not the page's. */
const BY_CHANCE = 0.7;
/** Sums of fractions: what is 6 may come out as a little less. */
const EPSILON = 1e-9;

const NO_COUNTS: Readonly<Counts> = { wins: 0, losses: 0, streak: 0 };
const PRIOR: Readonly<Counts> = { wins: 0.5, losses: 0.5, streak: 0 };
/** Most pages are something without scripts. */
const PLAIN_PRIOR: Readonly<Counts> = { wins: 0.9, losses: 0.1, streak: 0 };
const NO_COSTS: Readonly<MethodCosts> = {
  ...{ first: NO_COUNTS, again: NO_COUNTS, dollars: null, unjudged: 0, paid: 0, pages: 0 },
};

/** What became of an attempt. */
export interface NotedAttempt {
  /** Whether it brought the page; null when it says nothing of its method. */
  isWon: boolean | null;
  /** The task failed before in the same way. */
  isAgain: boolean;
  dollars: number;
  /** Whether the page is something without scripts; undefined when the attempt cannot tell. */
  isPlain?: boolean | undefined;
  /** Of the page. */
  bytes?: number | undefined;
}

/** What one more attempt makes of what is known. */
export function noteAttempt(known: MethodCosts | undefined, attempt: NotedAttempt): MethodCosts {
  const { isWon, isAgain, dollars, isPlain, bytes } = attempt;
  const before = known ?? NO_COSTS;
  const paid = before.paid + dollars;
  if (isWon === null) return { ...before, paid, unjudged: before.unjudged + dollars };
  // A shell was let in.
  const isLetIn = isWon || isPlain === false;
  return {
    ...before,
    first: isAgain ? before.first : counted(before.first, isLetIn),
    again: isAgain ? counted(before.again, isLetIn) : before.again,
    ...dollarsAfter(before, dollars, isWon),
    ...(isWon && bytes !== undefined ? { bytes: recentMean(before.bytes ?? null, bytes) } : {}),
    ...(isPlain === undefined ? {} : { plain: counted(before.plain ?? NO_COUNTS, isPlain) }),
    unjudged: 0,
    paid,
    pages: before.pages + (isWon ? 1 : 0),
  };
}

function dollarsAfter(
  before: MethodCosts,
  dollars: number,
  isWon: boolean,
): Pick<MethodCosts, 'dollars' | 'won' | 'lost'> {
  const latest = dollars + before.unjudged;
  const mean = recentMean(before.dollars, latest);
  return isWon
    ? { dollars: mean, won: recentMean(before.won ?? null, latest) }
    : { dollars: mean, lost: recentMean(before.lost ?? null, latest) };
}

function recentMean(before: number | null, latest: number): number {
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
  isPooled = false,
): Counts {
  const first = withOthers(ofTemplate?.first, ofHost?.first);
  if (failures === 0) return first;
  const share = meanOf(first) * (isPooled ? POOL_AGAIN : AGAIN);
  const prior = { wins: share, losses: 1 - share, streak: 0 };
  const ofHostAgain = withPrior(ofHost?.again ?? NO_COUNTS, prior);
  const again = withPrior(ofTemplate?.again ?? NO_COUNTS, scaled(ofHostAgain, HOST_TRIES));
  if (failures === 1) return again;
  const pages = Math.max(ofTemplate?.pages ?? 0, ofHost?.pages ?? 0);
  const later = chanceAfter(failures, meanOf(first), meanOf(again), 1 - 1 / (UNREACHED_PAGES + pages));
  const tries = triesOf(again);
  return { wins: tries * later, losses: tries * (1 - later), streak: 0 };
}

/**
 * A method brings some share of the pages at all, and those with some luck in each attempt. The chances of the first attempt
 * and of the second tell both, and so the chance after more failures: the more there were, the likelier the page is to blame.
 */
function chanceAfter(failures: number, first: number, again: number, worksMax: number): number {
  const isByChance = again >= first * BY_CHANCE;
  const luck = isByChance ? (first + again) / 2 : Math.max(again, 1 - (again * (1 - first)) / first);
  const works = isByChance ? worksMax : Math.min(worksMax, first / luck);
  const unlucky = works * (1 - Math.min(0.99, luck)) ** failures;
  return (luck * unlucky) / (1 - works + unlucky);
}

/** What is known of a template, and of the others of its host as a prior. What the host has from the template counts once. */
function withOthers(ofTemplate: Counts = NO_COUNTS, ofHost: Counts = NO_COUNTS, prior = PRIOR): Counts {
  const others = Math.max(0, triesOf(ofHost) - triesOf(ofTemplate));
  return withPrior(ofTemplate, withPrior(scaled(ofHost, Math.min(HOST_TRIES, others)), prior));
}

/** The share of pages that are something without scripts, from what methods without a browser saw of them. */
export function plainOf(
  ofTemplate: readonly (MethodCosts | undefined)[],
  ofHost: readonly (MethodCosts | undefined)[],
): Counts {
  const sumOf = (methods: readonly (MethodCosts | undefined)[]) =>
    methods.reduce((sum, method) => withPrior(method?.plain ?? NO_COUNTS, sum), NO_COUNTS);
  return withOthers(sumOf(ofTemplate), sumOf(ofHost), PLAIN_PRIOR);
}

/** The chance that a method is let in, and that the page is then something. */
export function withPlain(chance: Counts, plain: Counts): Counts {
  const tries = triesOf(chance);
  const share = meanOf(chance) * meanOf(plain);
  return { wins: tries * share, losses: tries * (1 - share), streak: 0 };
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
 * The level for a task, and whether it explores with it. `allowance`: dollars that may be paid for that now; `mayRetry`:
 * hopeless levels may be tried.
 */
export function chooseLevel(
  options: readonly LevelOption[],
  { allowance, mayRetry }: { allowance: number; mayRetry: boolean },
  random: () => number,
): LevelChoice {
  const best = bestLevel(options);
  const insteadOf = perSuccess(best, meanOf(best.chance));
  const retry = random();
  // At its best, a level costs what one attempt does: those above that cannot win, and those near to it hardly.
  const others = options.filter(
    (option) =>
      option !== best &&
      option.dollarsLeast < insteadOf * WORTHWHILE &&
      option.dollarsMost <= allowance &&
      (!option.isHopeless || mayRetry || (option.isNew && retry < HOPELESS_SHARE_NEW)),
  );
  if (others.length === 0) return { level: best.level, explores: null };
  const sampled = lowest([best, ...others], (option) => {
    const dollars = option === best ? option.dollars : option.dollarsLeast;
    return perSuccess({ ...option, dollars }, sampleOf(option.chance, random));
  });
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

export function isHopeless(chance: Counts, isPooled = false): boolean {
  const tries = isPooled ? HOPELESS_POOL_TRIES : HOPELESS_TRIES;
  return triesOf(chance) >= tries - EPSILON && meanOf(chance) <= HOPELESS + EPSILON;
}

/** Whether hopeless levels may be tried: so many tasks since the last that did. */
export function isRetryDue(options: readonly LevelOption[], tasksSince: number): boolean {
  const best = bestLevel(options);
  const insteadOf = perSuccess(best, meanOf(best.chance));
  const isLarge = options.some((option) => option.isHopeless && option.dollars < insteadOf * LARGE_SAVING);
  return tasksSince >= (isLarge ? RETRY_EVERY_LARGE : RETRY_EVERY);
}

/** The level for a page with so many attempts left; null while there are enough to look for a cheap one. */
export function surestLevel(options: readonly LevelOption[], attemptsLeft: number): number | null {
  if (attemptsLeft > SUREST_ATTEMPTS) return null;
  const working = options.filter(({ chance }) => meanOf(chance) >= OFTEN);
  if (attemptsLeft > 1 && working.length > 0) return bestLevel(working).level;
  const chanceMost = Math.max(...options.map(({ chance }) => meanOf(chance)));
  const surest = options.filter(({ chance }) => meanOf(chance) >= chanceMost * NEARLY_SUREST);
  return lowest(surest, ({ dollarsMost }) => dollarsMost).level;
}

function triesOf({ wins, losses }: Counts): number {
  return wins + losses;
}

export function meanOf({ wins, losses }: Counts): number {
  return wins / (wins + losses);
}

function withPrior(counts: Counts, prior: Counts): Counts {
  return { wins: counts.wins + prior.wins, losses: counts.losses + prior.losses, streak: counts.streak };
}

/** With no more weight than so many tries. */
function scaled(counts: Counts, tries: number): Counts {
  const factor = Math.min(1, tries / (triesOf(counts) || 1));
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
