import { isHtml, sniffMediaType } from './media-type.ts';

/** Names of stored objects: from their bytes alone, so that the same bytes always have the same. */

const EXTENSIONS: Record<string, string> = {
  'image/jpeg': 'jpg',
  'image/png': 'png',
  'image/gif': 'gif',
  'image/webp': 'webp',
  'image/avif': 'avif',
  'image/heic': 'heic',
  'image/heif': 'heif',
  'image/jxl': 'jxl',
  'image/jp2': 'jp2',
  'image/bmp': 'bmp',
  'image/tiff': 'tif',
  'image/x-icon': 'ico',
  'image/svg+xml': 'svg',
  'image/vnd.adobe.photoshop': 'psd',
  'video/mp4': 'mp4',
  'video/3gpp': '3gp',
  'video/webm': 'webm',
  'video/x-matroska': 'mkv',
  'video/quicktime': 'mov',
  'video/x-msvideo': 'avi',
  'video/x-ms-asf': 'asf',
  'video/x-flv': 'flv',
  'video/mpeg': 'mpg',
  'audio/mpeg': 'mp3',
  'audio/wav': 'wav',
  'audio/flac': 'flac',
  'audio/mp4': 'm4a',
  'audio/aac': 'aac',
  'audio/aiff': 'aiff',
  'audio/midi': 'mid',
  'application/ogg': 'ogg',
  'application/pdf': 'pdf',
  'application/zip': 'zip',
  'application/gzip': 'gz',
  'application/zstd': 'zst',
  'application/x-xz': 'xz',
  'application/x-bzip2': 'bz2',
  'application/x-7z-compressed': '7z',
  'application/vnd.rar': 'rar',
  'application/x-tar': 'tar',
  'application/wasm': 'wasm',
  'font/woff': 'woff',
  'font/woff2': 'woff2',
  'font/otf': 'otf',
  'font/ttf': 'ttf',
  'font/collection': 'ttc',
  'text/html': 'html',
  'text/plain': 'txt',
  'application/xhtml+xml': 'xhtml',
  'application/xml': 'xml',
  'application/rss+xml': 'rss',
  'application/atom+xml': 'atom',
  'application/json': 'json',
};

/** By the first bytes of an object, `bin` when they say nothing. Headers differ from place to place, so they have no say. */
export function extensionOf(bytes: Uint8Array): string {
  return EXTENSIONS[sniffMediaType(bytes, null) ?? ''] ?? 'bin';
}

/** The blob that holds these bytes, wherever they came from. */
export function mediaKey(sha256: string, extension: string): string {
  return `media/${sha256.slice(0, 2)}/${sha256}.${extension}`;
}

/**
 * Whether a type is among those a job takes: `image/png`, `image/*`. An empty list takes all but HTML: where a file is
 * expected, that is a page which says that the file is not there.
 */
export function compileTypes(globs: readonly string[]): (type: string) => boolean {
  if (globs.length === 0) return (type) => !isHtml(type);
  const wanted = globs.map((glob) => glob.trim().toLowerCase());
  return (type) =>
    wanted.some(
      (glob) =>
        glob === type ||
        glob === '*' ||
        glob === '*/*' ||
        (glob.endsWith('/*') && type.startsWith(glob.slice(0, -1))),
    );
}
