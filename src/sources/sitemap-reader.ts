import { messageOf, SeineError } from '../core/errors.ts';
import { LIMITS } from '../core/limits.ts';
import type { SitemapWish } from '../core/sitemap/task.ts';
import type { RemoteFiles } from '../ports/remote-files.ts';
import { BrokenFileError, type FileReader } from './raw-row.ts';
import { sitemapFileRows } from './sitemap-source.ts';

/** Sitemaps and feeds that lie in files. They are small by their own rules, so each is held whole. */
export function openSitemapReader(files: RemoteFiles, wish: SitemapWish): FileReader {
  return {
    async *rows(url, at) {
      const bytes = await readWhole(files, url);
      try {
        for await (const { place, position, row } of sitemapFileRows(() => bytes, at as string | null, wish))
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
