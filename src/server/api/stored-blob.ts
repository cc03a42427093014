import { createHash, hash } from 'node:crypto';
import { Readable } from 'node:stream';
import type { Blobs } from '../../ports/blobs.ts';

/**
 * Media and pictures are stored under their SHA-256. What is read back is compared with it: whoever can write to the bucket
 * must not decide what is handed out here.
 */

const PIECE_BYTES = 1024 * 1024;

/** Null when it is missing or not what was stored. Of what is longer than one piece, the end fails instead. */
export async function openStoredBlob(blobs: Blobs, key: string): Promise<Readable | null> {
  const first = await blobs.read(key, { offset: 0, length: PIECE_BYTES });
  if (!first || (first.length < PIECE_BYTES && hash('sha256', first, 'hex') !== hashIn(key))) return null;
  return Readable.from(piecesOf(blobs, key, first), { objectMode: false });
}

/** The same for what is small enough to be kept in memory. */
export async function readStoredBlob(blobs: Blobs, key: string): Promise<Buffer | null> {
  const bytes = await blobs.read(key);
  return bytes && hash('sha256', bytes, 'hex') === hashIn(key) ? bytes : null;
}

/** In pieces: a film is larger than the memory. */
async function* piecesOf(blobs: Blobs, key: string, first: Buffer): AsyncGenerator<Buffer, void, void> {
  const sum = createHash('sha256');
  let piece: Buffer | null = first;
  for (let offset = 0; piece !== null && piece.length > 0; ) {
    sum.update(piece);
    offset += piece.length;
    const next: Buffer | null =
      piece.length < PIECE_BYTES ? null : await blobs.read(key, { offset, length: PIECE_BYTES });
    // The last piece is held back until all are known to be right.
    if ((next === null || next.length === 0) && sum.digest('hex') !== hashIn(key))
      throw new Error('the stored bytes were changed');
    yield piece;
    piece = next;
  }
}

function hashIn(key: string): string | null {
  return /(?:^|\/)([0-9a-f]{64})(?:\.\w+)?$/.exec(key)?.[1] ?? null;
}
