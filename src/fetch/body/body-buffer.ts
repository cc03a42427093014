import type { BodyMemory } from '../../ports/fetcher.ts';

/**
 * Gathers a body. One chunk is kept as it is: undici hands out slices of the buffer that the socket read
 * into, which Node allocates anew for each read. More are copied into one block that grows by doubling, so
 * neither a lying Content-Length nor a million one-byte chunks costs more than twice the bytes received.
 */
const BLOCK_BYTES_MIN = 32 * 1024;
const BLOCK_BYTES_TRUSTED = 256 * 1024;

export class BodyBuffer {
  length = 0;
  #block: Buffer | null = null;
  #expected = -1;
  readonly #memory: BodyMemory | null;

  constructor(memory?: BodyMemory) {
    this.#memory = memory ?? null;
  }

  /** From Content-Length; -1 when unknown. Only a hint. */
  expect(bytes: number): void {
    this.#expected = bytes;
  }

  add(chunk: Buffer): void {
    const start = this.length;
    this.length += chunk.length;
    if (start === 0) {
      this.#block = chunk;
      return;
    }
    let block = this.#block as Buffer;
    // The first chunk is a view as long as itself, so the second always lands here.
    if (this.length > block.length) {
      const size = this.#nextSize();
      const grown = this.#memory?.take(size) ?? Buffer.allocUnsafeSlow(size);
      block.copy(grown, 0, 0, start);
      this.#memory?.giveBack(block);
      block = grown;
      this.#block = grown;
    }
    chunk.copy(block, start);
  }

  take(): Buffer {
    const block = this.#block;
    this.#block = null;
    if (block === null) return Buffer.alloc(0);
    if (block.length === this.length) return block;
    const body = block.subarray(0, this.length);
    // A view would keep the slack alive for as long as the page; a block that is given back has none to keep.
    return this.#memory === null && this.length < block.length / 2 ? Buffer.from(body) : body;
  }

  #nextSize(): number {
    const doubled = Math.max(BLOCK_BYTES_MIN, this.length * 2);
    if (this.#expected < this.length) return doubled;
    return Math.min(this.#expected, Math.max(doubled, BLOCK_BYTES_TRUSTED));
  }
}
