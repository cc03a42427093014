import { setImmediate as nextTurn } from 'node:timers/promises';
import { promisify } from 'node:util';
import zlib from 'node:zlib';

/** As Chromium's own small PNGs. Level 5 takes a sixth less time and 1 % more bytes. */
const LEVEL = 6;
/** Rows that are worked on before others have their turn: 2 ms for a page of usual width. */
const ROWS_AT_ONCE = 1_000;
/** Small pictures of a long page have one to two MB. */
const PACKED_PIECE_BYTES = 2 * 1024 ** 2;
/** Of a picture of 16,000 by 16,000 dots, which is the largest that is taken. */
const BYTES_MAX = 16_001 * 16_001 * 4;
const SIGNATURE = Buffer.from('\x89PNG\r\n\x1a\n', 'latin1');
/** Lines of text and of surfaces have runs of one colour, photographs have hardly any. */
const RUNS_SHARE = 0.1;
/** Pixels that are looked at, of so many. */
const LOOK_EVERY = 8;

const FILTER = { none: 0, sub: 1, up: 2, average: 3, paeth: 4 } as const;

const inflate = promisify<Buffer, zlib.ZlibOptions, Buffer>(zlib.inflate);
const deflate = promisify<Buffer, zlib.ZlibOptions, Buffer>(zlib.deflate);

/**
 * The same picture in fewer bytes. Chromium makes small PNGs in the main thread of the browser, where all tabs wait for
 * it; here it is done by threads that are free, with what it has made fast. A picture of another kind than Chromium makes
 * comes back as it is.
 */
export async function repackPng(png: Buffer): Promise<Buffer> {
  const image = parsePng(png);
  if (image === null) return png;
  try {
    const bytes = image.rows * (image.rowBytes + 1);
    // In one piece each: with the small pieces of a stream, collecting garbage takes longer than packing. The byte to spare
    // tells that there is no second piece.
    const lines = await inflate(Buffer.concat(image.data), { chunkSize: bytes + 1, maxOutputLength: bytes });
    if (lines.length !== bytes) return png;
    await refilter(lines, image);
    const packed = await deflate(lines, {
      level: LEVEL,
      memLevel: zlib.constants.Z_MAX_MEMLEVEL,
      chunkSize: PACKED_PIECE_BYTES,
    });
    free(lines);
    const small = Buffer.concat([SIGNATURE, ...image.before, chunkOf('IDAT', packed), ...image.after]);
    return small.length < png.length ? small : png;
  } catch {
    return png;
  }
}

/**
 * At once: 40 MB of a long page would wait for the garbage collector, and those of the next pages with them. Small
 * buffers are pieces of one that they share with others, and stay.
 */
function free({ buffer, byteLength }: Buffer): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength === byteLength + 1) buffer.transfer(0);
}

interface Image {
  rows: number;
  /** Of one row, without the byte that names its filter. */
  rowBytes: number;
  pixelBytes: number;
  data: Buffer[];
  /** Whole chunks before and after the data. */
  before: Buffer[];
  after: Buffer[];
}

/** Null for what is no picture of 8 bits for each colour, row by row, or too large. */
function parsePng(png: Buffer): Image | null {
  if (!png.subarray(0, SIGNATURE.length).equals(SIGNATURE)) return null;
  const image: Image = { rows: 0, rowBytes: 0, pixelBytes: 0, data: [], before: [], after: [] };
  for (let at = SIGNATURE.length; at + 12 <= png.length; ) {
    const bytes = png.readUInt32BE(at);
    const name = png.toString('latin1', at + 4, at + 8);
    const end = at + 12 + bytes;
    if (end > png.length) return null;
    if (name === 'IDAT') image.data.push(png.subarray(at + 8, end - 4));
    else (image.data.length === 0 ? image.before : image.after).push(png.subarray(at, end));
    if (name === 'IHDR' && !readHeader(png.subarray(at + 8, end - 4), image)) return null;
    if (name === 'IEND') return image.rowBytes > 0 && image.data.length > 0 ? image : null;
    at = end;
  }
  return null;
}

/** Width, height, bits, kind of colours, compression, filters, interlacing. */
function readHeader(header: Buffer, image: Image): boolean {
  const [bits, colours, , , interlaced] = header.subarray(8);
  if (header.length !== 13 || bits !== 8 || interlaced !== 0) return false;
  if (colours !== 2 && colours !== 6) return false;
  image.rows = header.readUInt32BE(4);
  image.pixelBytes = colours === 2 ? 3 : 4;
  image.rowBytes = header.readUInt32BE(0) * image.pixelBytes;
  return image.rows * (image.rowBytes + 1) <= BYTES_MAX;
}

function chunkOf(name: string, data: Buffer): Buffer {
  const chunk = Buffer.allocUnsafe(data.length + 12);
  chunk.writeUInt32BE(data.length, 0);
  chunk.write(name, 4, 'latin1');
  data.copy(chunk, 8);
  chunk.writeUInt32BE(zlib.crc32(chunk.subarray(4, -4)), chunk.length - 4);
  return chunk;
}

