import type { JobSpec } from '../core/job-schema/job.ts';
import { shownName, sourceObjectOf } from '../core/job-schema/source-name.ts';
import { normalizeUrl } from '../core/url/url.ts';
import type { FilesOf } from '../sources/formats/file-source.ts';
import { openSource } from '../sources/open-source.ts';

/** What a source would bring, as far as a look at its beginning tells. */
export interface SourceSample {
  name: string;
  /** Null where nothing can be said before it is read: queries, sitemaps of sites, standard input. */
  rows: number | null;
  /** All rows were counted. */
  isExact: boolean;
  /** URLs by host, among those that were looked at. */
  hosts: Map<string, number>;
}

/** So many rows are counted; of longer lists the rest is estimated by bytes. */
const ROWS_COUNTED_MAX = 200_000;

/** Looks at the sources of a job. Makes no request but for lists that are named by URL. */
export async function sampleSources(spec: JobSpec, files: FilesOf): Promise<SourceSample[]> {
  const samples: SourceSample[] = [];
  for (const source of spec.sources) samples.push(await sampleSource(source, spec, files));
  return samples;
}

async function sampleSource(
  given: JobSpec['sources'][number],
  spec: JobSpec,
  files: FilesOf,
): Promise<SourceSample> {
  const source = sourceObjectOf(given);
  const hosts = new Map<string, number>();
  if ('query' in source) return { name: 'the query', rows: null, isExact: false, hosts };
  if ('websocket' in source) return { name: 'the WebSocket', rows: source.limit, isExact: false, hosts };
  const isList = 'file' in source && source.file !== '-';
  const name = 'url' in source ? source.url : 'file' in source ? shownName(source.file) : source.sitemap;
  if (!isList && !('url' in source)) return { name, rows: null, isExact: false, hosts };
  const unavailable = { query: neverAsked, spool: { dir: '', jobId: 0, pass: 0, source: 0 } };
  const opened = openSource(given, { files, ...unavailable });
  let rows = 0;
  for await (const { row, position } of opened.rows(null)) {
    rows++;
    const target = 'reason' in row ? null : normalizeUrl(row.url, null, spec.url);
    if (target) hosts.set(target.host, (hosts.get(target.host) ?? 0) + 1);
    if (rows < ROWS_COUNTED_MAX) continue;
    const share = await opened.shareRead?.(position);
    return { name, rows: share ? Math.round(rows / share) : rows, isExact: false, hosts };
  }
  return { name, rows, isExact: true, hosts };
}

function neverAsked(): never {
  throw new Error('a sample makes no queries');
}
