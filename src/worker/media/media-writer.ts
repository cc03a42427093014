import { mediaKey } from '../../core/media/media-file.ts';
import { TAR_END, tarHeader, tarPadding } from '../../core/media/tar.ts';
import type { MediaRef } from '../../core/model.ts';
import type { Blobs } from '../../ports/blobs.ts';
import { ArchiveOutput } from '../storage/archive.ts';

/** One object, wholly in memory. */
interface MediaItem {
  bytes: Buffer;
  sha256: string;
  md5: string;
  /** By its bytes: `jpg`. */
  extension: string;
  /** When it was fetched, epoch milliseconds. */
  at: number;
  /** What a packed shard says of it in JSON. */
  about: Record<string, unknown>;
  /** Its bytes are stored: their memory may be used again. Not called where storing fails. */
  onStored(): void;
}

/** Where the media of one part of a report go. */
export interface MediaWriter {
  /** At once where `commit` makes it last, so that the outcome lands in the same part; later where it lasts by then. */
  put(item: MediaItem): MediaRef | Promise<MediaRef>;
  /** Null, or what to wait for before more is put: the blob is slower than the network. */
  pressure(): Promise<void> | null;
  /** What was put is stored when this resolves; the shard, if there is one. */
  commit(): Promise<{ key: string; bytes: number } | null>;
}

/** `onFailure` is told as soon as the shard cannot be written, before `commit` says so. */
export function openMediaWriter(
  blobs: Blobs,
  pack: 'none' | 'webdataset',
  packKey: string,
  onFailure?: () => void,
): MediaWriter {
  return pack === 'webdataset' ? new Shard(blobs, packKey, onFailure) : new LooseMedia(blobs);
}

/** One blob for each object, named by its hash: the same bytes are stored once, by whichever worker comes first. */
class LooseMedia implements MediaWriter {
  readonly #blobs: Blobs;
  readonly #stored = new Map<string, Promise<void>>();

  constructor(blobs: Blobs) {
    this.#blobs = blobs;
  }

  async put({ bytes, sha256, md5, extension, onStored }: MediaItem): Promise<MediaRef> {
    const key = mediaKey(sha256, extension);
    let storing = this.#stored.get(key);
    if (!storing) {
      storing = this.#store(key, bytes);
      this.#stored.set(key, storing);
    }
    await storing;
    onStored();
    return { key, md5, member: null };
  }

  pressure(): null {
    return null;
  }

  async commit(): Promise<null> {
    return null;
  }

  async #store(key: string, bytes: Buffer): Promise<void> {
    try {
      if (!(await this.#blobs.has(key))) await this.#blobs.put(key, bytes);
    } catch (error) {
      this.#stored.delete(key);
      throw error;
    }
  }
}

/**
 * A tar in the manner of WebDataset: members of one object have one name and follow each other, `<sha256>.jpg` and
 * `<sha256>.json`. Within a shard the same bytes are there once.
 */
class Shard implements MediaWriter {
  readonly #key: string;
  readonly #output: ArchiveOutput;
  readonly #members = new Map<string, MediaRef>();

  constructor(blobs: Blobs, key: string, onFailure?: () => void) {
    this.#key = key;
    this.#output = new ArchiveOutput(blobs, key, onFailure);
  }

  put({ bytes, sha256, md5, extension, at, about, onStored }: MediaItem): MediaRef {
    const known = this.#members.get(sha256);
    if (known) {
      onStored();
      return known;
    }
    // `.json` is what is said of an object, so that an object of JSON needs another name.
    const member = `${sha256}.${extension === 'json' ? 'data.json' : extension}`;
    this.#add(member, bytes, at, onStored);
    this.#add(`${sha256}.json`, Buffer.from(JSON.stringify({ key: sha256, ...about })), at);
    const ref = { key: this.#key, md5, member };
    this.#members.set(sha256, ref);
    return ref;
  }

  pressure(): Promise<void> | null {
    return this.#output.pressure();
  }

  async commit(): Promise<{ key: string; bytes: number } | null> {
    if (this.#output.size === 0) return null;
    this.#output.add(TAR_END);
    await this.#output.commit();
    return { key: this.#key, bytes: this.#output.size };
  }

  #add(name: string, bytes: Buffer, modifiedAt: number, onWritten?: () => void): void {
    this.#output.add(tarHeader({ name, size: bytes.length, modifiedAt }));
    this.#output.addWhole(bytes, onWritten);
    this.#output.add(tarPadding(bytes.length));
  }
}
