import { isOnProbation, scoreOf } from '../../core/proxies/proxy-health.ts';
import type { ProxyRow } from '../../ports/store/proxy-store.ts';

/** A proxy as it stands: by its name, which has nothing secret in it. */
export interface ProxyReportRow {
  proxy: string;
  /** `probation`: it rested, and has not worked since. */
  state: 'usable' | 'resting' | 'probation';
  /** When its rest ends; null when it has none. */
  until: string | null;
  /** The share of requests that will probably succeed, as far as is known. */
  score: number;
  failuresInRow: number;
  /** Hosts that it rests for, as they refuse it or cannot be reached through it. */
  hosts: { host: string; until: string }[];
}

/** One row for each proxy of which something is known, by name. */
export function reportProxies(rows: readonly ProxyRow[], now: number): ProxyReportRow[] {
  const byProxy = Map.groupBy(rows, ({ proxy }) => proxy);
  const report: ProxyReportRow[] = [];
  for (const [proxy, known] of byProxy) {
    const general = known.find(({ host }) => host === null)?.health;
    const isResting = (general?.until ?? 0) > now;
    const hosts = known
      .flatMap(({ host, health }) =>
        host !== null && health.until > now ? [{ host, until: health.until }] : [],
      )
      .sort((a, b) => (a.host < b.host ? -1 : 1))
      .map(({ host, until }) => ({ host, until: new Date(until).toISOString() }));
    report.push({
      proxy,
      state: isResting ? 'resting' : isOnProbation(general) ? 'probation' : 'usable',
      until: isResting ? new Date(general!.until).toISOString() : null,
      score: Math.round(scoreOf(general, now) * 100) / 100,
      failuresInRow: general?.inRow ?? 0,
      hosts,
    });
  }
  return report.sort((a, b) => (a.proxy < b.proxy ? -1 : 1));
}

/** By host: the proxies that rest for it. */
export function restingByHost(
  report: readonly ProxyReportRow[],
): Map<string, { proxy: string; until: string }[]> {
  const resting = new Map<string, { proxy: string; until: string }[]>();
  for (const { proxy, hosts } of report) {
    for (const { host, until } of hosts) {
      const others = resting.get(host);
      if (others) others.push({ proxy, until });
      else resting.set(host, [{ proxy, until }]);
    }
  }
  return resting;
}
