import { SeineError } from '../../core/errors.ts';
import { LruMap } from '../../core/lru.ts';
import { readTarMembers, type TarPlace } from '../../core/media/tar.ts';
import type { MediaRef } from '../../core/model.ts';
import type { Blobs } from '../../ports/blobs.ts';

/** Samples of neighbouring rows lie in few shards: the places of so many are remembered. */
const SHARDS_KEPT = 32;
const PIECE_BYTES = 4 * 1024 * 1024;

/** Reads stored objects, those inside shards too. */
export class StoredMedia {
  readonly #blobs: Blobs;
  readonly #shards = new LruMap<Promise<Map<string, TarPlace>>>(SHARDS_KEPT);

  constructor(blobs: Blobs) {
    this.#blobs = blobs;
  }

  async read({ key, member }: MediaRef): Promise<Buffer> {
    if (member === null) return this.#whole(key, await this.#blobs.read(key));
    const place = (await this.#places(key)).get(member);
    if (!place) throw new SeineError(`${this.#blobs.locate(key)} has no member ${member}`);
    return this.#whole(key, await this.#blobs.read(key, { offset: place.offset, length: place.size }));
  }

  #whole(key: string, bytes: Buffer | null): Buffer {
    if (bytes) return bytes;
    throw new SeineError(`the stored file ${this.#blobs.locate(key)} is missing`, {
      hint: 'if the files of the job are elsewhere, pass --blobs or set SEINE_BLOBS',
    });
  }

  #places(key: string): Promise<Map<string, TarPlace>> {
    return this.#shards.getOr(key, () => readTarMembers((offset) => this.#piece(key, offset)));
  }

  async #piece(key: string, offset: number): Promise<Buffer> {
    return this.#whole(key, await this.#blobs.read(key, { offset, length: PIECE_BYTES }));
  }
}
