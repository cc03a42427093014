import { hash, randomUUID } from 'node:crypto';
import type { StoredPage } from '../../core/batch/outcome.ts';
import type { ArchiveParts } from '../../core/job-schema/archive.ts';
import { BoundedMap } from '../../core/lru.ts';
import type { LastVisit } from '../../core/model.ts';
import { gzipFast, gzipStored, gzipWithZlib, roomFor } from '../../core/warc/gzip.ts';
import {
  type EncodedRecord,
  encodeRequest,
  encodeResource,
  encodeResponseRecord,
  encodeRevisit,
  encodeWarcinfo,
  type ResponseHead,
  type RevisitKind,
  recordBytes,
} from '../../core/warc/warc.ts';
import type { Blobs, BlobWriter } from '../../ports/blobs.ts';
import type { FetchResponse, Subresource } from '../../ports/fetcher.ts';

/** A batch's pages are written out whenever this much has gathered. */
export const ARCHIVE_BUFFER_BYTES = 1024 * 1024;

/**
 * The pages of one batch, in one WARC blob, each record a gzip member of its own so that it can be
 * read alone. The place of a page is known at once; the bytes go out in the background, in order.
 */

export interface ArchiveInfo {
  /** Name and version of what writes. */
  software: string;
  job: string;
  /** Epoch milliseconds. */
  date: number;
  userAgent?: string;
  robots?: 'obey' | 'ignore';
}

export interface ArchivePage extends ResponseHead {
  url: string;
  /** When it was requested, epoch milliseconds. */
  date: number;
  /** Of the request, as sent; it gets no record when absent. */
  requestHeaders?: readonly string[] | undefined;
  wireBody: Uint8Array;
  /** Of `wireBody`, in hex, when it is known already; it is computed otherwise. */
  wireSha256?: string | null;
  ip?: string | null;
  blockDigest?: boolean | undefined;
}

/** A page that the archive has already, seen again. */
interface ArchiveRevisit extends ResponseHead {
  url: string;
  date: number;
  requestHeaders?: readonly string[] | undefined;
  kind: RevisitKind;
  refersTo: NonNullable<LastVisit['archived']> & { url?: string };
}

/** A picture or print of the page. */
interface Attachment {
  kind: string;
  type: string;
  bytes: Uint8Array;
}

export interface Place {
  offset: number;
  length: number;
}

export interface Archive {
  /** Never fails: trouble with the blob shows at `commit`, and the places are void then. What is attached follows the page. */
  append(page: ArchivePage, attached?: readonly Attachment[]): Place;
  /** Never fails either. */
  revisit(page: ArchiveRevisit): void;
  /** Null, or what to wait for before more pages are appended: the blob is slower than the pages. */
  pressure(): Promise<void> | null;
  /** Null, and no blob, when nothing was appended. */
  commit(): Promise<{ key: string; bytes: number } | null>;
  abort(): Promise<void>;
}

/** Memory that may wait to be written before `pressure` asks for patience. */
const BACKLOG_BYTES_MAX = 4 * ARCHIVE_BUFFER_BYTES;

/** `onFailure` is told as soon as the blob cannot be written, before `commit` says so. */
export function openArchive(blobs: Blobs, key: string, info: ArchiveInfo, onFailure?: () => void): Archive {
  const output = new ArchiveOutput(blobs, key, onFailure);
  const nextRecordId = recordIds();
  let closed = false;

  const begin = () => {
    const { software, job, date } = info;
    const fields: Record<string, string> = { software, isPartOf: job };
    if (info.robots) fields.robots = info.robots;
    if (info.userAgent) fields['http-header-user-agent'] = info.userAgent;
    const filename = key.slice(key.lastIndexOf('/') + 1);
    output.add(compress(encodeWarcinfo({ date, recordId: nextRecordId(), filename, fields })));
  };

  const nextRecord = (): string => {
    if (closed) throw new Error('the archive is closed');
    if (output.size === 0) begin();
    return nextRecordId();
  };
  const addRequest = (
    { url, date, requestHeaders }: ArchivePage | ArchiveRevisit,
    concurrentTo: string,
  ): void => {
    if (!requestHeaders) return;
    const about = { url, date, requestHeaders, concurrentTo };
    output.add(compress(encodeRequest({ ...about, recordId: nextRecordId() })));
  };

  return {
    append(page, attached = []) {
      const recordId = nextRecord();
      const member = compress(encodeResponseRecord({ ...page, recordId }));
      const offset = output.size;
      const { length } = member;
      output.add(member);
      addRequest(page, recordId);
      for (const { kind, type, bytes } of attached) {
        const about = { url: page.url, date: page.date, kind, type, concurrentTo: recordId };
        output.add(compress(encodeResource({ ...about, recordId: nextRecordId(), body: bytes })));
      }
      return { offset, length };
    },
    revisit(page) {
      const recordId = nextRecord();
      output.add(compress(encodeRevisit({ ...page, recordId })));
      addRequest(page, recordId);
    },
    pressure: () => output.pressure(),
    async commit() {
      closed = true;
      if (output.size === 0) return null;
      await output.commit();
      return { key, bytes: output.size };
    },
    async abort() {
      closed = true;
      await output.abort();
    },
  };
}

