import { inflateSync } from 'node:zlib';

const SIGNATURE_BYTES = 8;
/** Length, name and checksum of a chunk. */
const FRAME_BYTES = 12;

/** The dots of a PNG with eight bits a channel: colours only, row by row. */
export function readDots(png: Buffer): { width: number; height: number; dots: Buffer } {
  const width = png.readUInt32BE(16);
  const height = png.readUInt32BE(20);
  const channels = png[25] === 6 ? 4 : 3;
  const packed: Buffer[] = [];
  for (let at = SIGNATURE_BYTES; at < png.length; at += png.readUInt32BE(at) + FRAME_BYTES)
    if (png.toString('latin1', at + 4, at + 8) === 'IDAT')
      packed.push(png.subarray(at + 8, at + 8 + png.readUInt32BE(at)));
  const rows = inflateSync(Buffer.concat(packed));
  const stride = width * channels;
  const dots = Buffer.alloc(width * height * 3);
  let before = Buffer.alloc(stride);
  for (let y = 0; y < height; y++) {
    const row = Buffer.from(rows.subarray(y * (stride + 1) + 1, (y + 1) * (stride + 1)));
    unfilter(rows[y * (stride + 1)]!, row, before, channels);
    for (let x = 0; x < width; x++)
      for (let channel = 0; channel < 3; channel++)
        dots[(y * width + x) * 3 + channel] = row[x * channels + channel]!;
    before = row;
  }
  return { width, height, dots };
}

/** As PNG's specification has it: each byte is the difference to a guess from its neighbours. */
function unfilter(filter: number, row: Buffer, before: Buffer, channels: number): void {
  for (let at = 0; at < row.length; at++) {
    const left = at < channels ? 0 : row[at - channels]!;
    const corner = at < channels ? 0 : before[at - channels]!;
    row[at] = row[at]! + guessOf(filter, left, before[at]!, corner);
  }
}

function guessOf(filter: number, left: number, up: number, corner: number): number {
  if (filter === 0) return 0;
  if (filter === 1) return left;
  if (filter === 2) return up;
  return filter === 3 ? (left + up) >> 1 : paeth(left, up, corner);
}

function paeth(left: number, up: number, corner: number): number {
  const guess = left + up - corner;
  const byLeft = Math.abs(guess - left);
  const byUp = Math.abs(guess - up);
  const byCorner = Math.abs(guess - corner);
  if (byLeft <= byUp && byLeft <= byCorner) return left;
  return byUp <= byCorner ? up : corner;
}
