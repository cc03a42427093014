import { type FileHandle, unlink } from 'node:fs/promises';
import type { BlobWriter } from '../ports/blobs.ts';
import { checkKey } from './blob-key.ts';
import { explained, ignoreAbsent, orExplain } from './file-errors.ts';

interface TemporaryFile {
  handle: FileHandle;
  path: string;
  /** Named in messages. */
  dir: string;
  sync: boolean;
  /** Moves the closed file to its place: the key it was opened for, or this one. */
  publish(as?: string): Promise<void>;
}

/** Writes a temporary file that becomes a blob, whole, at `commit`. */
export class FileWriter implements BlobWriter {
  size = 0;
  #state: 'open' | 'broken' | 'closed' = 'open';
  readonly #file: TemporaryFile;

  constructor(file: TemporaryFile) {
    this.#file = file;
  }

  async append(bytes: Uint8Array | readonly Uint8Array[]): Promise<void> {
    if (this.#state !== 'open') throw new Error(`the blob writer is ${this.#state}`);
    const pieces = bytes instanceof Uint8Array ? [bytes] : bytes;
    // Taken at once, so that an append that was not awaited is not overwritten by the next.
    let position = this.size;
    this.size += bytesIn(pieces);
    try {
      for (let left = pieces; bytesIn(left) > 0; ) {
        const { bytesWritten } = await this.#file.handle.writev(left, position);
        position += bytesWritten;
        left = after(left, bytesWritten);
      }
    } catch (error) {
      this.#state = 'broken';
      throw explained(error, this.#file.dir);
    }
  }

  async commit(as?: string): Promise<void> {
    if (this.#state !== 'open') throw new Error(`the blob writer is ${this.#state}`);
    if (as !== undefined) checkKey(as);
    // Until all is done: a commit that failed halfway can only be aborted.
    this.#state = 'broken';
    await orExplain(this.#finish(as), this.#file.dir);
    this.#state = 'closed';
  }

  async #finish(as?: string): Promise<void> {
    if (this.#file.sync) await this.#file.handle.datasync();
    await this.#file.handle.close();
    await this.#file.publish(as);
  }

  async abort(): Promise<void> {
    if (this.#state === 'closed') return;
    this.#state = 'closed';
    // Already closed when a commit failed at its last step.
    await this.#file.handle.close().catch(() => {});
    await unlink(this.#file.path).catch(ignoreAbsent);
  }
}

function bytesIn(pieces: readonly Uint8Array[]): number {
  return pieces.reduce((bytes, piece) => bytes + piece.length, 0);
}

/** What is left of them when so many bytes are written. */
function after(pieces: readonly Uint8Array[], bytes: number): Uint8Array[] {
  let written = bytes;
  const left: Uint8Array[] = [];
  for (const piece of pieces) {
    if (written < piece.length) left.push(piece.subarray(written));
    written = Math.max(0, written - piece.length);
  }
  return left;
}