/** UUIDs of one archive: random in front, counted at the end. A random one for each page costs 5 µs. */
function recordIds(): () => string {
  const prefix = randomUUID().slice(0, -12);
  let count = 0;
  return () => prefix + (count++).toString(16).padStart(12, '0');
}

function compress(record: EncodedRecord): Buffer {
  const bytes = recordBytes(record, roomFor);
  return record.coded ? gzipStored(bytes) : (gzipFast(bytes, record.body) ?? gzipWithZlib(bytes));
}

/** A few small pages. */
const FIRST_PIECE_BYTES = 16 * 1024;
/** Fewer bytes are copied sooner than written as a piece of their own. */
const WHOLE_BYTES_MIN = 16 * 1024;

/** Gathers members into larger pieces and writes those one after the other; opens the blob when it must. */
export class ArchiveOutput {
  readonly #blobs: Blobs;
  readonly #key: string;
  readonly #onFailure: () => void;
  #size = 0;
  /** Members that are not sent yet: those before `#piece`, and those in its first `#used` bytes. */
  #pieces: Buffer[] = [];
  #piecesBytes = 0;
  #piece: Buffer | null = null;
  #used = 0;
  /** What to call once the present pieces are written. */
  #onWritten: (() => void)[] = [];
  /** Bytes sent and not yet written. */
  #backlog = 0;
  #writer: BlobWriter | null = null;
  #failure: { cause: unknown } | null = null;
  #tail: Promise<void> = Promise.resolve();

  constructor(blobs: Blobs, key: string, onFailure: () => void = () => {}) {
    this.#blobs = blobs;
    this.#key = key;
    this.#onFailure = onFailure;
  }

  get size(): number {
    return this.#size;
  }

