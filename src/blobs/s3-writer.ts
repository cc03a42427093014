import { putObject, type S3Bucket } from '../aws/s3/s3-bucket.ts';
import { type CopySizes, type MultipartSizes, MultipartUpload, PartBuffer } from '../aws/s3/s3-multipart.ts';
import { contentTypeOf } from '../core/media/content-type.ts';
import type { BlobWriter } from '../ports/blobs.ts';
import { checkKey } from './blob-key.ts';

export type S3Sizes = MultipartSizes & CopySizes;

interface S3WriterPlace {
  bucket: S3Bucket;
  /** The key of the blob, unless `commit` names another. */
  key: string;
  /** Where a large one is gathered: its name may not be known before its last byte, and the old one stays until then. */
  temporaryKey: string;
  /** From the key of a blob to that of its object. */
  objectKeyOf(key: string): string;
  sizes: S3Sizes;
}

/** A small blob is one PUT. A larger one is uploaded in parts to a temporary key and copied there, on the server. */
export class S3Writer implements BlobWriter {
  size = 0;
  readonly #place: S3WriterPlace;
  readonly #buffer: PartBuffer;
  #upload: MultipartUpload | null = null;
  #completed = false;
  #state: 'open' | 'broken' | 'closed' = 'open';

  constructor(place: S3WriterPlace) {
    this.#place = place;
    this.#buffer = new PartBuffer(place.sizes.partBytes);
  }

  async append(bytes: Uint8Array | readonly Uint8Array[]): Promise<void> {
    this.#checkOpen();
    const pieces = bytes instanceof Uint8Array ? [bytes] : bytes;
    for (const { length } of pieces) this.size += length;
    try {
      const parts = pieces.flatMap((piece) => this.#buffer.add(piece));
      await Promise.all(parts.map((part) => this.#push(part)));
    } catch (error) {
      this.#state = 'broken';
      throw error;
    }
  }

  async commit(as?: string): Promise<void> {
    this.#checkOpen();
    if (as !== undefined) checkKey(as);
    // Until all is done: a commit that failed halfway can only be aborted.
    this.#state = 'broken';
    const key = as ?? this.#place.key;
    const target = { key: this.#place.objectKeyOf(key), type: contentTypeOf(key) };
    const rest = this.#buffer.rest();
    if (this.#upload) await this.#finishUpload(this.#upload, rest, target);
    else await putObject(this.#place.bucket, target.key, rest, target.type);
    this.#state = 'closed';
  }

  async abort(): Promise<void> {
    if (this.#state === 'closed') return;
    this.#state = 'closed';
    if (this.#completed) await this.#place.bucket.delete(this.#place.temporaryKey);
    else await this.#upload?.abort();
  }

  #checkOpen(): void {
    if (this.#state !== 'open') throw new Error(`the blob writer is ${this.#state}`);
  }

  #push(part: Uint8Array): Promise<void> {
    const { bucket, temporaryKey, sizes } = this.#place;
    this.#upload ??= new MultipartUpload(bucket, temporaryKey, sizes.partsInFlight);
    return this.#upload.push(part);
  }

  async #finishUpload(
    upload: MultipartUpload,
    rest: Uint8Array,
    target: { key: string; type: string | null },
  ): Promise<void> {
    const { bucket, temporaryKey, sizes } = this.#place;
    if (rest.length > 0) await upload.push(rest);
    await upload.complete();
    this.#completed = true;
    await upload.copyTo(target.key, this.size, sizes, target.type);
    // The blob is there. If this fails, the sweep will do it.
    await bucket.delete(temporaryKey).catch(() => {});
  }
}
