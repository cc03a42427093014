import type { RobotsFetch } from '../../core/batch/batch.ts';
import type { RobotsOutcome } from '../../core/batch/outcome.ts';
import { isPermanent } from '../../core/giving-up/giving-up.ts';
import type { JobSpec } from '../../core/job-schema/job.ts';
import { LIMITS } from '../../core/limits.ts';
import { BoundedMap, BoundedSet } from '../../core/lru.ts';
import { backoffMs } from '../../core/retry/retry.ts';
import {
  delayOf,
  isOrigin,
  parseRobots,
  type RobotsRules,
  robotsPlaceOf,
  robotsUrlOf,
} from '../../core/robots/robots.ts';
import type { HostStore, RobotsEntry } from '../../ports/store.ts';
import { ParsedRobots, type ParsedRules } from './parsed-robots.ts';

/** RFC 9309 asks for at least five. */
export const ROBOTS_REDIRECTS_MAX = 5;
/** RFC 9309: a cached robots.txt should not be used for longer than a day. */
export const ROBOTS_AGE_MS_MAX = 24 * 3_600_000;

/** Hosts of which it is remembered that their robots.txt was read in this run. */
const KNOWN_HOSTS_MAX = 5_000;
/** Hosts whose robots.txt is at another one; what is forgotten is found again with the next task. */
const WANTED_MAX = 20_000;
/** How long a file elsewhere that could not be fetched in all attempts counts as such, for whoever else redirects there. */
const UNREACHABLE_MS = LIMITS.hostRestMsMax;

/** A host whose robots.txt redirects to a file at another host, which must be asked for there. */
interface WantedRobots {
  url: string;
  /** What the other host is counted by. */
  at: string;
  /** From when on there is a task to ask with. */
  dueAt: number;
}

/** How to come to the rules of an origin. */
export type RobotsStep =
  | { kind: 'ask'; url: string }
  | { kind: 'wait'; until: number }
  /** To be written down: all redirects have been followed. */
  | { kind: 'found'; entry: RobotsEntry }
  | { kind: 'unreachable'; detail: string };

/** What a fetch is for: the hosts as they are counted, of the origin and of where it is asked. */
interface Question {
  url: string;
  host: string;
  at: string;
}

/** What is known of robots.txt, by origin, and what is being asked; the states are in `core/robots/`. */
export class RobotsCache {
  readonly #hosts: Pick<HostStore, 'robots'>;
  readonly #product: string;
  readonly #retry: JobSpec['retry'];
  readonly #parsed: ParsedRobots;
  readonly #known = new BoundedSet<string>(KNOWN_HOSTS_MAX);
  /** By origin: what is asked for it, and which hosts wait meanwhile. */
  readonly #questions = new Map<string, Question>();
  readonly #busy = new Map<string, Set<string>>();
  readonly #wanted = new BoundedMap<string, WantedRobots>(WANTED_MAX);

  constructor(
    hosts: Pick<HostStore, 'robots'>,
    product: string,
    retry: JobSpec['retry'],
    parsed: ParsedRobots = new ParsedRobots(),
  ) {
    this.#hosts = hosts;
    this.#product = product;
    this.#retry = retry;
    this.#parsed = parsed;
  }

