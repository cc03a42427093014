import { imageSize } from 'image-size';
import { messageOf, SeineError } from '../../core/errors.ts';

/** An image of a data set, after it was made smaller or encoded anew if that was asked for. */
export interface DatasetImage {
  bytes: Buffer;
  extension: string;
  width: number | null;
  height: number | null;
  originalWidth: number | null;
  originalHeight: number | null;
}

export const RESIZE_MODES = ['keep-ratio', 'crop', 'border', 'stretch'] as const;
type ResizeMode = (typeof RESIZE_MODES)[number];
export const ENCODINGS = ['jpg', 'png', 'webp'] as const;
type Encoding = (typeof ENCODINGS)[number];

export interface ImageChange {
  /** Length of a side; null keeps the size. */
  size: number | null;
  mode: ResizeMode;
  encoding: Encoding | null;
  quality: number;
}

/** The bytes are no whole picture. */
export class CorruptMediaError extends Error {}

/** Those whose size can be read; others are kept as they are. */
const IMAGES = new Set([
  'jpg',
  'png',
  'gif',
  'webp',
  'avif',
  'heic',
  'heif',
  'bmp',
  'tif',
  'ico',
  'svg',
  'jxl',
  'jp2',
  'psd',
]);

/** Changes pictures as one run of an export asks for. */
export type ImageReader = (bytes: Buffer, extension: string) => Promise<DatasetImage>;

/** Without a change the bytes stay as they are, and only their head and end are looked at. */
export async function openImageReader(change: ImageChange | null): Promise<ImageReader> {
  if (change === null) return async (bytes, extension) => measured(bytes, extension);
  const sharp = await loadSharp();
  return async (bytes, extension) => {
    const before = measured(bytes, extension);
    // Files of other kinds, and drawings, have no size in pixels to change.
    if (before.width === null || extension === 'svg') return before;
    try {
      let image = sharp(bytes, { failOn: 'truncated', animated: false }).rotate();
      if (change.size !== null) image = image.resize(resizeOf(change.size, change.mode));
      const format = change.encoding ?? (extension as Encoding);
      const known = ENCODINGS.includes(format) ? format : 'jpg';
      const encoded = image.toFormat(known === 'jpg' ? 'jpeg' : known, { quality: change.quality });
      const { data, info } = await encoded.toBuffer({ resolveWithObject: true });
      return { ...before, bytes: data, extension: known, width: info.width, height: info.height };
    } catch (error) {
      throw new CorruptMediaError(messageOf(error));
    }
  };
}

function resizeOf(size: number, mode: ResizeMode) {
  const fit = { 'keep-ratio': 'outside', crop: 'cover', border: 'contain', stretch: 'fill' } as const;
  return {
    width: size,
    height: size,
    fit: fit[mode],
    background: '#ffffff',
    withoutEnlargement: mode === 'keep-ratio',
  };
}

function measured(bytes: Buffer, extension: string): DatasetImage {
  const unknown = { bytes, extension, width: null, height: null, originalWidth: null, originalHeight: null };
  if (!IMAGES.has(extension)) return unknown;
  let size: { width?: number; height?: number };
  try {
    size = imageSize(bytes);
  } catch (error) {
    throw new CorruptMediaError(messageOf(error));
  }
  if (!isComplete(bytes, extension)) throw new CorruptMediaError('the picture ends too early');
  const { width = null, height = null } = size;
  return { bytes, extension, width, height, originalWidth: width, originalHeight: height };
}

/** Formats that have an end: a picture without it was cut off. What some programs write behind it does no harm. */
function isComplete(bytes: Buffer, extension: string): boolean {
  if (extension === 'jpg') return bytes.lastIndexOf(Buffer.of(0xff, 0xd9)) > 0;
  if (extension === 'png') return bytes.lastIndexOf('IEND') > 0;
  if (extension === 'webp') return bytes.length >= bytes.readUInt32LE(4) + 8;
  return true;
}

async function loadSharp() {
  try {
    const { default: sharp } = await import('sharp');
    // Pictures are worked on side by side, each by one thread.
    sharp.concurrency(1);
    return sharp;
  } catch (error) {
    throw new SeineError('resizing and encoding images needs the package sharp', {
      hint: 'run `npm install sharp`, or leave out --resize and --encode',
      cause: error,
    });
  }
}
