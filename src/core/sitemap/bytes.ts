import { promisify } from 'node:util';
import { constants, gunzip } from 'node:zlib';
import { LIMITS } from '../limits.ts';
import { sniffCharset } from '../text/charset.ts';

/** From the bytes of a sitemap to its text: compressed or not, in any encoding, and piece by piece. */

const inflate = promisify(gunzip);

/** Compressed once for the file and once more by a careless server. */
const LAYERS_MAX = 2;
/** Parsing a piece takes about 8 ms. */
const PIECE_BYTES = 256 * 1024;

function isGzip(bytes: Uint8Array): boolean {
  return bytes[0] === 0x1f && bytes[1] === 0x8b && bytes[2] === 8;
}

/**
 * What is inside a gzip file, whatever its name; other bytes are returned as they are. A file that was cut off gives
 * what came before. Runs on the thread pool: 50 MB take 0.2 s.
 */
export async function unpackSitemap(bytes: Buffer): Promise<Buffer> {
  let unpacked = bytes;
  for (let layer = 0; layer < LAYERS_MAX && isGzip(unpacked); layer++) unpacked = await unpack(unpacked);
  if (unpacked.length > LIMITS.sitemapBytesMax)
    throw new Error(`it is larger than ${LIMITS.sitemapBytesMax} bytes`);
  return unpacked;
}

async function unpack(bytes: Buffer): Promise<Buffer> {
  const byRatio = Math.max(LIMITS.decodedRatioFloorBytes, bytes.length * LIMITS.decodedRatioMax);
  const maxOutputLength = Math.min(LIMITS.sitemapBytesMax, byRatio);
  try {
    return await inflate(bytes, { maxOutputLength, finishFlush: constants.Z_SYNC_FLUSH });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE')
      throw new Error(`it decompresses to more than ${maxOutputLength} bytes, from ${bytes.length}`);
    throw new Error('its gzip data is damaged');
  }
}

/** `contentType` counts for its charset only: sitemaps come as text/plain, octet-stream and worse. */
export function* sitemapPieces(bytes: Buffer, contentType: string | null): Generator<string> {
  const charset = sniffCharset(
    bytes,
    contentType !== null && /charset/i.test(contentType) ? contentType : null,
  );
  const decoder = new TextDecoder(charset);
  for (let at = 0; at < bytes.length; at += PIECE_BYTES)
    yield decoder.decode(bytes.subarray(at, at + PIECE_BYTES), { stream: true });
  yield decoder.decode();
}

const LIST_START =
  /^[\s\ufeff]*(?:<\?xml[^>]*>\s*)?(?:<(?:!--[\s\S]*?--|\?[^>]*)>\s*)*<(?:\w+:)?(?:urlset|sitemapindex|rss|rdf|feed)[\s>]/i;
const URL_START = /^[\s\ufeff]*(?:#[^\n]*\n\s*)*https?:\/\//i;
const HEAD_BYTES = 4_096;

/** Whether a page looks like a list of URLs, by its first bytes: worth being read as one. */
export function mayBeSitemap(bytes: Buffer, contentType: string | null): boolean {
  if (isGzip(bytes)) return true;
  const head = bytes
    .toString('latin1', 0, HEAD_BYTES)
    .replace(/^\xef\xbb\xbf/, '')
    .replaceAll('\0', '');
  return contentType === 'text/plain' ? URL_START.test(head) : LIST_START.test(head);
}
