import type { Discovered, QualityDelta, RecordDraft } from '../../core/batch/outcome.ts';
import type { BrowserSpec } from '../../core/job-schema/browser.ts';
import type { JobSpec } from '../../core/job-schema/job.ts';
import type { CompiledFollow } from '../../core/url/scope.ts';
import type { LinkSelectors } from '../links/discover-links.ts';
import type { Page } from '../page/page.ts';
import type { LinkMemory } from './link-memory.ts';
import type { RecordData } from './route-code.ts';

/** A job as a worker uses it; made once for each spec. */
export interface CompiledJob {
  spec: JobSpec;
  routes: CompiledRoute[];
  follow: CompiledFollow[];
  linkSelectors: LinkSelectors;
  headers: Record<string, string>;
  /** Whether objects of a type are stored. */
  takesMedia: (type: string) => boolean;
  links: LinkMemory;
}

export interface CompiledRoute {
  name: string;
  kind: 'page' | 'media' | 'sitemap' | 'messages';
  matches: (url: string) => boolean;
  read: RecordReader | null;
  /** What messages call the code of the job that takes part in reading: `the handler of route 'product'`. */
  code: string | null;
  findMedia: MediaFinder | null;
  paginate: Paginator | null;
  follow: boolean;
  /** What a browser does with its pages, where one may be asked for them. */
  render: BrowserSpec | null;
  /** Takes a browser where a page needs its scripts. */
  isAuto: boolean;
  /** Demands something of its pages: one that passes is whole. */
  proves: boolean;
}

/**
 * Takes the records of a page. A promise only when code of the job gave one: pages with plain selectors are read at once.
 * Throws a ValidationError when the page is not what the route expects.
 */
export type RecordReader = (page: Page) => ReadResult | Promise<ReadResult>;

/** What a route took from a page. `values` are the records as objects, for media found in their fields. */
export interface ReadResult {
  drafts: RecordDraft[];
  values: RecordData[];
  quality: Omit<QualityDelta, 'route'> | null;
}

/** An element or field is missing, or a record does not fit its schema. */
export class ValidationError extends Error {}

/** Media that a page shows, each once, as tasks of a media route. */
export type MediaFinder = (page: Page, values: readonly RecordData[]) => Discovered[];

/** The further pages of a list, from what one of its pages says. */
export type Paginator = (page: Page, spec: JobSpec) => Discovered[];

export function routeOf(job: CompiledJob, url: string, named: string | null): CompiledRoute | null {
  if (named !== null) return job.routes.find((route) => route.name === named) ?? null;
  return job.routes.find((route) => route.matches(url)) ?? null;
}
