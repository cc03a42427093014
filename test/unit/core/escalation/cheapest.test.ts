import { describe, expect, test } from 'vitest';
import {
  chanceOf,
  chooseLevel,
  dollarsOf,
  isHopeless,
  isRetryDue,
  type LevelOption,
  type MethodCosts,
  meanOf,
  noteAttempt,
  plainOf,
  reopened,
  surestLevel,
  withPlain,
} from '../../../../src/core/escalation/cheapest.ts';

/** So many attempts of one outcome after another. */
function costsOf(dollars: number, ...streaks: [count: number, isWon: boolean][]): MethodCosts {
  let costs: MethodCosts | undefined;
  for (const [count, isWon] of streaks)
    for (let index = 0; index < count; index++)
      costs = noteAttempt(costs, { isWon, isAgain: false, dollars });
  return costs!;
}

function optionOf(level: number, dollars: number, wins: number, losses: number): LevelOption {
  const chance = { wins, losses, streak: 0 };
  return {
    level,
    dollars,
    dollarsMost: dollars,
    dollarsLost: dollars,
    dollarsLeast: dollars,
    chance,
    isHopeless: isHopeless(chance),
    isNew: false,
  };
}

/** A generator that tests can repeat. */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return state / 2_147_483_648;
  };
}

describe('what is known of a method', () => {
  test('costs what its attempts cost, those that say nothing included', () => {
    let costs = noteAttempt(undefined, { isWon: true, isAgain: false, dollars: 2 });
    expect(dollarsOf(costs, undefined)?.all).toBe(2);
    costs = noteAttempt(costs, { isWon: null, isAgain: false, dollars: 3 });
    expect(dollarsOf(costs, undefined)?.all).toBe(5);
    costs = noteAttempt(costs, { isWon: true, isAgain: false, dollars: 2 });
    expect(dollarsOf(costs, undefined)?.all).toBeCloseTo(2.3);
    expect(costs).toMatchObject({ paid: 7, pages: 2, unjudged: 0 });
    expect(dollarsOf(undefined, undefined)).toBeNull();
  });

  test('costs another thing when it brings a page than when it fails', () => {
    let costs = noteAttempt(undefined, { isWon: false, isAgain: false, dollars: 1 });
    expect(dollarsOf(undefined, costs)).toEqual({ all: 1, won: null, lost: 1 });
    costs = noteAttempt(costs, { isWon: true, isAgain: true, dollars: 20 });
    expect(dollarsOf(costs, undefined)).toMatchObject({ won: 20, lost: 1 });
    // What the template does not know comes from the host.
    const own = noteAttempt(undefined, { isWon: true, isAgain: false, dollars: 30 });
    expect(dollarsOf(own, costs)).toEqual({ all: 30, won: 30, lost: 1 });
  });

  test('is forgotten when a streak shows that the site has changed', () => {
    const before = costsOf(1, [40, true]);
    expect(meanOf(chanceOf(before, before, 0))).toBeGreaterThan(0.9);
    const closed = costsOf(1, [40, true], [6, false]);
    expect(meanOf(chanceOf(closed, closed, 0))).toBeLessThan(0.1);
    const reopened = costsOf(1, [40, false], [1, true]);
    expect(isHopeless(chanceOf(costsOf(1, [40, false]), undefined, 0))).toBe(true);
    expect(isHopeless(chanceOf(reopened, reopened, 0))).toBe(false);
  });

  test('is doubted when the method works again for another template', () => {
    const ofHost = costsOf(1, [40, false], [1, true]);
    const own = costsOf(1, [40, false]);
    expect(isHopeless(chanceOf(own, ofHost, 0))).toBe(true);
    const doubted = reopened(own);
    expect(isHopeless(chanceOf(doubted, ofHost, 0))).toBe(false);
    // It fails here still: that is soon known again.
    let again = doubted;
    let tries = 0;
    for (; !isHopeless(chanceOf(again, ofHost, 0)); tries++)
      again = noteAttempt(again, { isWon: false, isAgain: false, dollars: 1 });
    expect(tries).toBeLessThanOrEqual(12);
    expect(reopened(noteAttempt(undefined, { isWon: null, isAgain: false, dollars: 1 })).first.wins).toBe(0);
  });

  test('comes from the host while a template is new, and is soon its own', () => {
    const ofHost = costsOf(1, [40, false]);
    expect(isHopeless(chanceOf(undefined, ofHost, 0))).toBe(true);
    expect(isHopeless(chanceOf(costsOf(1, [2, true]), ofHost, 0))).toBe(false);
  });

  test('counts once, although the template and its host have it', () => {
    const refused = costsOf(1, [4, false]);
    const { wins, losses } = chanceOf(refused, refused, 0);
    expect(wins + losses).toBeLessThanOrEqual(5);
    // Four refusals are enough for our own address; through a pool each is another visitor.
    expect(isHopeless(chanceOf(refused, refused, 0))).toBe(true);
    expect(isHopeless(chanceOf(refused, refused, 0), true)).toBe(false);
    const often = costsOf(1, [15, false]);
    expect(isHopeless(chanceOf(often, often, 0), true)).toBe(true);
  });

  test('is not worse for pages that need scripts: they lower the chance of every method without a browser', () => {
    let shells: MethodCosts | undefined;
    for (let index = 0; index < 10; index++)
      shells = noteAttempt(shells, { isWon: false, isAgain: false, dollars: 1, isPlain: false });
    expect(meanOf(chanceOf(shells, undefined, 0))).toBeGreaterThan(0.9);
    expect(shells).toMatchObject({ pages: 0, paid: 10, lost: 1 });
    const plain = plainOf([undefined, shells], []);
    expect(isHopeless(plain)).toBe(true);
    const other = withPlain(chanceOf(costsOf(1, [10, true]), undefined, 0), plain);
    expect(meanOf(other)).toBeLessThan(0.1);
    // Where half of the pages are something, the method that brings them keeps half of its chance.
    let mixed: MethodCosts | undefined;
    for (let index = 0; index < 20; index++)
      mixed = noteAttempt(mixed, {
        isWon: index % 2 > 0,
        isAgain: false,
        dollars: 1,
        isPlain: index % 2 > 0,
      });
    expect(meanOf(plainOf([mixed], []))).toBeCloseTo(0.55, 1);
  });

  test('tells whether a page may come with a second attempt', () => {
    let byLuck = costsOf(1, [20, true], [2, false]);
    let byPage = byLuck;
    for (let index = 0; index < 20; index++) {
      byLuck = noteAttempt(byLuck, { isWon: true, isAgain: true, dollars: 1 });
      byPage = noteAttempt(byPage, { isWon: false, isAgain: true, dollars: 1 });
    }
    expect(meanOf(chanceOf(byLuck, undefined, 1))).toBeGreaterThan(0.8);
    expect(meanOf(chanceOf(byPage, undefined, 1))).toBeLessThan(0.2);
    const after = [1, 2, 3, 4].map((failures) => meanOf(chanceOf(byLuck, undefined, failures)));
    expect(after).toEqual(after.toSorted((a, b) => b - a));
  });
});