  /** The bytes are copied: members share the memory that they are made in. */
  add(member: Buffer): void {
    this.#size += member.length;
    if (this.#piecesBytes + this.#used + member.length > ARCHIVE_BUFFER_BYTES) this.#flush();
    if (member.length > ARCHIVE_BUFFER_BYTES) {
      this.#send([member]);
      return;
    }
    this.#pieceFor(this.#used + member.length).set(member, this.#used);
    this.#used += member.length;
  }

  /** As `add`, for bytes that nobody changes before they are written: they are not copied. Not called where writing fails. */
  addWhole(bytes: Buffer, onWritten: () => void = () => {}): void {
    if (bytes.length < WHOLE_BYTES_MIN) {
      this.add(bytes);
      onWritten();
      return;
    }
    this.#size += bytes.length;
    this.#closePiece();
    this.#pieces.push(bytes);
    this.#piecesBytes += bytes.length;
    this.#onWritten.push(onWritten);
    if (this.#piecesBytes >= ARCHIVE_BUFFER_BYTES) this.#flush();
  }

  /** What is in the piece is followed by something else; what is left of it takes the members after that. */
  #closePiece(): void {
    if (this.#piece === null || this.#used === 0) return;
    this.#pieces.push(this.#piece.subarray(0, this.#used));
    this.#piecesBytes += this.#used;
    this.#piece = this.#piece.subarray(this.#used);
    this.#used = 0;
  }

  /** Grows with what is in it: most batches have a few small pages, and memory that is given up soon costs full collections. */
  #pieceFor(bytes: number): Buffer {
    const before = this.#piece;
    if (before && before.length >= bytes) return before;
    const size = Math.min(ARCHIVE_BUFFER_BYTES, Math.max(2 * bytes, FIRST_PIECE_BYTES));
    this.#piece = Buffer.allocUnsafeSlow(size);
    before?.copy(this.#piece, 0, 0, this.#used);
    return this.#piece;
  }

  /** What to wait for before more is added; null while there is room. */
  pressure(): Promise<void> | null {
    return this.#backlog > BACKLOG_BYTES_MAX ? this.#tail : null;
  }

  async commit(): Promise<void> {
    this.#flush();
    await this.#tail;
    try {
      if (this.#failure) throw this.#failure.cause;
      await this.#writer?.commit();
    } catch (error) {
      // The first failure is the one to report; an abort that fails too would only hide it.
      await this.abort().catch(() => {});
      throw error;
    }
  }

  async abort(): Promise<void> {
    this.#failure ??= { cause: new Error('the archive was aborted') };
    this.#piece = null;
    this.#pieces = [];
    this.#onWritten = [];
    await this.#tail;
    await this.#writer?.abort();
  }

  #flush(): void {
    // Into a list of its own: one that has lived through the batch is old to the collector, and keeps what was in it until a
    // full collection. A crawl on two threads took 100 MB more.
    const pieces = this.#pieces.splice(0);
    const onWritten = this.#onWritten.splice(0);
    if (this.#piece && this.#used > 0) pieces.push(this.#piece.subarray(0, this.#used));
    if (pieces.length > 0) this.#send(pieces, onWritten);
    this.#piecesBytes = 0;
    this.#piece = null;
    this.#used = 0;
  }

  #send(pieces: readonly Buffer[], onWritten: readonly (() => void)[] = []): void {
    const bytes = pieces.reduce((sum, { length }) => sum + length, 0);
    this.#backlog += bytes;
    this.#tail = this.#tail.then(() => this.#write(pieces, bytes, onWritten));
  }

  /** Never rejects: the first failure is kept for `commit`, what comes after it is dropped. */
  async #write(pieces: readonly Buffer[], bytes: number, onWritten: readonly (() => void)[]): Promise<void> {
    try {
      if (this.#failure) return;
      this.#writer ??= await this.#blobs.write(this.#key);
      await this.#writer.append(pieces.length === 1 ? pieces[0]! : pieces);
      for (const tell of onWritten) tell();
    } catch (cause) {
      this.#failure ??= { cause };
      this.#onFailure();
    } finally {
      this.#backlog -= bytes;
    }
  }
}

/** Puts what was fetched into the batch's archive. Synchronous, see `process-batch`. */
export interface PageArchiver {
  /** Null when the job keeps no pages. */
  page(url: string, response: FetchResponse, at: number, sha256: string): StoredPage['archive'];
  /** Notes that the page is the same as at the last visit, where the archive has that and its bytes are the same. */
  revisit(url: string, response: FetchResponse, at: number, last: LastVisit | null): void;
  /** Whether responses with an error status are kept, too. */
  readonly errors: boolean;
}

export const keepNothing: PageArchiver = { page: () => null, revisit() {}, errors: false };

/** Answers that later equal ones refer to, in one file. Pages of a site share most of what they load. */
const KNOWN_RESOURCES_MAX = 10_000;

/** Puts what a browser loaded for pages into the archive: equal bytes once in each file. */
class ResourceArchiver {
  readonly #parts: ArchiveParts;
  readonly #known = new WeakMap<Archive, BoundedMap<string, { at: number; url: string }>>();

  constructor(parts: ArchiveParts) {
    this.#parts = parts;
  }

  keep(archive: Archive, { url, date, requestHeaders, body, ...head }: Subresource): void {
    const { requests, blockDigests: blockDigest } = this.#parts;
    const sha256 = hash('sha256', body, 'hex');
    const about = { url, date, ...head, ...(requests ? { requestHeaders } : {}) };
    const known = this.#knownIn(archive);
    const earlier = known.get(sha256);
    // A record without a body is as short as one that refers to another.
    if (earlier && body.length > 0) {
      archive.revisit({ ...about, kind: 'same-bytes', refersTo: { ...earlier, sha256 } });
      return;
    }
    known.set(sha256, { at: date, url });
    archive.append({ ...about, wireBody: body, wireSha256: sha256, blockDigest });
  }

  #knownIn(archive: Archive): BoundedMap<string, { at: number; url: string }> {
    const known = this.#known.get(archive) ?? new BoundedMap(KNOWN_RESOURCES_MAX);
    this.#known.set(archive, known);
    return known;
  }
}

/** Appending is synchronous and is the last step before the outcome, so both land in one part. */
export function pageArchiver(archiveFor: (date: number) => Archive, parts: ArchiveParts): PageArchiver {
  const { requests, blockDigests: blockDigest, errors } = parts;
  const resources = new ResourceArchiver(parts);
  const headOf = ({ status, statusText, httpVersion, rawHeaders, requestHeaders }: FetchResponse) => ({
    ...{ status, statusText, httpVersion, rawHeaders },
    ...(requests ? { requestHeaders } : {}),
  });
  return {
    errors,
    page(url, response, at, sha256) {
      const { wireBody, body, rendered } = response;
      // The store has whole milliseconds, by which records that refer to this one name it.
      const date = Math.round(at);
      // The digest is of the stored bytes, which are not the decoded ones when there is a coding.
      const wireSha256 = wireBody === body ? sha256 : hash('sha256', wireBody, 'hex');
      const page = { url, date, ...headOf(response), wireBody, wireSha256, blockDigest };
      const archive = archiveFor(date);
      const place = archive.append(page, rendered?.shots);
      for (const resource of rendered?.resources ?? []) resources.keep(archive, resource);
      return wireSha256 === sha256 ? place : { ...place, sha256: wireSha256 };
    },
    revisit(url, response, at, last) {
      const refersTo = last?.archived;
      if (!refersTo) return;
      const kind = response.status === 304 ? 'not-modified' : 'same-bytes';
      // The same page, compressed in another way: a record must not claim bytes that were not sent.
      if (kind === 'same-bytes' && refersTo.sha256 !== hash('sha256', response.wireBody, 'hex')) return;
      const date = Math.round(at);
      archiveFor(date).revisit({ url, date, ...headOf(response), kind, refersTo });
    },
  };
}
