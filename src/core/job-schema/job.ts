import type { ArchiveParts } from './archive.ts';
import type { JobSpec } from './job-schema.ts';

/** What others ask of a job. The schema is apart, so that workers need not load its library: 120 ms a thread. */
export type {
  FieldInput,
  FieldSpec,
  FollowRule,
  HostRule,
  JobInput,
  JobSpec,
  MediaRule,
  Pagination,
  RouteSpec,
  SourceSpec,
} from './job-schema.ts';
export type { FileSourceSpec, QuerySourceSpec, SitemapSourceSpec } from './source.ts';

/** Routes that every job has without naming them. */
export const SITEMAP_ROUTE = '@sitemap';
export const MEDIA_ROUTE = '@media';
export const MESSAGES_ROUTE = '@messages';

const PARALLEL_DEFAULT = 4;
const PARALLEL_DEFAULT_MAX_RATE = 32;

export function parallelOf(spec: JobSpec): number {
  const { parallel, rate } = spec.politeness;
  return parallel ?? (rate === 'max' ? PARALLEL_DEFAULT_MAX_RATE : PARALLEL_DEFAULT);
}

export function gapMsOf(spec: JobSpec): number {
  const { rate } = spec.politeness;
  return rate === 'max' ? 0 : 1_000 / rate;
}

export function followsRedirects(spec: JobSpec): boolean {
  return spec.redirects === 'follow' || (spec.redirects === 'auto' && spec.follow.length === 0);
}

/** A name that the schema accepts, made from a file name or host. */
export function toJobName(text: string): string {
  const name = text
    .replace(/[^\w.-]+/g, '-')
    .replace(/\.{2,}/g, '.')
    .replace(/^[^a-z0-9]+/i, '');
  return name.slice(0, 64) || 'job';
}

export function isMediaRoute(spec: JobSpec, name: string | null): boolean {
  return name === MEDIA_ROUTE || spec.routes.some((route) => route.name === name && route.kind === 'media');
}

/** Whether anything that the job says leads to an object. What its code asks for is not seen here. */
export function storesMedia(spec: JobSpec): boolean {
  const named = [
    ...spec.follow.map(({ route }) => route),
    ...spec.sources.flatMap((source) => {
      if (typeof source === 'string' || 'websocket' in source) return [];
      return [source.route, ...('file' in source ? Object.values(source.columns ?? {}) : [])];
    }),
  ];
  return (
    spec.routes.some(({ kind, media }) => kind === 'media' || media.length > 0) || named.includes(MEDIA_ROUTE)
  );
}

/** What a job archives; null when it keeps no pages. */
export function archivePartsOf({ archive }: Pick<JobSpec, 'archive'>): ArchiveParts | null {
  if (typeof archive !== 'boolean') return archive;
  return archive ? { requests: true, blockDigests: true, errors: false, subresources: false } : null;
}
