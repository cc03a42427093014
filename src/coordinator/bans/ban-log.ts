import { BAN_MS_MAX, type HostBan, isBanned } from '../../core/bans/bans.ts';
import { withSince } from '../../core/text/since.ts';
import type { Logger } from '../../ports/ambient.ts';

interface Entry {
  since: number;
  restUntil: number;
}

/** Which hosts ban us now, for people and for the end of the job; what a ban is, is decided in `core/bans/`. */
export class BanLog {
  readonly #logger: Pick<Logger, 'info' | 'warn'>;
  /** Grows with the hosts that ban us, each with one probe out at most. */
  readonly #hosts = new Map<string, Entry>();

  constructor({ logger }: { logger: Pick<Logger, 'info' | 'warn'> }) {
    this.#logger = logger;
  }

  note(host: string, ban: HostBan, now: number): void {
    const before = this.#hosts.get(host);
    if (!isBanned(ban) || ban.rests === 0) {
      if (!before) return;
      this.#hosts.delete(host);
      this.#logger.info(`${host} answers again`, { seconds: Math.round((now - before.since) / 1_000) });
      return;
    }
    // A ban that an earlier run met counts anew: whoever resumes a job wants it tried again.
    this.#hosts.set(host, { since: before?.since ?? now, restUntil: ban.restUntil });
    if (!before)
      this.#logger.warn(`${host} refuses every page since it last answered: its pages wait`, {
        nextProbe: new Date(ban.restUntil).toISOString(),
      });
  }

  /** In words; null when no host bans us. */
  tell(now: number): string | null {
    const [first] = this.#hosts;
    if (!first) return null;
    const [host, { since, restUntil }] = first;
    const others = this.#hosts.size > 1 ? ` and ${this.#hosts.size - 1} more hosts` : '';
    const reason = `${host}${others} refuses every page: next probe at ${new Date(restUntil).toISOString()}`;
    return withSince(reason, now - since);
  }

  /** A host that has banned us for so long that somebody has to look. */
  lastingBan(now: number): string | null {
    for (const [host, { since }] of this.#hosts) if (now - since >= BAN_MS_MAX) return host;
    return null;
  }
}
