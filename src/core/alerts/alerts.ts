/**
 * Alerts: what a person should look at, decided from numbers of the last hour. Pure: time is given.
 *
 * Reading     what one rule makes of the numbers now: `bad`, `good`, or `between`, which changes nothing.
 * Hysteresis  an alert fires after the reading was bad for a while, and is resolved after it was good for a while. Between
 *             the two thresholds it stays as it is, so that a number near a threshold does not make it come and go.
 * Subject     the job that it is about, by name; empty for the server itself.
 */

export const ALERT_KINDS = {
  'backlog-grows': 'the backlog has grown without a break for a while',
  'success-low': 'too few pages succeed',
  'workers-halved': 'fewer than half of the slots of the last hour are left',
  'errors-rise': 'many more errors than in the last hour',
  'dead-letters-grow': 'many URLs are given up',
  'fill-rate-drops': 'records have lost fields that they had before',
  'over-budget': 'the job is going to cost more than it may',
  'disk-low': 'little room is left on the disk',
} as const;

export type AlertKind = keyof typeof ALERT_KINDS;

/** Thresholds, and after how long; each can be set. */
export const THRESHOLDS_DEFAULT = {
  /** Minutes in which the backlog never shrinks. */
  backlogMinutes: 15,
  /** Share of pages that have to succeed, over ten minutes. */
  success: 0.95,
  /** Share of the slots of the last hour that have to be left. */
  workers: 0.5,
  /** Times the mean of the last hour. */
  errors: 3,
  /** URLs that are given up within 15 minutes. */
  dead: 100,
  /** Free space, in GB. */
  diskGb: 2,
} as const;

export type Thresholds = Readonly<Record<keyof typeof THRESHOLDS_DEFAULT, number>>;

export function parseThresholds(text: string): Thresholds | null {
  const thresholds: Record<keyof Thresholds, number> = { ...THRESHOLDS_DEFAULT };
  for (const part of text.split(',')) {
    const [, name = '', number = ''] = /^\s*(\w+)\s*=\s*([\d.]+)\s*$/.exec(part) ?? [];
    const value = Number(number);
    if (!Object.hasOwn(thresholds, name) || number === '' || !(value > 0 && value < 1e9)) return null;
    thresholds[name as keyof Thresholds] = value;
  }
  return thresholds;
}

export function thresholdsText(thresholds: Thresholds): string {
  return Object.entries(thresholds)
    .map(([name, value]) => `${name}=${value}`)
    .join(',');
}

/** What happened within a minute. */
export interface AlertMinute {
  /** Epoch milliseconds of its beginning. */
  at: number;
  succeeded: number;
  failed: number;
  /** Attempts that failed. */
  failures: number;
}

export interface JobFacts {
  job: string;
  pending: number;
  /** Of the last hour; those in which nothing happened are absent. */
  minutes: readonly AlertMinute[];
  /** Fields of records that were filled more often before, in words. */
  drops: readonly string[];
  /** What was spent, what it will come to, and what is allowed; null without a limit. */
  budget: { spent: number; expected: number; max: number } | null;
}

export interface AlertFacts {
  now: number;
  jobs: readonly JobFacts[];
  /** Null while no job runs. */
  slots: number | null;
  diskFreeBytes: number | null;
}

interface AlertReading {
  kind: AlertKind;
  subject: string;
  reading: 'bad' | 'good' | 'between';
  /** What is wrong, with its number. */
  text: string;
}

/** A change that people are told of. */
export interface AlertChange {
  kind: AlertKind;
  subject: string;
  state: 'firing' | 'resolved';
  text: string;
}

/** How long a reading has to last before it counts; rules over a window of time have waited already. */
const FIRE_MS: Partial<Record<AlertKind, number>> = { 'workers-halved': 120_000, 'over-budget': 60_000 };
const RESOLVE_MS = 120_000;

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
/** Fewer say nothing about a share. */
const PAGES_MIN = 20;
const ERRORS_MIN = 10;
const GB = 1e9;
/** Jobs whose history is remembered. */
const JOBS_MAX = 1_000;

