import type { RobotsFetch } from '../core/batch.ts';
import type { FailureCode } from '../core/failures.ts';
import { LIMITS } from '../core/limits.ts';
import type { RobotsOutcome } from '../core/outcome.ts';
import { delayOf, parseRobots, type RobotsRules } from '../core/robots.ts';
import type { HostStore, RobotsEntry } from '../ports/store.ts';

/** Parsed rules kept in memory; the rest is read back from the store. */
const RULES_CACHED_MAX = 5_000;

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

  /** Null: not known, must be asked first. */
  async rulesOf(origin: string, now: number): Promise<RobotsRules | null> {
    const cached = this.#rules.get(origin);
    if (cached && cached.expiresAt > now) return cached.rules;
    const entry = await this.#hosts.robots(origin);
    if (!entry || entry.text === null || entry.fetchedAt + LIMITS.robotsAgeMsMax <= now) return null;
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

  #redirected(
    outcome: Extract<RobotsOutcome, { kind: 'redirected' }>,
    base: Omit<RobotsEntry, 'text'>,
  ): RobotsEntry | null {
    const hops = (this.#redirects.get(outcome.origin)?.hops ?? 0) + 1;
    const elsewhere = new URL(outcome.to).host !== new URL(outcome.origin).host;
    // The other host's own robots.txt will guard what is fetched there.
    if (elsewhere || hops > LIMITS.robotsRedirectsMax) {
      this.#redirects.delete(outcome.origin);
      return { ...base, text: '', detail: `robots.txt redirects to ${outcome.to}` };
    }
    this.#redirects.set(outcome.origin, { url: outcome.to, hops });
    return null;
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
