import type { JobSpec } from '../job-schema/job.ts';
import { sourceObjectOf } from '../job-schema/source-name.ts';
import type { Meta } from '../model.ts';
import { ROW_PROXY_NAMES } from '../proxies/row-proxy.ts';

/**
 * Columns of a source row travel with its task, to its records, and to the pages that its page leads to. Names that begin
 * with `@` are of our own making: they steer lists, pagination and proxies, and are no data.
 */

const isOwn = (name: string) => name.startsWith('@');

/** What an entry of a sitemap or feed says of its own page. Pages that it links to have other dates and titles. */
const LIST_NAMES: ReadonlySet<string> = new Set([
  'lastmod',
  'changefreq',
  'priority',
  'title',
  'published',
  'updated',
  'images',
  'videos',
  'news',
]);

/** Without what is of our own making; null when nothing is left. */
export function publicMeta(meta: Meta): Meta | null {
  return Object.keys(meta).some(isOwn) ? filtered(meta, (name) => !isOwn(name)) : meta;
}

/** What pages get that a task's page leads to. */
export type InheritMeta = (meta: Meta | null) => Meta | null;

/** Only rows of tables and queries have columns; what a list says of a page stays with it. */
export function inheritanceOf({ sources, routes }: Pick<JobSpec, 'sources' | 'routes'>): InheritMeta {
  const named = sources.map(sourceObjectOf);
  if (!named.some((source) => 'query' in source || 'file' in source)) return () => null;
  const hasLists =
    named.some((source) => 'sitemap' in source) || routes.some(({ kind }) => kind === 'sitemap');
  const isInherited = (name: string) =>
    isOwn(name) ? ROW_PROXY_NAMES.has(name) : !hasLists || !LIST_NAMES.has(name);
  return (meta) => {
    if (meta === null) return null;
    return Object.keys(meta).every(isInherited) ? meta : filtered(meta, isInherited);
  };
}

function filtered(meta: Meta, keeps: (name: string) => boolean): Meta | null {
  const kept = Object.entries(meta).filter(([name]) => keeps(name));
  return kept.length === 0 ? null : Object.fromEntries(kept);
}
