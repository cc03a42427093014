import type { SourceSpec } from '../../core/job-schema/job.ts';
import { shownName, sourceObjectOf } from '../../core/job-schema/source-name.ts';
import type { Job, Store } from '../../ports/store.ts';

/** What is wrong with whole sources, in sentences; null where nothing is. */
export interface SourcesVerdict {
  /** Every row of a source was refused: a wrong column, format or file. */
  useless: string | null;
  /** There was nothing in them at all. */
  empty: string | null;
}

export async function judgeSources(store: Store, job: Job): Promise<SourcesVerdict> {
  const read = (await store.jobs.sources(job.id)).filter(({ source, done }) => source >= 0 && done);
  const named = (sources: typeof read) =>
    sources.map(({ source }) => nameOf(job.spec.sources[source])).join(', ');
  const useless = read.filter(({ rows, rejected }) => rows > 0 && rejected >= rows);
  const isEmpty = read.length > 0 && read.every(({ rows }) => rows === 0);
  return {
    useless: useless.length === 0 ? null : `no row of ${named(useless)} could be used`,
    empty: isEmpty ? `no rows in ${named(read)}` : null,
  };
}

function nameOf(spec: SourceSpec | undefined): string {
  if (spec === undefined) return 'a source';
  const source = sourceObjectOf(spec);
  if ('url' in source) return source.url;
  if ('query' in source) return 'the query';
  if ('websocket' in source) return 'the WebSocket';
  return 'file' in source ? shownName(source.file) : source.sitemap;
}
