import { type HostRule, type JobSpec, parallelOf } from './job.ts';
import { CompiledWindow } from './time-window.ts';

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
  const known = new Map<string, HostLimits>();
  return (host) => {
    let limits = known.get(host);
    if (!limits) {
      const rule = ruleOf(host);
      limits = (rule && limitsOf.get(rule)) ?? general;
      if (known.size >= REMEMBERED_MAX) known.clear();
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
