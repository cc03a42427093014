import type { Readable } from 'node:stream';
import { setTimeout as wait } from 'node:timers/promises';
import { SeineError } from '../../core/errors.ts';
import type { S3Body, S3Bucket } from './s3-bucket.ts';
import { isChanged, isPastEnd } from './s3-errors.ts';
import { s3UrlOf } from './s3-url.ts';

/** The SDK tries again until a reply begins; what breaks in the middle of a body is continued here. */

/** In a row, without a byte in between. */
const BREAKS_MAX = 5;
const BREAK_WAIT_MS = 100;

interface S3Range {
  offset: number;
  /** Before this byte; null reads to the end. */
  end: number | null;
}

/** Null when there is no such object; nothing when the range begins behind its end. */
export async function openPieces(
  bucket: S3Bucket,
  key: string,
  range: S3Range,
  /** Of the state of the object that is meant, when others of its bytes were read before. */
  etag?: string,
): Promise<AsyncGenerator<Buffer> | null> {
  const body = await openAt(bucket, key, range, etag);
  return body === null ? null : pieces(bucket, key, range, body);
}

async function* pieces(
  bucket: S3Bucket,
  key: string,
  range: S3Range,
  first: S3Body | 'past-end',
): AsyncGenerator<Buffer> {
  let at = range.offset;
  let breaks = 0;
  let body = first;
  while (body !== 'past-end') {
    const end = Math.min(range.end ?? Number.POSITIVE_INFINITY, body.bytes);
    try {
      for await (const piece of cut(body.stream, at - body.offset, end - at)) {
        at += piece.length;
        breaks = 0;
        yield piece;
      }
      if (at >= end) return;
      throw new SeineError(`${urlOf(bucket, key)} ended ${end - at} bytes early`);
    } catch (error) {
      if (++breaks > BREAKS_MAX) throw bucket.explain(error);
    } finally {
      body.stream.destroy();
    }
    await wait(BREAK_WAIT_MS * 2 ** breaks);
    const next = await openAt(bucket, key, { ...range, offset: at }, body.etag);
    if (!next)
      throw new SeineError(`${s3UrlOf({ bucket: bucket.bucket, key })} was deleted while reading it`);
    body = next;
  }
}

async function openAt(
  bucket: S3Bucket,
  key: string,
  { offset, end }: S3Range,
  etag: string | undefined,
): Promise<S3Body | 'past-end' | null> {
  const range = offset === 0 && end === null ? null : { offset, ...(end === null ? {} : { end }) };
  try {
    const body = await bucket.open(key, range, etag ? { etag } : {});
    if (!body || !etag || body.etag === etag) return body;
    // Not every store knows If-Match.
    body.stream.destroy();
    throw changed(bucket, key);
  } catch (error) {
    if (isPastEnd(error)) return 'past-end';
    throw isChanged(error) ? changed(bucket, key) : error;
  }
}

const urlOf = (bucket: S3Bucket, key: string) => s3UrlOf({ bucket: bucket.bucket, key });

function changed(bucket: S3Bucket, key: string): SeineError {
  return new SeineError(`${urlOf(bucket, key)} changed while reading it`, {
    hint: 'start a new run with --fresh',
  });
}

/** Of a stream: so many bytes after so many. A store that does not know ranges sends more than was asked for. */
async function* cut(stream: Readable, skip: number, length: number): AsyncGenerator<Buffer> {
  let toSkip = skip;
  let left = length;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    const piece = chunk.subarray(Math.min(toSkip, chunk.length)).subarray(0, left);
    toSkip -= Math.min(toSkip, chunk.length);
    left -= piece.length;
    if (piece.length > 0) yield piece;
    if (left === 0) return;
  }
}

export async function readPieces(source: AsyncIterable<Buffer>): Promise<Buffer> {
  const found: Buffer[] = [];
  for await (const piece of source) found.push(piece);
  return found.length === 1 ? found[0]! : Buffer.concat(found);
}
