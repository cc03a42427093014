import { refusedShare } from '../calibration/sequential-test.ts';
import { FAILURES, type FailureCode, isRefusal } from '../failures.ts';
import { addHistogram, emptyHistogram, type Histogram, quantile } from '../rollups/histogram.ts';
import { countsOf, type Rollup } from '../rollups/rollup.ts';

/**
 * Quiet hours: the hours of the day (UTC) in which a host refuses fewer requests, or answers faster. They are proposed as
 * the host's `window`, never applied unasked.
 *
 * Known hour   an hour of the day with enough requests on several days.
 * Window       known hours in a row, also over midnight. It is compared with all other known hours.
 *
 * A window is quieter if it certainly refuses less than half as often (95 % intervals of both sides) and does not answer
 * more slowly, or if it refuses no more often and answers in at most 70 % of the time. The same has to be true of each of
 * its hours alone. Of several windows the longest is proposed.
 */
export interface QuietHours {
  /** As in a job: `politeness.hosts.<host>.window`. */
  window: { from: string; to: string; timeZone: 'UTC' };
  /** How it is within the window and in the other hours: share of requests refused, median of answers. */
  inside: HourFigures;
  outside: HourFigures;
  /** Days on which requests were sent. */
  days: number;
}

export interface HourFigures {
  refusedShare: number;
  medianMs: number | null;
  requests: number;
}

interface Hours {
  requests: number;
  refused: number;
  latency: Histogram;
  days: Set<number>;
}

interface Window {
  first: number;
  length: number;
  inside: Hours;
  outside: Hours;
}

const HOURS = 24;
const HOUR_MS = 3_600_000;
/** Fewer say little about a share of some percent. */
const REQUESTS_MIN = 100;
/** What happened on one or two days may be an outage. */
const DAYS_MIN = 3;
const KNOWN_HOURS_MIN = 12;
/** A shorter window delays a job more than it helps; a longer one leaves nothing to compare with. */
const WINDOW_HOURS_MIN = 3;
const WINDOW_HOURS_MAX = 12;
const OTHER_HOURS_MIN = 3;
const SHARE_FACTOR = 0.5;
const SPEED_FACTOR = 0.7;
/** Medians within this are the same. */
const SPEED_SLACK = 1.1;

/** `rows`: what happened at the host, by hours; see `RollupStore.series`. Null when no hours stand out. */
export function quietHoursOf(rows: readonly { at: number; rollup: Rollup }[]): QuietHours | null {
  const hours = byHourOfDay(rows);
  const isKnown = (hour: number) =>
    hours[hour]!.requests >= REQUESTS_MIN && hours[hour]!.days.size >= DAYS_MIN;
  const known = [...hours.keys()].filter(isKnown);
  if (known.length < KNOWN_HOURS_MIN) return null;
  let best: Window | null = null;
  for (let length = WINDOW_HOURS_MIN; length <= WINDOW_HOURS_MAX; length++)
    for (let first = 0; first < HOURS; first++) {
      const within = Array.from({ length }, (_, index) => (first + index) % HOURS);
      const others = known.filter((hour) => !within.includes(hour));
      if (!within.every(isKnown) || others.length < OTHER_HOURS_MIN) continue;
      const inside = sumOf(within.map((hour) => hours[hour]!));
      const outside = sumOf(others.map((hour) => hours[hour]!));
      const each = within.map((hour) => hours[hour]!);
      const window = { first, length, inside, outside };
      if (isQuieter(inside, outside, each)) best = betterOf(best, window);
    }
  if (best === null) return null;
  const { first, length, inside, outside } = best;
  return {
    window: { from: clockTime(first), to: clockTime(first + length), timeZone: 'UTC' },
    inside: figuresOf(inside),
    outside: figuresOf(outside),
    days: new Set(rows.map(({ at }) => dayOf(at))).size,
  };
}

function isQuieter(inside: Hours, outside: Hours, each: readonly Hours[]): boolean {
  const [here, there] = [shareOf(inside), shareOf(outside)];
  const [ms, otherMs] = [medianOf(inside), medianOf(outside)];
  const isAsFast = ms === null || otherMs === null || ms <= otherMs * SPEED_SLACK;
  const refusesLess = (hour: Hours) => shareOf(hour).share < there.share * SHARE_FACTOR;
  if (isAsFast && here.high < there.low * SHARE_FACTOR && each.every(refusesLess)) return true;
  if (otherMs === null || here.share > there.share) return false;
  return each.every((hour) => (medianOf(hour) ?? otherMs) <= otherMs * SPEED_FACTOR);
}

/** The longer one; of one length, the quieter one. */
function betterOf(one: Window | null, other: Window): Window {
  if (one === null || one.length !== other.length) return (one?.length ?? 0) > other.length ? one! : other;
  const difference = shareOf(other.inside).share - shareOf(one.inside).share;
  const isFaster = (medianOf(other.inside) ?? 0) < (medianOf(one.inside) ?? 0);
  return difference < 0 || (difference === 0 && isFaster) ? other : one;
}

function byHourOfDay(rows: readonly { at: number; rollup: Rollup }[]): Hours[] {
  const hours = Array.from({ length: HOURS }, emptyHours);
  for (const { at, rollup } of rows) {
    const hour = hours[Math.floor(at / HOUR_MS) % HOURS]!;
    hour.requests += rollup.requests;
    hour.refused += refusalsOf(rollup);
    addHistogram(hour.latency, rollup.latency);
    if (rollup.requests > 0) hour.days.add(dayOf(at));
  }
  return hours;
}

/** The host asked for fewer requests, or refused how it was asked. */
function refusalsOf(rollup: Rollup): number {
  return countsOf(rollup, 'failure').reduce((sum, [code, count]) => sum + (isRefused(code) ? count : 0), 0);
}

function isRefused(code: string): boolean {
  if (!Object.hasOwn(FAILURES, code)) return false;
  const known = code as FailureCode;
  return isRefusal(known, null) || FAILURES[known].retry === 'throttled';
}

function emptyHours(): Hours {
  return { requests: 0, refused: 0, latency: emptyHistogram(), days: new Set() };
}

function sumOf(each: readonly Hours[]): Hours {
  const sum = emptyHours();
  for (const { requests, refused, latency } of each) {
    sum.requests += requests;
    sum.refused += refused;
    addHistogram(sum.latency, latency);
  }
  return sum;
}

function shareOf({ requests, refused }: Hours): ReturnType<typeof refusedShare> {
  return refusedShare(Math.min(refused, requests), requests);
}

function medianOf({ latency }: Hours): number | null {
  return quantile(latency, 0.5);
}

function figuresOf(hours: Hours): HourFigures {
  return {
    refusedShare: shareOf(hours).share,
    medianMs: medianOf(hours),
    requests: hours.requests,
  };
}

function clockTime(hour: number): string {
  return `${String(hour % HOURS).padStart(2, '0')}:00`;
}

function dayOf(at: number): number {
  return Math.floor(at / (HOURS * HOUR_MS));
}
