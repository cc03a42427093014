import { createHash, type Hash, hash, randomUUID } from 'node:crypto';
import { md5OfEach } from '../../core/media/md5.ts';
import { extensionOf, mediaKey } from '../../core/media/media-file.ts';
import { sniffMediaType } from '../../core/media/media-type.ts';
import type { Blobs, BlobWriter } from '../../ports/blobs.ts';
import type { BodySink } from '../../ports/fetcher.ts';

/** Objects up to this size are held in memory; larger ones are streamed to their blob. */
export const MEDIA_BUFFER_BYTES = 4 * 1024 * 1024;

/** More than a look at the type needs. */
const HEAD_BYTES = 16 * 1024;

/** A body that is complete: in memory, or in a blob that is not committed yet. */
export interface Received {
  bytes: number;
  sha256: string;
  md5: string;
  contentType: string | null;
  extension: string;
  /** Null when it went to a blob. */
  body: Buffer | null;
}

/** The bytes are of a kind that the job does not take. */
export class UnwantedType extends Error {}

interface IntakeOptions {
  blobs: Blobs;
  /** As the header says it. */
  declaredType: string | null;
  /** From Content-Length of a body without coding; null when unknown. */
  expectedBytes: number | null;
  takes(type: string): boolean;
}

/**
 * Takes one body: gathers it while it is small, hashes and streams it to a blob once it is not. The blob has
 * its name only after the last byte, as the name is the hash.
 */
export class MediaIntake implements BodySink {
  readonly #options: IntakeOptions;
  readonly #gatherBytesMax: number;
  #pieces: Buffer[] = [];
  #gathered = 0;
  #stream: BlobStream | null = null;
  #writing: Promise<void> | null = null;
  /** Why `write` threw; the fetcher tells no more than that it did. */
  failure: unknown = null;

  constructor(options: IntakeOptions) {
    this.#options = options;
    const { expectedBytes } = options;
    const isLarge = expectedBytes !== null && expectedBytes > MEDIA_BUFFER_BYTES;
    this.#gatherBytesMax = isLarge ? HEAD_BYTES : MEDIA_BUFFER_BYTES;
  }

  write(piece: Buffer): Promise<void> | void {
    if (this.#stream === null && this.#gathered + piece.length <= this.#gatherBytesMax) {
      this.#pieces.push(piece);
      this.#gathered += piece.length;
      return;
    }
    this.#writing = this.#pass(piece).catch((error) => {
      this.failure = error;
      throw error;
    });
    return this.#writing;
  }

  /** The body is complete: what is it? */
  async received(): Promise<Received> {
    if (this.#stream === null) return this.inMemory(Buffer.concat(this.#pieces, this.#gathered));
    return { ...this.#stream.described(), body: null };
  }

  /** Throws what the job does not take, before it costs a hash. */
  async inMemory(body: Buffer): Promise<Received> {
    const { contentType, extension } = this.#about(body);
    const { sha256, md5 } = await hashesOf(body);
    return { contentType, extension, bytes: body.length, sha256, md5, body };
  }

  /** Gives the streamed blob its name, unless the same bytes have one. */
  async commit({ sha256, extension }: Received): Promise<string> {
    const key = mediaKey(sha256, extension);
    if (await this.#options.blobs.has(key)) await this.abort();
    else await this.#stream!.writer.commit(key);
    return key;
  }

  /** Leaves no trace; never throws, as there is a reason to tell already. */
  async abort(): Promise<void> {
    await this.#writing?.catch(() => {});
    await this.#stream?.writer.abort().catch(() => {});
    this.#stream = null;
    this.#pieces = [];
  }

  async #pass(piece: Buffer): Promise<void> {
    if (this.#stream === null) {
      const head = Buffer.concat([...this.#pieces, piece]);
      this.#pieces = [];
      const about = this.#about(head);
      const writer = await this.#options.blobs.write(`media/incoming/${randomUUID()}`);
      this.#stream = new BlobStream(writer, about);
      return this.#stream.append(head);
    }
    return this.#stream.append(piece);
  }

  #about(head: Buffer): Pick<Received, 'contentType' | 'extension'> {
    const contentType = sniffMediaType(head, this.#options.declaredType);
    if (!this.#options.takes(head.length === 0 ? '' : (contentType ?? '')))
      throw new UnwantedType(head.length === 0 ? 'the file is empty' : `the media type is ${contentType}`);
    return { contentType, extension: extensionOf(head) };
  }
}

class BlobStream {
  readonly writer: BlobWriter;
  readonly #about: Pick<Received, 'contentType' | 'extension'>;
  readonly #sha256: Hash = createHash('sha256');
  readonly #md5: Hash = createHash('md5');

  constructor(writer: BlobWriter, about: Pick<Received, 'contentType' | 'extension'>) {
    this.writer = writer;
    this.#about = about;
  }

  append(bytes: Buffer): Promise<void> {
    this.#sha256.update(bytes);
    this.#md5.update(bytes);
    return this.writer.append(bytes);
  }

  described(): Omit<Received, 'body'> {
    return {
      ...this.#about,
      bytes: this.writer.size,
      sha256: this.#sha256.digest('hex'),
      md5: this.#md5.digest('hex'),
    };
  }
}

interface Hashes {
  sha256: string;
  md5: string;
}

/** Hashed in one turn of the event loop, at most: about 5 ms. */
const TURN_BYTES_MAX = 4 * 1024 * 1024;

const waiting: { body: Buffer; resolve(hashes: Hashes): void }[] = [];
let isPlanned = false;

/**
 * Hashes what is complete by the end of this turn of the event loop together, as MD5 of several bodies takes less than half
 * the time. Nothing waits for bodies that are still on their way: while a worker is busy, each turn completes several.
 */
function hashesOf(body: Buffer): Promise<Hashes> {
  return new Promise((resolve) => {
    waiting.push({ body, resolve });
    plan();
  });
}

function plan(): void {
  if (isPlanned) return;
  isPlanned = true;
  setImmediate(hashWaiting);
}

function hashWaiting(): void {
  isPlanned = false;
  let count = 0;
  for (let bytes = 0; count < waiting.length && bytes < TURN_BYTES_MAX; count++)
    bytes += waiting[count]!.body.length;
  const turn = waiting.splice(0, count);
  if (waiting.length > 0) plan();
  const digests = md5OfEach(turn.map(({ body }) => body));
  turn.forEach(({ body, resolve }, at) => {
    resolve({ sha256: hash('sha256', body, 'hex'), md5: digests[at]! });
  });
}
