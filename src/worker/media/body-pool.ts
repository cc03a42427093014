import type { BodyMemory } from '../../ports/fetcher.ts';

/** Smaller and larger bodies have blocks of their own, as if there were no pool. */
const BLOCK_BYTES_MIN = 64 * 1024;
const BLOCK_BYTES_MAX = 1024 * 1024;
/** Blocks that wait for a body: about what the requests under way in a thread need. */
const FREE_BYTES_MAX = 8 * 1024 * 1024;

/**
 * Blocks for bodies that are hashed, stored and then of no use, one after the other. Without it each picture left 80 KB to the
 * garbage collector, which was a twentieth of its CPU.
 *
 * A block that is not given back goes to the garbage collector like every other buffer.
 */
export class BodyPool implements BodyMemory {
  readonly #free = new Map<number, Buffer[]>();
  readonly #lent = new WeakSet<ArrayBufferLike>();
  #freeBytes = 0;

  take(bytes: number): Buffer {
    const size = sizeOf(bytes);
    if (size > BLOCK_BYTES_MAX) return Buffer.allocUnsafeSlow(bytes);
    let block = this.#free.get(size)?.pop();
    if (block) this.#freeBytes -= size;
    else block = Buffer.allocUnsafeSlow(size);
    this.#lent.add(block.buffer);
    return block;
  }

  giveBack({ buffer }: Buffer): void {
    if (!this.#lent.delete(buffer)) return;
    const size = buffer.byteLength;
    if (this.#freeBytes + size > FREE_BYTES_MAX) return;
    this.#freeBytes += size;
    const free = this.#free.get(size);
    if (free) free.push(Buffer.from(buffer));
    else this.#free.set(size, [Buffer.from(buffer)]);
  }
}

/** The next power of two. */
function sizeOf(bytes: number): number {
  return Math.max(BLOCK_BYTES_MIN, 2 ** Math.ceil(Math.log2(bytes)));
}
