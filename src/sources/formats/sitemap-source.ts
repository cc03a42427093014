import { messageOf, SeineError } from '../../core/errors.ts';
import { SITEMAP_ROUTE } from '../../core/job-schema/job.ts';
import { LIMITS } from '../../core/limits.ts';
import { modifiedBy } from '../../core/sitemap/dates.ts';
import type { SitemapContent, SitemapEntry } from '../../core/sitemap/entry.ts';
import { type SitemapOptions, sitemapMeta } from '../../core/sitemap/task.ts';
import type { RemoteFiles } from '../../ports/remote-files.ts';
import type { SourceRow, SourceTask } from '../../ports/source.ts';
import { BrokenFileError, type FileReader } from '../rows/raw-row.ts';

/**
 * The entries of a sitemap or feed that lies in a file. Its owner chose it, so its pages may be anywhere; sitemaps
 * that it names become tasks and are held to `within`. The position is the number of entries read.
 */
export async function* sitemapFileRows(
  open: () => Buffer | Promise<Buffer>,
  from: string | null,
  options: SitemapOptions,
): AsyncIterable<SourceRow> {
  const { entries, trouble } = await readFile(open);
  const now = Date.now();
  for (let index = from === null ? 0 : Number(from); index < entries.length; index++) {
    const row = toRow(entries[index]!, options, now);
    yield { place: `entry ${index + 1}`, position: String(index + 1), row };
  }
  const read = entries.length;
  if (trouble !== null && Number(from ?? 0) <= read)
    yield { place: `entry ${read + 1}`, position: String(read + 1), row: { reason: trouble } };
}

/** The parser is loaded when there is something to parse. */
async function readFile(open: () => Buffer | Promise<Buffer>): Promise<SitemapContent> {
  const bytes = await open();
  const { parseSitemap } = await import('../../core/sitemap/sitemap.ts');
  const { sitemapPieces, unpackSitemap } = await import('../../core/sitemap/bytes.ts');
  try {
    return parseSitemap(sitemapPieces(await unpackSitemap(bytes), null), null);
  } catch (error) {
    throw new SeineError(`cannot read the sitemap: ${messageOf(error)}`, { cause: error });
  }
}

function toRow(entry: SitemapEntry, options: SitemapOptions, now: number): SourceTask {
  const modifiedAt = modifiedBy(entry.modified, now);
  const dated = modifiedAt === undefined ? {} : { modifiedAt };
  if (entry.kind === 'sitemap')
    return { url: entry.url, meta: sitemapMeta(options, 1), route: SITEMAP_ROUTE, ...dated };
  return {
    url: entry.url,
    meta: entry.meta,
    ...(options.route === null ? {} : { route: options.route }),
    ...dated,
  };
}

/** Sitemaps and feeds that lie in files. They are small by their own rules, so each is held whole. */
export function openSitemapReader(files: RemoteFiles, options: SitemapOptions): FileReader {
  return {
    async *rows(url, at) {
      const bytes = await readWhole(files, url);
      try {
        for await (const { place, position, row } of sitemapFileRows(
          () => bytes,
          at as string | null,
          options,
        ))
          yield { place, at: position, row };
      } catch (error) {
        if (error instanceof SeineError) throw new BrokenFileError(messageOf(error), { cause: error });
        throw error;
      }
    },
    async check(url) {
      (await files.stream(url)).on('error', () => {}).destroy();
    },
    async close() {},
  };
}

async function readWhole(files: RemoteFiles, url: string): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of (await files.stream(url)) as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > LIMITS.sitemapBytesMax)
      throw new BrokenFileError(`it is larger than ${LIMITS.sitemapBytesMax} bytes`);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
