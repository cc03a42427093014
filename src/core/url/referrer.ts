import { type EscalationJob, type EscalationRoute, escalationLevels } from '../escalation/escalation.ts';
import { siteOf } from './url-shape.ts';

/** Whether requests of a job may look like a browser's: those tell where they come from. */
export function tellsReferrers(spec: EscalationJob & { routes: readonly EscalationRoute[] }): boolean {
  return [null, ...spec.routes].some((route) =>
    escalationLevels(route, spec).some(({ browserLike }) => browserLike),
  );
}

/**
 * What a browser tells a URL of the page that it comes from, where the page wants nothing else
 * (`strict-origin-when-cross-origin`): all of it within an origin, the origin elsewhere, and nothing from https to http.
 */
export function refererFor(from: string, to: string): string | null {
  const page = URL.parse(from);
  const target = URL.parse(to);
  if (page === null || target === null) return null;
  if (page.origin === target.origin) return from;
  return page.protocol === 'https:' && target.protocol === 'http:' ? null : `${page.origin}/`;
}

/** How far a request comes from, as browsers say it. */
export function fetchSite(
  referer: string | null,
  to: string,
): 'none' | 'same-origin' | 'same-site' | 'cross-site' {
  const page = referer === null ? null : URL.parse(referer);
  const target = URL.parse(to);
  if (page === null || target === null) return 'none';
  if (page.origin === target.origin) return 'same-origin';
  const isNear = page.protocol === target.protocol && siteOf(page.host) === siteOf(target.host);
  return isNear ? 'same-site' : 'cross-site';
}