/** Gives rows the filters that make them smallest, in their place. */
async function refilter(lines: Buffer, image: Image): Promise<void> {
  const rows = new Rows(image);
  for (let row = 0; row < image.rows; row++) {
    if (row > 0 && row % ROWS_AT_ONCE === 0) await nextTurn();
    rows.next(lines, row * (image.rowBytes + 1));
  }
}

/** Takes rows one after the other: each may say only how it differs from the one above. */
class Rows {
  readonly #pixelBytes: number;
  readonly #zeros: Buffer;
  /** Of the row that was undone last. */
  #hasRuns = true;
  #row: Row;
  #above: Row;

  constructor({ rowBytes, pixelBytes }: Image) {
    this.#pixelBytes = pixelBytes;
    this.#zeros = Buffer.alloc(rowBytes);
    this.#row = new Row(rowBytes);
    this.#above = new Row(rowBytes);
  }

  /** The first byte names the filter. */
  next(lines: Buffer, at: number): void {
    const start = at + 1;
    const end = start + this.#zeros.length;
    const filter = lines[at];
    const isSame = filter === FILTER.up && lines.compare(this.#zeros, 0, end - start, start, end) === 0;
    if (!isSame) {
      this.#row.bytes.set(lines.subarray(start, end));
      this.#undo(filter);
      this.#hasRuns = hasRuns(this.#row.bytes, this.#pixelBytes);
    }
    const { bytes } = isSame ? this.#above : this.#row;
    if (this.#hasRuns) {
      lines[at] = FILTER.none;
      lines.set(bytes, start);
    } else {
      lines[at] = FILTER.paeth;
      this.#predict(bytes, isSame ? bytes : this.#above.bytes, lines, start);
    }
    if (!isSame) [this.#row, this.#above] = [this.#above, this.#row];
  }

  #undo(filter: number | undefined): void {
    const { bytes } = this.#row;
    const above = this.#above.bytes;
    const step = this.#pixelBytes;
    if (filter === FILTER.none) return;
    if (filter === FILTER.up) addWords(this.#row.words, this.#above.words);
    else if (filter === FILTER.sub)
      for (let at = step; at < bytes.length; at++) bytes[at] = bytes[at]! + bytes[at - step]!;
    else if (filter === FILTER.average)
      for (let at = 0; at < bytes.length; at++)
        bytes[at] = bytes[at]! + (((at < step ? 0 : bytes[at - step]!) + above[at]!) >> 1);
    else if (filter === FILTER.paeth)
      for (let at = 0; at < bytes.length; at++) bytes[at] = bytes[at]! + nearest(bytes, above, at, step);
    else throw new Error('there is no such filter');
  }

  #predict(bytes: Uint8Array, above: Uint8Array, lines: Buffer, start: number): void {
    const step = this.#pixelBytes;
    for (let at = 0; at < bytes.length; at++)
      lines[start + at] = bytes[at]! - nearest(bytes, above, at, step);
  }
}

function hasRuns(bytes: Uint8Array, step: number): boolean {
  let looks = 0;
  let same = 0;
  for (let at = step; at + 2 < bytes.length; at += step * LOOK_EVERY) {
    looks++;
    const left = at - step;
    if (bytes[at] === bytes[left] && bytes[at + 1] === bytes[left + 1] && bytes[at + 2] === bytes[left + 2])
      same++;
  }
  return same >= looks * RUNS_SHARE;
}

/** The bytes of a row, and the same memory as words: four bytes are added at once. */
class Row {
  readonly bytes: Uint8Array;
  readonly words: Uint32Array;

  constructor(rowBytes: number) {
    this.words = new Uint32Array(Math.ceil(rowBytes / 4));
    this.bytes = new Uint8Array(this.words.buffer, 0, rowBytes);
  }
}

/** Each byte for itself: the carry of the highest bit is lost. */
function addWords(words: Uint32Array, others: Uint32Array): void {
  for (let at = 0; at < words.length; at++) {
    const one = words[at]!;
    const other = others[at]!;
    words[at] = ((one & 0x7f7f7f7f) + (other & 0x7f7f7f7f)) ^ ((one ^ other) & 0x80808080);
  }
}

/** Of left, above and the one between: that which is nearest to left + above − between. */
function nearest(bytes: Uint8Array, above: Uint8Array, at: number, step: number): number {
  const up = above[at]!;
  if (at < step) return up;
  const left = bytes[at - step]!;
  const between = above[at - step]!;
  const toLeft = Math.abs(up - between);
  const toUp = Math.abs(left - between);
  const toBetween = Math.abs(left + up - 2 * between);
  if (toLeft <= toUp && toLeft <= toBetween) return left;
  return toUp <= toBetween ? up : between;
}