interface Sample {
  at: number;
  value: number;
}

interface Watched {
  isFiring: boolean;
  /** Since when the reading has been the other way; null when it is not. */
  since: number | null;
}

/** What the rules remember between two looks: numbers of the last hour that no row has, and what is firing. */
export class AlertJudge {
  readonly #thresholds: Thresholds;
  readonly #watched = new Map<string, Watched>();
  readonly #backlogs = new Map<string, Sample[]>();
  #slots: Sample[] = [];

  /** `firing`: alerts that fired before a restart. */
  constructor(thresholds: Thresholds, firing: readonly { kind: AlertKind; subject: string }[] = []) {
    this.#thresholds = thresholds;
    for (const { kind, subject } of firing)
      this.#watched.set(keyOf(kind, subject), { isFiring: true, since: null });
  }

  /** What has changed since the last look. */
  look(facts: AlertFacts): AlertChange[] {
    const readings = [...facts.jobs.flatMap((job) => this.#ofJob(job, facts.now)), ...this.#ofServer(facts)];
    const changes = readings.flatMap((reading) => this.#judge(reading, facts.now) ?? []);
    return [...changes, ...this.#endOfJobs(readings)];
  }

  #judge({ kind, subject, reading, text }: AlertReading, now: number): AlertChange | null {
    const key = keyOf(kind, subject);
    const watched = this.#watched.get(key) ?? { isFiring: false, since: null };
    const isOtherWay = watched.isFiring ? reading === 'good' : reading === 'bad';
    if (!isOtherWay) {
      watched.since = null;
      if (watched.isFiring) this.#watched.set(key, watched);
      else this.#watched.delete(key);
      return null;
    }
    watched.since ??= now;
    this.#watched.set(key, watched);
    const waitMs = watched.isFiring ? RESOLVE_MS : (FIRE_MS[kind] ?? 0);
    if (now - watched.since < waitMs) return null;
    watched.isFiring = !watched.isFiring;
    watched.since = null;
    if (!watched.isFiring) this.#watched.delete(key);
    return { kind, subject, state: watched.isFiring ? 'firing' : 'resolved', text };
  }

  /** A job that has ended has nothing left to look at. */
  #endOfJobs(readings: readonly AlertReading[]): AlertChange[] {
    const read = new Set(readings.map(({ kind, subject }) => keyOf(kind, subject)));
    const changes: AlertChange[] = [];
    for (const [key, { isFiring }] of this.#watched) {
      const [kind, subject] = JSON.parse(key) as [AlertKind, string];
      if (read.has(key) || subject === '') continue;
      this.#watched.delete(key);
      if (isFiring) changes.push({ kind, subject, state: 'resolved', text: 'the job no longer runs' });
    }
    const jobs = new Set(readings.map(({ subject }) => subject));
    for (const job of this.#backlogs.keys()) if (!jobs.has(job)) this.#backlogs.delete(job);
    return changes;
  }

  #ofJob(facts: JobFacts, now: number): AlertReading[] {
    const about = (kind: AlertKind, reading: AlertReading['reading'], text: string): AlertReading => ({
      kind,
      subject: facts.job,
      reading,
      text,
    });
    const { success, errors, dead } = this.#thresholds;
    const within = (fromMs: number, toMs = 0) => minutesWithin(facts, now - fromMs, now - toMs);
    const lately = within(10 * MINUTE_MS);
    const [succeeded, failed] = [sum(lately, 'succeeded'), sum(lately, 'failed')];
    const pages = succeeded + failed;
    const share = pages < PAGES_MIN ? 1 : succeeded / pages;
    const clearShare = success + (1 - success) / 5;

    const failures = sum(within(5 * MINUTE_MS), 'failures') / 5;
    const before = within(HOUR_MS, 5 * MINUTE_MS);
    const mean = sum(before, 'failures') / Math.max(1, before.length);
    const isMany = failures * 5 > ERRORS_MIN && before.length > 0;

    const givenUp = sum(within(15 * MINUTE_MS), 'failed');
    const { budget } = facts;
    return [
      this.#backlog(facts, now),
      about(
        'success-low',
        share < success ? 'bad' : share >= clearShare ? 'good' : 'between',
        `${Math.round(share * 1_000) / 10} % of ${pages} pages succeeded within 10 minutes`,
      ),
      about(
        'errors-rise',
        isMany && failures > errors * mean
          ? 'bad'
          : failures <= (errors * mean) / 2 || !isMany
            ? 'good'
            : 'between',
        `${round(failures)} errors a minute, ${round(mean)} in the hour before`,
      ),
      about(
        'dead-letters-grow',
        givenUp > dead ? 'bad' : givenUp <= dead / 2 ? 'good' : 'between',
        `${givenUp} URLs were given up within 15 minutes`,
      ),
      about(
        'fill-rate-drops',
        facts.drops.length > 0 ? 'bad' : 'good',
        facts.drops.slice(0, 5).join(', ') || 'records are as complete as before',
      ),
      about(
        'over-budget',
        budget && budget.expected > budget.max ? 'bad' : 'good',
        budget
          ? `${round(budget.expected)} USD expected of ${round(budget.max)} that are allowed, ${round(budget.spent)} spent`
          : 'there is no limit',
      ),
    ];
  }

  #backlog({ job, pending }: JobFacts, now: number): AlertReading {
    const windowMs = this.#thresholds.backlogMinutes * MINUTE_MS;
    const samples = [...(this.#backlogs.get(job) ?? []), { at: now, value: pending }];
    // One more than the window has, so that its whole length is known.
    while (samples.length > 1 && samples[1]!.at <= now - windowMs) samples.shift();
    if (this.#backlogs.size < JOBS_MAX || this.#backlogs.has(job)) this.#backlogs.set(job, samples);
    const [first] = samples;
    const hasShrunk = samples.some(({ value }, index) => index > 0 && value < samples[index - 1]!.value);
    const isWhole = now - first!.at >= windowMs;
    const grown = pending - first!.value;
    return {
      kind: 'backlog-grows',
      subject: job,
      reading: isWhole && !hasShrunk && grown > 0 ? 'bad' : hasShrunk || grown <= 0 ? 'good' : 'between',
      text: `${pending} URLs wait, ${Math.max(0, grown)} more than ${this.#thresholds.backlogMinutes} minutes ago`,
    };
  }

  #ofServer({ now, slots, diskFreeBytes }: AlertFacts): AlertReading[] {
    const readings: AlertReading[] = [];
    if (slots !== null) {
      this.#slots = [...this.#slots.filter(({ at }) => at > now - HOUR_MS), { at: now, value: slots }];
      const most = Math.max(...this.#slots.map(({ value }) => value));
      const left = most === 0 ? 1 : slots / most;
      const { workers } = this.#thresholds;
      readings.push({
        kind: 'workers-halved',
        subject: '',
        reading: left < workers ? 'bad' : left >= Math.min(1, workers * 1.2) ? 'good' : 'between',
        text: `${slots} slots are left of ${most} in the last hour`,
      });
    }
    if (diskFreeBytes !== null) {
      const free = diskFreeBytes / GB;
      const { diskGb } = this.#thresholds;
      readings.push({
        kind: 'disk-low',
        subject: '',
        reading: free < diskGb ? 'bad' : free >= diskGb * 1.2 ? 'good' : 'between',
        text: `${round(free)} GB are free`,
      });
    }
    return readings;
  }
}

function keyOf(kind: AlertKind, subject: string): string {
  return JSON.stringify([kind, subject]);
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}

function minutesWithin({ minutes }: JobFacts, from: number, to: number): AlertMinute[] {
  return minutes.filter(({ at }) => at > from - MINUTE_MS && at <= to);
}

function sum(minutes: readonly AlertMinute[], name: 'succeeded' | 'failed' | 'failures'): number {
  return minutes.reduce((all, minute) => all + minute[name], 0);
}
