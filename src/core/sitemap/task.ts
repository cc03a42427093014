import { SITEMAP_ROUTE } from '../job-schema/job.ts';
import type { Meta } from '../model.ts';

/** What a source wants of a sitemap's URLs. Travels in the meta of sitemap tasks, under keys that pages never get. */
export interface SitemapOptions {
  within: 'host' | 'site' | 'any';
  /** Route of the pages; null lets their URLs decide. */
  route: string | null;
  priority: number;
}

interface SitemapOrder extends SitemapOptions {
  /** Sitemaps between this one and the source. */
  level: number;
  /** Where the source began: its scope is judged from there. Null means that this sitemap is the beginning. */
  host: string | null;
}

/** Lists before pages: what a site has is known before the long work begins. */
export const SITEMAP_PRIORITY = 1_000;

export function sitemapMeta(options: SitemapOptions, level = 0, host: string | null = null): Meta {
  return {
    '@within': options.within,
    '@route': options.route,
    '@priority': options.priority,
    '@level': level,
    ...(host === null ? {} : { '@host': host }),
  };
}

/** Tasks that a route or a handler made into sitemaps have none of this: they get the defaults of a source. */
export function sitemapOrder(meta: Meta | null): SitemapOrder {
  const within = meta?.['@within'];
  const route = meta?.['@route'];
  const priority = meta?.['@priority'];
  const level = meta?.['@level'];
  const host = meta?.['@host'];
  return {
    within: within === 'host' || within === 'any' ? within : 'site',
    route: typeof route === 'string' ? route : null,
    priority: typeof priority === 'number' ? priority : 0,
    level: typeof level === 'number' ? level : 0,
    host: typeof host === 'string' ? host : null,
  };
}

/** Of a site, its robots.txt, which names its sitemaps; of anything with a path, that. Null when it is no http(s) URL. */
export function sitemapUrl(text: string): string | null {
  const parsed = URL.parse(/^https?:\/\//i.test(text) ? text : `https://${text}`);
  if (parsed === null || parsed.hostname === '') return null;
  return parsed.pathname === '/' && parsed.search === '' ? `${parsed.origin}/robots.txt` : parsed.href;
}

export function isRobotsUrl(url: string): boolean {
  return URL.parse(url)?.pathname === '/robots.txt';
}

/** The task that a `sitemap:` source is. */
export function sitemapTask(
  url: string,
  options: SitemapOptions,
): { url: string; meta: Meta; route: string } {
  return { url, meta: sitemapMeta(options), route: SITEMAP_ROUTE };
}