describe('the level of a task', () => {
  test('is the one with the lowest cost per success, whatever its place', () => {
    const options = [optionOf(0, 1, 1, 9), optionOf(1, 4, 30, 1), optionOf(2, 20, 30, 0.1)];
    expect(chooseLevel(options, { allowance: 0, mayRetry: false }, Math.random).level).toBe(1);
    expect(
      chooseLevel([optionOf(0, 1, 6, 9), ...options.slice(1)], { allowance: 0, mayRetry: false }, Math.random)
        .level,
    ).toBe(0);
  });

  test('is one that often fails, where its failures cost little', () => {
    // Through a pool: 20 for a page, 1 for a refusal, and every second attempt is refused. An API brings each for 25.
    const pool = { ...optionOf(0, 20, 15, 15), dollarsLost: 1 };
    const api = optionOf(1, 25, 30, 0.1);
    expect(chooseLevel([pool, api], { allowance: 0, mayRetry: false }, Math.random).level).toBe(0);
    const dear = { ...pool, dollarsLost: 20 };
    expect(chooseLevel([dear, api], { allowance: 0, mayRetry: false }, Math.random).level).toBe(1);
  });

  test('is not a hopeless one, however little that costs', () => {
    const options = [optionOf(0, 0.000_01, 1, 30), optionOf(1, 1, 30, 1)];
    expect(chooseLevel(options, { allowance: 0, mayRetry: false }, Math.random).level).toBe(1);
    expect(chooseLevel(options.slice(0, 1), { allowance: 0, mayRetry: false }, Math.random).level).toBe(0);
  });

  test('explores only what could be cheaper, and only with the money that is left', () => {
    const options = [optionOf(0, 1, 2, 2), optionOf(1, 1.9, 30, 0.1), optionOf(2, 50, 0.5, 0.5)];
    const chosen = (allowance: number) => {
      const random = randomFrom(7);
      return Array.from({ length: 500 }, () =>
        chooseLevel(options, { allowance: allowance, mayRetry: false }, random),
      );
    };
    expect(chosen(0).every(({ level, explores }) => level === 1 && explores === null)).toBe(true);
    expect(chosen(0.99).every(({ level }) => level === 1)).toBe(true);
    const explored = chosen(1_000).filter(({ explores }) => explores !== null);
    expect(new Set(explored.map(({ level }) => level))).toEqual(new Set([0]));
    expect(explored[0]!.explores).toEqual({ dollars: 1, insteadOf: 1.9 / (30 / 30.1) });
  });

  test('is a hopeless one only when a retry is due, and then a cheap one', () => {
    const options = [optionOf(0, 0.000_01, 0.5, 30), optionOf(1, 1, 30, 1)];
    const random = randomFrom(5);
    const chosen = (mayRetry: boolean) =>
      Array.from({ length: 200 }, () => chooseLevel(options, { allowance: 10, mayRetry }, random).level);
    expect(new Set(chosen(false))).toEqual(new Set([1]));
    expect(chosen(true).filter((level) => level === 0).length).toBeGreaterThan(150);
  });

  test('tries a hopeless level sooner where it would save nearly all', () => {
    const hopeless = (dollars: number) => [optionOf(0, dollars, 0.5, 30), optionOf(1, 1, 30, 1)];
    expect(isRetryDue(hopeless(0.5), 49)).toBe(false);
    expect(isRetryDue(hopeless(0.5), 50)).toBe(true);
    expect(isRetryDue(hopeless(0.01), 24)).toBe(false);
    expect(isRetryDue(hopeless(0.01), 25)).toBe(true);
  });

  test('is a sure one when few attempts are left to a page', () => {
    const options = [optionOf(0, 0.01, 4, 6), optionOf(1, 1, 30, 2), optionOf(2, 9, 30, 0.5)];
    expect(surestLevel(options, 3)).toBeNull();
    expect(surestLevel(options, 2)).toBe(0);
    // The last: one is nearly as sure as the surest, and cheaper.
    expect(surestLevel(options, 1)).toBe(1);
    expect(surestLevel([optionOf(0, 0.01, 1, 9), options[2]!], 2)).toBe(2);
  });

  test('is the same for the same seed', () => {
    const options = [optionOf(0, 1, 2, 2), optionOf(1, 1.9, 30, 0.1)];
    const chosen = () => {
      const random = randomFrom(3);
      return Array.from(
        { length: 50 },
        () => chooseLevel(options, { allowance: 10, mayRetry: false }, random).level,
      );
    };
    expect(chosen()).toEqual(chosen());
  });
});
