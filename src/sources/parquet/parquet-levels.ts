/**
 * Levels and places in a dictionary: runs of one number, and numbers of a few bits packed together. Counts are taken
 * from the page and never from the runs, which in a damaged file may claim billions.
 */
export function readHybrid(
  view: DataView,
  range: { start: number; end: number },
  width: number,
  count: number,
): Int32Array {
  if (width < 0 || width > 32) throw new Error(`numbers of ${width} bits`);
  const output = new Int32Array(count);
  const reader = { view, offset: range.start, end: Math.min(range.end, view.byteLength) };
  let seen = 0;
  while (seen < count) {
    const header = readCount(reader);
    const wanted = count - seen;
    if (header & 1) {
      const packed = (header >>> 1) * 8;
      unpack(reader, width, output, seen, Math.min(packed, wanted));
      reader.offset += (header >>> 1) * width;
      seen += packed;
    } else {
      const run = header >>> 1;
      output.fill(readNumber(reader, (width + 7) >> 3), seen, seen + Math.min(run, wanted));
      seen += run;
    }
  }
  return output;
}

interface Reader {
  view: DataView;
  offset: number;
  end: number;
}

function readByte(reader: Reader): number {
  if (reader.offset >= reader.end) throw new Error('numbers end early');
  return reader.view.getUint8(reader.offset++);
}

/** At most 32 bits, seven to a byte. */
function readCount(reader: Reader): number {
  let value = 0;
  for (let shift = 0; shift < 35; shift += 7) {
    const byte = readByte(reader);
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) return value >>> 0;
  }
  throw new Error('a count is too long');
}

function readNumber(reader: Reader, bytes: number): number {
  let value = 0;
  for (let index = 0; index < bytes; index++) value |= readByte(reader) << (8 * index);
  return value;
}

/** Lowest bits first. The padding after the last number may be missing. */
function unpack(
  { view, offset, end }: Reader,
  width: number,
  output: Int32Array,
  start: number,
  count: number,
): void {
  if (width === 0) return;
  if (offset + Math.ceil((count * width) / 8) > end) throw new Error('numbers end early');
  const mask = width === 32 ? -1 : (1 << width) - 1;
  for (let index = 0; index < count; index++) {
    const bit = index * width;
    const at = offset + Math.floor(bit / 8);
    const shift = bit % 8;
    if (width <= 24 && at + 4 <= view.byteLength) {
      output[start + index] = (view.getUint32(at, true) >>> shift) & mask;
      continue;
    }
    let value = 0;
    for (let got = -shift, from = at; got < width && from < end; got += 8, from++) {
      const byte = view.getUint8(from);
      value |= got < 0 ? byte >>> -got : byte << got;
    }
    output[start + index] = value & mask;
  }
}
