import type { JobSpec } from '../job-schema/job.ts';
import { sourceObjectOf } from '../job-schema/source-name.ts';
import type { Meta } from '../model.ts';

/**
 * Columns of a source row travel with its task, to its records, and to the pages that its page leads to. Names that begin
 * with `@` are of our own making: they steer lists and pagination, and are no data.
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
  return (meta) => {
    if (meta === null) return null;
    return hasLists ? filtered(meta, (name) => !isOwn(name) && !LIST_NAMES.has(name)) : publicMeta(meta);
  };
}

function filtered(meta: Meta, keeps: (name: string) => boolean): Meta | null {
  const kept = Object.entries(meta).filter(([name]) => keeps(name));
  return kept.length === 0 ? null : Object.fromEntries(kept);
}
