import { randomUUID } from 'node:crypto';
import { type S3Bucket, type S3Part, settled } from './s3-bucket.ts';

/** S3's own limit. */
const S3_PARTS_MAX = 10_000;

export interface MultipartSizes {
  /** Of every part but the last: some stores want them equal, S3 wants 5 MiB at least. */
  partBytes: number;
  partsInFlight: number;
}

export interface CopySizes {
  /** Larger objects are copied in parts. */
  copyBytesMax: number;
  copyPartBytes: number;
}

/** Gathers bytes and hands them out in parts of equal size. */
export class PartBuffer {
  readonly #partBytes: number;
  #pieces: Uint8Array[] = [];
  #bytes = 0;

  constructor(partBytes: number) {
    this.#partBytes = partBytes;
  }

  /** The bytes are copied: the caller may use its memory again. */
  add(bytes: Uint8Array): Uint8Array[] {
    const full: Uint8Array[] = [];
    for (let at = 0; at < bytes.length; ) {
      const piece = Buffer.from(bytes.subarray(at, at + this.#partBytes - this.#bytes));
      this.#pieces.push(piece);
      this.#bytes += piece.length;
      at += piece.length;
      if (this.#bytes === this.#partBytes) full.push(this.rest());
    }
    return full;
  }

  /** What is not a whole part yet. */
  rest(): Uint8Array {
    const bytes = this.#pieces.length === 1 ? this.#pieces[0]! : Buffer.concat(this.#pieces);
    this.#pieces = [];
    this.#bytes = 0;
    return bytes;
  }
}

/** One multipart upload: nothing is seen under its key before `complete`. */
export class MultipartUpload {
  readonly #bucket: S3Bucket;
  readonly #key: string;
  readonly #inFlightMax: number;
  readonly #type: string | null;
  readonly #mark = randomUUID();
  readonly #inFlight = new Set<Promise<void>>();
  readonly #parts: S3Part[] = [];
  readonly #abort = new AbortController();
  #id: Promise<string> | null = null;
  #count = 0;
  #failure: { cause: unknown } | null = null;

  constructor(bucket: S3Bucket, key: string, inFlightMax: number, type: string | null = null) {
    this.#bucket = bucket;
    this.#key = key;
    this.#inFlightMax = inFlightMax;
    this.#type = type;
  }

  /** Takes the next part at once, in the order of calls; resolves when one more may be given. */
  async push(body: Uint8Array): Promise<void> {
    const number = ++this.#count;
    const sending = this.#send(number, body).catch((cause) => {
      this.#failure ??= { cause };
    });
    this.#inFlight.add(sending);
    void sending.then(() => this.#inFlight.delete(sending));
    while (this.#inFlight.size >= this.#inFlightMax) await Promise.race(this.#inFlight);
    if (this.#failure) throw this.#failure.cause;
  }

  async #send(number: number, body: Uint8Array): Promise<void> {
    if (this.#failure) return;
    if (number > S3_PARTS_MAX) throw new Error(`an object in S3 has at most ${S3_PARTS_MAX} parts`);
    this.#id ??= this.#bucket.beginUpload(this.#key, this.#mark, this.#type);
    const part = { id: await this.#id, number, body, signal: this.#abort.signal };
    this.#parts[number - 1] = await this.#bucket.uploadPart(this.#key, part);
  }

  async complete(): Promise<void> {
    await Promise.all(this.#inFlight);
    if (this.#failure) throw this.#failure.cause;
    const id = await this.#id!;
    await settled(this.#bucket.completeUpload(this.#key, id, this.#parts), () => this.isAt(this.#key));
  }

  /** Whether an object carries the mark of this upload: it, or a copy of it. */
  async isAt(key: string): Promise<boolean> {
    return (await this.#bucket.head(key))?.mark === this.#mark;
  }

  async abort(): Promise<void> {
    this.#failure ??= { cause: new Error('the upload was aborted') };
    this.#abort.abort();
    // None may be sent after the upload is gone: some stores would keep it.
    await Promise.all(this.#inFlight);
    const id = await this.#id?.catch(() => null);
    if (id) await this.#bucket.abortUpload(this.#key, id);
  }

  /** Copies what this upload wrote to its final key, on the server, and its mark with it. */
  async copyTo(key: string, bytes: number, sizes: CopySizes, type: string | null): Promise<void> {
    const action =
      bytes <= sizes.copyBytesMax
        ? this.#bucket.copy(this.#key, key, this.#mark, type)
        : this.#copyInParts(key, bytes, sizes.copyPartBytes, type);
    await settled(action, () => this.isAt(key));
  }

  async #copyInParts(key: string, bytes: number, partBytes: number, type: string | null): Promise<void> {
    const id = await this.#bucket.beginUpload(key, this.#mark, type);
    try {
      const parts: S3Part[] = [];
      for (let offset = 0; offset < bytes; offset += partBytes) {
        const end = Math.min(bytes, offset + partBytes);
        parts.push(
          await this.#bucket.copyPart(this.#key, key, { id, number: parts.length + 1, offset, end }),
        );
      }
      await this.#bucket.completeUpload(key, id, parts);
    } catch (error) {
      await this.#bucket.abortUpload(key, id).catch(() => {});
      throw error;
    }
  }
}
