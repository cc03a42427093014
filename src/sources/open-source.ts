import { SeineError } from '../core/errors.ts';
import type { SitemapSourceSpec, SourceSpec } from '../core/job-schema/job.ts';
import { isWebSitemap, sourceObjectOf } from '../core/job-schema/source-name.ts';
import { sitemapTask, sitemapUrl } from '../core/sitemap/task.ts';
import type { AddressCheck } from '../core/url/address-guard.ts';
import type { Source, SourceTask } from '../ports/source.ts';
import { checkFileSource, type FilesOf, type FilesSpec, fileSource } from './formats/file-source.ts';
import { checkQuery, querySource, type RunQuery, type Spool } from './query-source.ts';
import { websocketSource } from './websocket-source.ts';

export interface SourceTools {
  files: FilesOf;
  query: RunQuery;
  spool: Spool;
  /** Which addresses are dialled for WebSockets; none are read where it is absent. */
  sockets?: { isAllowed: AddressCheck };
}

/** What a job says of a source, ready to be read. Nothing is opened before its first row is asked for. */
export function openSource(spec: SourceSpec, tools: SourceTools): Source {
  const source = sourceObjectOf(spec);
  if ('url' in source) return oneRow(source.url, 0, { url: source.url, meta: null });
  if ('query' in source) return querySource(source, tools.query, tools.spool);
  if ('file' in source) return fileSource(source, tools.files);
  if ('websocket' in source) {
    if (!tools.sockets) throw new SeineError('no WebSocket can be read here');
    return websocketSource(source, tools.sockets);
  }
  if (!isWebSitemap(source.sitemap)) return fileSource(sitemapFile(source), tools.files);
  return oneRow(source.sitemap, source.priority, sitemapRow(source));
}

/**
 * Throws a SeineError for what is known to go wrong, after a look at the beginning of the first file. Queries need a
 * store: without one they are taken on trust.
 */
export async function checkSource(
  spec: SourceSpec,
  tools: { files: FilesOf; query: RunQuery | null },
): Promise<void> {
  const source = sourceObjectOf(spec);
  if ('file' in source) await checkFileSource(source, tools.files);
  else if ('sitemap' in source) {
    if (isWebSitemap(source.sitemap)) sitemapRow(source);
    else await checkFileSource(sitemapFile(source), tools.files);
  } else if ('query' in source && tools.query) await checkQuery(source, tools.query);
}

function oneRow(name: string, priority: number, row: SourceTask): Source {
  return {
    name,
    priority,
    async *rows(from) {
      if (from === null) yield { place: 'the URL', position: '1', row };
    },
  };
}

function sitemapRow(source: SitemapSourceSpec): SourceTask {
  const url = sitemapUrl(source.sitemap);
  if (url === null) throw new SeineError(`not an http(s) URL: ${source.sitemap}`);
  const { within, route = null, priority } = source;
  return sitemapTask(url, { within, route, priority });
}

function sitemapFile({ sitemap, within, route, priority }: SitemapSourceSpec): FilesSpec {
  return { file: sitemap, format: 'sitemap', within, route, priority };
}
