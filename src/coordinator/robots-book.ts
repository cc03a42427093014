import type { RobotsFetch } from '../core/batch.ts';
import type { FailureCode } from '../core/failures.ts';
import { LIMITS } from '../core/limits.ts';
import type { RobotsOutcome } from '../core/outcome.ts';
import { delayOf, parseRobots, type RobotsRules } from '../core/robots.ts';
import type { HostStore, RobotsEntry } from '../ports/store.ts';

/** Parsed rules kept in memory; the rest is read back from the store. */
const RULES_CACHED_MAX = 5_000;
/** When it is looked again for the robots.txt of another host, to which one redirects. */
const ELSEWHERE_MS = 15 * 60_000;

type Known = { rules: RobotsRules; expiresAt: number };

/** What is known of robots.txt, by origin, and what is being asked. */
export class RobotsBook {
  readonly #hosts: Pick<HostStore, 'robots'>;
  readonly #product: string;
  readonly #rules = new Map<string, Known>();
  readonly #known = new Set<string>();
  readonly #asking = new Map<string, string>();
  readonly #redirects = new Map<string, { url: string; hops: number }>();

  constructor(hosts: Pick<HostStore, 'robots'>, product: string) {
    this.#hosts = hosts;
    this.#product = product;
  }

  /**
   * Null: not known, must be asked first. So must one that was asked for when the origin was counted elsewhere, by a job
   * with other groups: the time that it wants between requests is noted there.
   */
  async rulesOf(origin: string, host: string, now: number): Promise<RobotsRules | null> {
    const cached = this.#rules.get(origin);
    if (cached && cached.expiresAt > now) return cached.rules;
    const entry = await this.#hosts.robots(origin);
    if (
      !entry ||
      entry.host !== host ||
      entry.text === null ||
      entry.fetchedAt + LIMITS.robotsAgeMsMax <= now
    )
      return null;
    return this.#remember(entry).rules;
  }

  /** A guess from memory, for planning: some robots.txt of the host was read in this run. */
  isKnown(host: string): boolean {
    return this.#known.has(host);
  }

  /** While robots.txt of a host is being asked, nobody else goes there. */
  isAsking(host: string): boolean {
    return this.#asking.has(host);
  }

  ask(origin: string, host: string, permit: number): RobotsFetch {
    this.#asking.set(host, origin);
    return { origin, url: this.#redirects.get(origin)?.url ?? `${origin}/robots.txt`, permit };
  }

  /** The batch that asked is over, answer or not. */
  doneAsking(host: string): void {
    this.#asking.delete(host);
  }

  /** What to write down about an answer; null when there is none yet. */
  async entryOf(outcome: RobotsOutcome, host: string, now: number): Promise<RobotsEntry | null> {
    const { origin } = outcome;
    const base = { origin, host, fetchedAt: now, failures: 0, detail: null, crawlDelayMs: null };
    switch (outcome.kind) {
      case 'deferred':
        return null;
      case 'redirected':
        return this.#redirected(outcome, base);
      case 'failed': {
        const before = await this.#hosts.robots(origin);
        return {
          ...base,
          text: null,
          failures: (before?.text === null ? before.failures : 0) + 1,
          detail: `${outcome.code}: ${outcome.detail}`,
        };
      }
      default: {
        const text = outcome.kind === 'text' ? outcome.text : '';
        const entry: RobotsEntry = { ...base, text };
        this.#redirects.delete(origin);
        entry.crawlDelayMs = delayOf(this.#remember(entry).rules);
        return entry;
      }
    }
  }

  async #redirected(
    outcome: Extract<RobotsOutcome, { kind: 'redirected' }>,
    base: Omit<RobotsEntry, 'text'>,
  ): Promise<RobotsEntry | null> {
    const { origin, to } = outcome;
    const hops = (this.#redirects.get(origin)?.hops ?? 0) + 1;
    const isElsewhere = new URL(to).host !== new URL(origin).host;
    if (!isElsewhere && hops <= LIMITS.robotsRedirectsMax) {
      this.#redirects.set(origin, { url: to, hops });
      return null;
    }
    this.#redirects.delete(origin);
    const entry: RobotsEntry = { ...base, text: '', detail: `robots.txt redirects to ${to}` };
    if (!isElsewhere) return entry;
    const other = await this.#textElsewhere(to);
    if (other === null) {
      // No permit allows a request there now. Most pages lead there, too, and then it is asked for.
      entry.fetchedAt -= LIMITS.robotsAgeMsMax - ELSEWHERE_MS;
      return entry;
    }
    entry.text = other;
    entry.crawlDelayMs = delayOf(this.#remember(entry).rules);
    return entry;
  }

  /** The robots.txt of another host, if it was asked for already: its rules count for whoever redirects there. */
  async #textElsewhere(url: string): Promise<string | null> {
    const { origin, pathname } = new URL(url);
    const entry = pathname === '/robots.txt' ? await this.#hosts.robots(origin) : null;
    return entry?.text ?? null;
  }

  #remember(entry: RobotsEntry): Known {
    const known = {
      rules: parseRobots(entry.text ?? '', this.#product),
      expiresAt: entry.fetchedAt + LIMITS.robotsAgeMsMax,
    };
    if (this.#rules.size >= RULES_CACHED_MAX) {
      this.#rules.clear();
      this.#known.clear();
    }
    this.#known.add(entry.host);
    this.#rules.set(entry.origin, known);
    return known;
  }
}

/** The code for tasks of a host whose robots.txt cannot be had. */
export function codeOfRobotsFailure(code: FailureCode): FailureCode {
  return code === 'server-error' || code === 'unavailable' || code === 'throttled'
    ? 'robots-unreachable'
    : code;
}
