import type { Target } from './target.ts';

/** Each is loaded when it is wanted: some open servers or databases. */
export const TARGETS: Record<string, () => Promise<Target>> = {
  robots: async () => (await import('./targets/robots.ts')).openRobotsTarget(),
  sitemap: async () => (await import('./targets/sitemap.ts')).openSitemapTarget(),
  links: async () => (await import('./targets/links.ts')).openLinksTarget(),
  selectors: async () => (await import('./targets/selectors.ts')).openSelectorsTarget(),
  warc: async () => (await import('./targets/warc.ts')).openWarcTarget(),
  csv: async () => (await import('./targets/csv.ts')).openCsvTarget(),
  parquet: async () => (await import('./targets/parquet.ts')).openParquetTarget(),
  http: async () => (await import('./targets/http.ts')).openHttpTarget(),
  jobs: async () => (await import('./targets/jobs.ts')).openJobsTarget(),
  wire: async () => (await import('./targets/wire.ts')).openWireTarget(),
  names: async () => (await import('./targets/names.ts')).openNamesTarget(),
};
