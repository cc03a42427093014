import { getDomain } from 'tldts';
import { type JobSpec, parallelOf } from './job.ts';
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
  const named = Object.entries(hosts).map(([pattern, rule]) => ({
    fits: fitter(pattern.toLowerCase()),
    limits: {
      rate: rule.rate === undefined ? general.rate : numeric(rule.rate),
      parallel: rule.parallel ?? general.parallel,
      window: rule.window ? new CompiledWindow(rule.window) : null,
    },
  }));
  if (named.length === 0) return () => general;
  const known = new Map<string, HostLimits>();
  return (host) => {
    let limits = known.get(host);
    if (!limits) {
      limits = named.find(({ fits }) => fits(host))?.limits ?? general;
      if (known.size >= REMEMBERED_MAX) known.clear();
      known.set(host, limits);
    }
    return limits;
  };
}

function numeric(rate: number | 'max'): number {
  return rate === 'max' ? Number.POSITIVE_INFINITY : rate;
}

/** `shop.example` fits all its ports; `*.example` what is below it; a group of hosts fits like its domain. */
function fitter(pattern: string): (host: string) => boolean {
  const below = pattern.startsWith('*.') ? pattern.slice(1) : null;
  return (host) => {
    const plain = host.startsWith(GROUP_MARK) ? host.slice(GROUP_MARK.length) : host;
    const name = plain.replace(/:\d+$/, '');
    return name === pattern || plain === pattern || (below !== null && name.endsWith(below));
  };
}

/** Set before the registrable domain of hosts that share their limits. */
const GROUP_MARK = '*.';

/** What the rate of a URL's host is counted by. */
export function groupOf(host: string, groupBy: JobSpec['politeness']['groupBy']): string {
  if (groupBy === 'host') return host;
  const domain = getDomain(host, { allowPrivateDomains: true });
  return domain === null ? host : GROUP_MARK + domain;
}