  /**
   * Null: not known, see `nextStep`. So must one be that was asked for when the origin was counted elsewhere, by a job
   * with other groups: the time that it wants between requests is noted there.
   */
  async rulesOf(origin: string, host: string, now: number): Promise<RobotsRules | null> {
    const cached = this.#parsed.get(this.#keyOf(origin, host));
    if (cached && cached.expiresAt > now) {
      // Another job of this process may have asked.
      if (!this.#known.has(host)) this.#known.add(host);
      return cached.rules;
    }
    const entry = await this.#hosts.robots(origin);
    if (!entry || entry.host !== host || entry.text === null || isOld(entry, now)) return null;
    return this.#remember(entry).rules;
  }

  /** Follows what is known of the redirects of an origin's robots.txt, up to what must be asked next. */
  async nextStep(origin: string, host: string, now: number): Promise<RobotsStep> {
    const passed = new Set<string>();
    let place = origin;
    // Whole milliseconds, as everything that is stored: the clock of another coordinator may be ahead of this one's.
    let fetchedAt = Math.floor(now);
    while (true) {
      const entry = await this.#hosts.robots(place);
      if (!entry || isOld(entry, now)) return { kind: 'ask', url: robotsUrlOf(place) };
      const { text, redirectTo } = entry;
      fetchedAt = Math.min(fetchedAt, entry.fetchedAt);
      if (redirectTo === null) {
        if (place === origin) return { kind: 'ask', url: robotsUrlOf(place) };
        if (text === null) return this.#afterFailure(entry, now);
        return this.#found({ origin, host, text, fetchedAt }, robotsUrlOf(place));
      }
      passed.add(place);
      place = robotsPlaceOf(redirectTo);
      // RFC 9309: what is not found behind five redirects counts as if there were none.
      if (passed.has(place) || passed.size > ROBOTS_REDIRECTS_MAX)
        return this.#found({ origin, host, text: '', fetchedAt }, redirectTo);
    }
  }

  /** A guess from memory, for planning: some robots.txt of the host was read in this run. */
  isKnown(host: string): boolean {
    return this.#known.has(host);
  }

  /** While robots.txt of a host is being asked, or something is asked there for another, nothing else is sent there. */
  isAsking(host: string): boolean {
    return this.#busy.has(host);
  }

  ask(origin: string, question: Question, permits: Pick<RobotsFetch, 'permit' | 'for'>): RobotsFetch {
    this.#questions.set(origin, question);
    for (const host of [question.host, question.at])
      this.#busy.set(host, (this.#busy.get(host) ?? new Set()).add(origin));
    return { origin, url: question.url, ...permits };
  }

  /** The batch that asked is over, answer or not. Whoever waits for the same answer looks what it was. */
  doneAsking(origin: string): void {
    const question = this.#questions.get(origin);
    if (!question) return;
    this.#questions.delete(origin);
    for (const host of [question.host, question.at]) {
      const origins = this.#busy.get(host);
      origins?.delete(origin);
      if (origins?.size === 0) this.#busy.delete(host);
    }
    for (const [host, { url }] of this.#wanted) if (url === question.url) this.#wanted.delete(host);
  }

  want(host: string, wanted: WantedRobots): void {
    this.#wanted.set(host, wanted);
  }

  get hasWanted(): boolean {
    return this.#wanted.size > 0;
  }

  /** It is granted; whether there is still need for it shows with the tasks. */
  dropWanted(host: string): void {
    this.#wanted.delete(host);
  }

  wantedBy(host: string): WantedRobots | null {
    return this.#wanted.get(host) ?? null;
  }

  /** What to write down about an answer: where it was asked, and for whom. */
  async entriesOf(outcome: RobotsOutcome, question: Question, now: number): Promise<RobotsEntry[]> {
    if (outcome.kind === 'deferred') return [];
    const place = robotsPlaceOf(question.url);
    const base = { ...NOTHING, origin: place, host: question.at, fetchedAt: now };
    if (outcome.kind === 'redirected')
      return [{ ...base, redirectTo: outcome.to, detail: `robots.txt redirects to ${outcome.to}` }];
    if (outcome.kind === 'failed') {
      const before = await this.#hosts.robots(place);
      const failures = (before?.text === null ? before.failures : 0) + 1;
      const counted = isPermanent(outcome.code) ? Math.max(failures, this.#retry.attempts) : failures;
      return [{ ...base, failures: counted, detail: `${outcome.code}: ${outcome.detail}` }];
    }
    const answer = { ...base, text: outcome.kind === 'text' ? outcome.text : '' };
    // A file that only others redirect to says nothing of the host that has it.
    const crawlDelayMs = isOrigin(place) ? delayOf(this.#remember(answer).rules) : null;
    const entries: RobotsEntry[] = [{ ...answer, crawlDelayMs }];
    if (outcome.origin === place) return entries;
    const { origin } = outcome;
    const { text, fetchedAt } = answer;
    return [...entries, this.#found({ origin, host: question.host, text, fetchedAt }, question.url).entry];
  }

  #found(
    answer: Pick<RobotsEntry, 'origin' | 'host' | 'text' | 'fetchedAt'>,
    url: string,
  ): Extract<RobotsStep, { kind: 'found' }> {
    const entry = { ...NOTHING, ...answer, detail: `robots.txt redirects to ${url}` };
    return { kind: 'found', entry: { ...entry, crawlDelayMs: delayOf(this.#remember(entry).rules) } };
  }

  /** Of a file elsewhere: the wait grows with each failure, for all hosts that redirect there together. */
  #afterFailure({ origin, failures, fetchedAt, detail }: RobotsEntry, now: number): RobotsStep {
    const url = robotsUrlOf(origin);
    if (failures >= this.#retry.attempts && now < fetchedAt + UNREACHABLE_MS)
      return { kind: 'unreachable', detail: `robots.txt redirects to ${url}: ${detail}` };
    const until = fetchedAt + backoffMs(failures, this.#retry, 1);
    return until > now ? { kind: 'wait', until } : { kind: 'ask', url };
  }

  #remember(entry: RobotsEntry): ParsedRules {
    const parsed = {
      rules: parseRobots(entry.text ?? '', this.#product),
      expiresAt: entry.fetchedAt + ROBOTS_AGE_MS_MAX,
    };
    this.#known.add(entry.host);
    this.#parsed.set(this.#keyOf(entry.origin, entry.host), parsed);
    return parsed;
  }

  /** Jobs may call themselves differently, and count an origin by different hosts. */
  #keyOf(origin: string, host: string): string {
    return `${this.#product} ${host} ${origin}`;
  }
}

const NOTHING = { text: null, failures: 0, detail: null, crawlDelayMs: null, redirectTo: null };

function isOld({ fetchedAt }: RobotsEntry, now: number): boolean {
  return fetchedAt + ROBOTS_AGE_MS_MAX <= now;
}
