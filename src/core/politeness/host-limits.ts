import { SeineError } from '../errors.ts';
import { type HostRule, type JobSpec, parallelOf } from '../job-schema/job.ts';
import { LruMap } from '../lru.ts';

/** What the job allows for one host. */
export interface HostLimits {
  /** Requests per second; Infinity when only parallelism limits. */
  rate: number;
  parallel: number;
  window: CompiledWindow | null;
}

export type HostLimiter = (host: string) => HostLimits;

const REMEMBERED_MAX = 10_000;

/** The job's limits, with its rules for named hosts. Hosts are those that rates are counted by. */
export function compileHostLimits(spec: JobSpec): HostLimiter {
  const { rate, hosts } = spec.politeness;
  const general: HostLimits = { rate: numeric(rate), parallel: parallelOf(spec), window: null };
  if (Object.keys(hosts).length === 0) return () => general;
  const ruleOf = compileHostRules(hosts);
  const limitsOf = new Map(
    Object.values(hosts).map((rule) => [
      rule,
      {
        rate: rule.rate === undefined ? general.rate : numeric(rule.rate),
        parallel: rule.parallel ?? general.parallel,
        window: rule.window ? new CompiledWindow(rule.window) : null,
      },
    ]),
  );
  const known = new LruMap<HostLimits>(REMEMBERED_MAX);
  return (host) => {
    let limits = known.get(host);
    if (!limits) {
      const rule = ruleOf(host);
      limits = (rule && limitsOf.get(rule)) ?? general;
      known.set(host, limits);
    }
    return limits;
  };
}

/** The first rule that fits a host or a group of hosts. */
export function compileHostRules(hosts: Record<string, HostRule>): (host: string) => HostRule | null {
  const rules = Object.entries(hosts).map(([pattern, rule]) => ({
    fits: fitter(pattern.toLowerCase()),
    rule,
  }));
  return (host) => rules.find(({ fits }) => fits(host))?.rule ?? null;
}

function numeric(rate: number | 'max'): number {
  return rate === 'max' ? Number.POSITIVE_INFINITY : rate;
}

/** Set before what hosts that share their limits have in common: their registrable domain, or their address. */
export const SITE_MARK = '*.';
export const ADDRESS_MARK = 'ip:';

/** `shop.example` fits all its ports; `*.example` what is below it; a group of hosts fits like its domain or address. */
function fitter(pattern: string): (host: string) => boolean {
  const below = pattern.startsWith('*.') ? pattern.slice(1) : null;
  return (host) => {
    if (host.startsWith(ADDRESS_MARK)) return host.slice(ADDRESS_MARK.length) === pattern;
    const plain = host.startsWith(SITE_MARK) ? host.slice(SITE_MARK.length) : host;
    const name = plain.replace(/:\d+$/, '');
    return (
      name === pattern || plain === pattern || host === pattern || (below !== null && name.endsWith(below))
    );
  };
}

type TimeWindow = NonNullable<HostRule['window']>;

const MINUTE_MS = 60_000;
const DAY_MINUTES = 1_440;
/** Clocks are put forward and back by a quarter of an hour at the least, somewhere. */
const STEP_MINUTES = 15;
/** A request takes some time to reach the host, and clocks differ a little. */
const CLOSING_GUARD_MS = 500;
/** So little time is not worth a permit: it may be over before a worker has it. */
const CLOSING_MS_MIN = 500;

/** Hours of the day in a time zone. `from` equal to `to` is the whole day. */
export class CompiledWindow {
  readonly #from: number;
  readonly #to: number;
  readonly #format: Intl.DateTimeFormat;
  /** The opening that was looked at last: it is asked for with every plan. */
  #openFrom = Number.POSITIVE_INFINITY;
  #openUntil = Number.NEGATIVE_INFINITY;

  constructor({ from, to, timeZone }: TimeWindow) {
    this.#from = minutesOf(from);
    this.#to = minutesOf(to);
    try {
      this.#format = new Intl.DateTimeFormat('en-GB', {
        timeZone,
        hour: '2-digit',
        minute: '2-digit',
        hourCycle: 'h23',
      });
    } catch {
      throw new SeineError(`unknown time zone '${timeZone}'`, { hint: 'use a name such as Europe/Paris' });
    }
  }

  isOpen(at: number): boolean {
    const now = minutesOf(this.#format.format(at));
    if (this.#from === this.#to) return true;
    return this.#from < this.#to ? now >= this.#from && now < this.#to : now >= this.#from || now < this.#to;
  }

  /** When it closes, for a time at which it is open; Infinity when it never does. */
  closesAt(at: number): number {
    if (this.#from === this.#to) return Number.POSITIVE_INFINITY;
    if (at >= this.#openFrom && at < this.#openUntil) return this.#openUntil;
    const stepMs = STEP_MINUTES * MINUTE_MS;
    const offsetMs = (this.#to % STEP_MINUTES) * MINUTE_MS;
    // Where the clocks change, it may end at a full quarter of an hour instead, or some quarters sooner or later.
    let quarter = Math.floor(at / stepMs) * stepMs;
    let closesAt = at;
    while (this.isOpen(closesAt)) {
      if (quarter + offsetMs > closesAt) closesAt = quarter + offsetMs;
      else closesAt = quarter += stepMs;
    }
    [this.#openFrom, this.#openUntil] = [at, closesAt];
    return closesAt;
  }

  /** From when on the host may get a permit that cannot start before `at`, and when its last request may leave. */
  nextPermit(at: number): { opensAt: number; closesAt: number } {
    const opensAt = this.opensAt(at);
    const endsAt = this.closesAt(opensAt);
    const closesAt = endsAt - CLOSING_GUARD_MS;
    if (closesAt - opensAt >= CLOSING_MS_MIN) return { opensAt, closesAt };
    const nextAt = this.opensAt(endsAt);
    return { opensAt: nextAt, closesAt: this.closesAt(nextAt) - CLOSING_GUARD_MS };
  }

  /** `at` itself when it is open then; otherwise when it next opens. */
  opensAt(at: number): number {
    if (this.isOpen(at)) return at;
    const now = minutesOf(this.#format.format(at));
    const wait = (this.#from - now + DAY_MINUTES) % DAY_MINUTES;
    let opens = (Math.floor(at / MINUTE_MS) + wait) * MINUTE_MS;
    // On days on which the clocks change it may be later by as much as they move.
    while (!this.isOpen(opens)) opens += STEP_MINUTES * MINUTE_MS;
    return opens;
  }
}

function minutesOf(time: string): number {
  const [hours = '0', minutes = '0'] = time.split(':');
  return Number(hours) * 60 + Number(minutes);
}
