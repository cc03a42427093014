/** Tar archives as POSIX.1-1988 (ustar) has them: what every tar and every reader of data sets understands. */

const BLOCK_BYTES = 512;
const NAME_BYTES_MAX = 100;
/** Eleven octal digits. */
const SIZE_MAX = 8 ** 11 - 1;

/** Ends an archive: two blocks of zeros. */
export const TAR_END: Buffer = Buffer.alloc(2 * BLOCK_BYTES);

const PADDING = Buffer.alloc(BLOCK_BYTES);

interface TarMember {
  /** Plain ASCII, of our own making. */
  name: string;
  size: number;
  /** Epoch milliseconds. */
  modifiedAt: number;
}

/** The block before a member's bytes. */
export function tarHeader({ name, size, modifiedAt }: TarMember): Buffer {
  if (!/^[\w./-]+$/.test(name) || name.length > NAME_BYTES_MAX)
    throw new TypeError(`not a name for a tar member: ${JSON.stringify(name.slice(0, 200))}`);
  if (!(size >= 0 && size <= SIZE_MAX)) throw new RangeError(`not a size for a tar member: ${size}`);
  const block = Buffer.alloc(BLOCK_BYTES);
  block.write(name, 0, 'latin1');
  block.write('0000644\0', 100, 'latin1');
  block.write('0000000\0', 108, 'latin1');
  block.write('0000000\0', 116, 'latin1');
  block.write(octal(size, 11), 124, 'latin1');
  block.write(octal(clampSeconds(modifiedAt), 11), 136, 'latin1');
  // The sum of the block is taken with spaces in its own place.
  block.write('        ', 148, 'latin1');
  block.write('0', 156, 'latin1');
  block.write('ustar\x0000', 257, 'latin1');
  let sum = 0;
  for (let at = 0; at < BLOCK_BYTES; at++) sum += block[at]!;
  block.write(`${octal(sum, 6)}\0 `, 148, 'latin1');
  return block;
}

/** Zeros that fill the last block of a member. */
export function tarPadding(size: number): Buffer {
  return PADDING.subarray(0, (BLOCK_BYTES - (size % BLOCK_BYTES)) % BLOCK_BYTES);
}

function octal(value: number, digits: number): string {
  return value.toString(8).padStart(digits, '0');
}

/** A clock that was never set must not break the header. */
function clampSeconds(ms: number): number {
  return Math.min(Math.max(0, Math.floor(ms / 1_000)), SIZE_MAX);
}

/** Where the bytes of a member are. */
export interface TarPlace {
  offset: number;
  size: number;
}

/** The members of an archive whose pieces `read` gives, from an offset on; an empty piece is its end. */
export async function readTarMembers(
  read: (offset: number) => Promise<Buffer>,
): Promise<Map<string, TarPlace>> {
  const members = new Map<string, TarPlace>();
  let piece: Buffer = Buffer.alloc(0);
  let pieceAt = 0;
  for (let at = 0; ; ) {
    if (at + BLOCK_BYTES > pieceAt + piece.length) {
      pieceAt = at;
      piece = await read(at);
      if (piece.length < BLOCK_BYTES) return members;
    }
    const block = piece.subarray(at - pieceAt, at - pieceAt + BLOCK_BYTES);
    if (block[0] === 0) return members;
    const text = (from: number, length: number) =>
      block.toString('latin1', from, from + length).replace(/\0.*$/s, '');
    const size = Number.parseInt(text(124, 12), 8);
    if (!(size >= 0)) throw new Error('it is not a tar archive');
    members.set(text(0, NAME_BYTES_MAX), { offset: at + BLOCK_BYTES, size });
    at += BLOCK_BYTES + Math.ceil(size / BLOCK_BYTES) * BLOCK_BYTES;
  }
}
