import { hash } from 'node:crypto';
import { brotliDecompressSync, gunzipSync, inflateRawSync, inflateSync, zstdDecompressSync } from 'node:zlib';
import { messageOf, SeineError } from '../../core/errors.ts';
import { LIMITS } from '../../core/limits.ts';
import type { ArchiveRef } from '../../core/model.ts';
import { parseRecord, readResponse } from '../../core/warc/warc-reader.ts';
import type { Blobs } from '../../ports/blobs.ts';
import { ARCHIVE_BUFFER_BYTES } from './archive.ts';

export interface StoredResponse {
  url: string;
  /** When it was requested, epoch milliseconds. */
  date: number;
  status: number;
  statusText: string;
  /** Alternating name and value, as received. */
  headers: string[];
  /** Content-Encoding undone. */
  body: Buffer;
}

/** The most that a job may allow for a page; its own limit held when the page was fetched. */
const PAGE_BYTES_MAX = 1024 ** 3;

/**
 * A page from the archive, checked in every respect; throws `SeineError` when it is not there, not whole, or not what
 * was fetched: whoever can write to the bucket could otherwise put records into the database.
 */
export async function readPage(
  blobs: Blobs,
  ref: ArchiveRef,
  options: { bytesMax?: number; sha256?: string | null } = {},
): Promise<StoredResponse> {
  const { bytesMax = PAGE_BYTES_MAX, sha256 = null } = options;
  const place = `${blobs.locate(ref.key)} at ${ref.offset}`;
  const member = await blobs.read(ref.key, { offset: ref.offset, length: ref.length });
  if (!member) throw new SeineError(`the archive ${blobs.locate(ref.key)} is missing`);
  try {
    if (member.length !== ref.length) throw new Error('the archive ends before the page does');
    const limit = { maxOutputLength: bytesMax + ARCHIVE_BUFFER_BYTES };
    const record = parseRecord(gunzipSync(member, limit));
    const { status, statusText, headers, body } = readResponse(record);
    const decoded = decodeBody(body, codingsOf(headers), bytesMax);
    if (sha256 !== null && hash('sha256', decoded, 'hex') !== sha256)
      throw new Error('its SHA-256 is not the one that was stored with the task: the archive was changed');
    return { url: record.url!, date: record.date, status, statusText, headers, body: decoded };
  } catch (cause) {
    throw new SeineError(`cannot read the page in ${place}: ${messageOf(cause)}`, { cause });
  }
}

function codingsOf(headers: string[]): string[] {
  const codings: string[] = [];
  for (let i = 0; i < headers.length; i += 2) {
    if (headers[i]!.toLowerCase() !== 'content-encoding') continue;
    for (const coding of headers[i + 1]!.toLowerCase().split(',')) codings.push(coding.trim());
  }
  return codings.filter((coding) => coding !== '' && coding !== 'identity');
}

/** Codings are undone in the reverse of the order in which they were applied and listed. */
function decodeBody(body: Buffer, codings: string[], bytesMax: number): Buffer {
  if (codings.length > LIMITS.contentCodingsMax) throw new Error('too many content codings');
  if (body.length === 0) return body;
  return codings.reduceRight((bytes, coding) => undo(bytes, coding, { maxOutputLength: bytesMax }), body);
}

function undo(bytes: Buffer, coding: string, limit: { maxOutputLength: number }): Buffer {
  switch (coding) {
    case 'gzip':
    case 'x-gzip':
      return gunzipSync(bytes, limit);
    case 'deflate':
      // Some servers mean zlib by this, as the standard says, and some mean raw deflate.
      return (bytes[0]! & 0x0f) === 8 && bytes.length > 1 && bytes.readUInt16BE(0) % 31 === 0
        ? inflateSync(bytes, limit)
        : inflateRawSync(bytes, limit);
    case 'br':
      return brotliDecompressSync(bytes, limit);
    case 'zstd':
      return zstdDecompressSync(bytes, limit);
    default:
      throw new Error(`unknown content coding ${JSON.stringify(coding)}`);
  }
}
