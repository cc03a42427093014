import { type JobSpec, MEDIA_ROUTE, MESSAGES_ROUTE, SITEMAP_ROUTE } from '../../core/job-schema/job.ts';
import { LIMITS } from '../../core/limits.ts';
import type { NewTask } from '../../core/model.ts';
import { rowProxyOf, whyNoProxy, withRowProxy } from '../../core/proxies/row-proxy.ts';
import { normalizeUrl, whyUnusable } from '../../core/url/url.ts';
import { isDataDeeper } from '../../core/values/nesting.ts';
import type { SourceTask } from '../../ports/source.ts';

const BUILT_IN: ReadonlySet<string> = new Set([MEDIA_ROUTE, MESSAGES_ROUTE, SITEMAP_ROUTE]);

/** What a row of a source becomes, or why it cannot be used. */
export function toNewTask(row: SourceTask, spec: JobSpec, priority: number): NewTask | string {
  const target = normalizeUrl(row.url, null, spec.url);
  if (!target) return whyUnusable(row.url);
  if (row.route !== undefined && !isRouteOf(spec, row.route))
    return `unknown route '${row.route.slice(0, 100)}'`;
  if (row.meta && isDataDeeper(row.meta, LIMITS.dataNestingMax))
    return `a column is nested deeper than ${LIMITS.dataNestingMax} levels`;
  const meta = withRowProxy(row.meta, row.proxy ?? {});
  const refused = whyNoProxy(rowProxyOf(meta), spec);
  if (refused !== null) return refused;
  return {
    url: target.url,
    host: target.host,
    depth: 0,
    priority: row.priority ?? priority,
    route: row.route ?? null,
    meta,
    hops: 0,
    template: null,
    modifiedAt: row.modifiedAt ?? null,
  };
}

function isRouteOf({ routes }: JobSpec, route: string): boolean {
  return BUILT_IN.has(route) || routes.some(({ name }) => name === route);
}
