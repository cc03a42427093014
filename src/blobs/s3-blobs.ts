import { randomUUID } from 'node:crypto';
import { putObject, S3Bucket } from '../aws/s3/s3-bucket.ts';
import type { S3Settings } from '../aws/s3/s3-client.ts';
import { openPieces, readPieces } from '../aws/s3/s3-read.ts';
import { parseS3Url, s3UrlOf } from '../aws/s3/s3-url.ts';
import { SeineError } from '../core/errors.ts';
import { contentTypeOf } from '../core/media/content-type.ts';
import type { BlobEntry, Blobs } from '../ports/blobs.ts';
import { checkKey, checkPrefix, TEMPORARY_AGE_MS_MAX } from './blob-key.ts';
import { type S3Sizes, S3Writer } from './s3-writer.ts';

/** The least that S3 takes for a part, so the most that a writer of a blob must hold; smaller blobs are one request. */
const S3_PART_BYTES = 5 * 1024 * 1024;
/** One on its way while the next is gathered. */
const S3_PARTS_IN_FLIGHT = 2;
/** S3 copies up to 5 GB in one request; a copy of more than this could be silent for too long. */
const S3_COPY_BYTES_MAX = 1024 ** 3;
/** Larger objects are copied in parts of this size. */
const S3_COPY_PART_BYTES = 512 * 1024 ** 2;

/**
 * Blobs as objects below a prefix of a bucket. An object appears whole or not at all. What is not committed yet
 * lies below `.tmp/`, which no key can name; a writer that dies leaves something only there.
 */

const TEMPORARY = '.tmp/';

const SIZES: S3Sizes = {
  partBytes: S3_PART_BYTES,
  partsInFlight: S3_PARTS_IN_FLIGHT,
  copyBytesMax: S3_COPY_BYTES_MAX,
  copyPartBytes: S3_COPY_PART_BYTES,
};

/** Sends nothing: trouble with the bucket shows at the first use, or in `prepareS3Blobs`. */
export function openS3Blobs(url: string, settings: S3Settings, sizes: Partial<S3Sizes> = {}): Blobs {
  const { bucket, prefix } = openPlace(url, settings);
  const objectKeyOf = (key: string) => prefix + key;

  return {
    async write(key) {
      checkKey(key);
      const temporaryKey = `${prefix}${TEMPORARY}${randomUUID()}`;
      return new S3Writer({ bucket, key, temporaryKey, objectKeyOf, sizes: { ...SIZES, ...sizes } });
    },
    put: async (key, bytes) => putObject(bucket, objectKeyOf(checkKey(key)), bytes, contentTypeOf(key)),
    has: async (key) => bucket.has(objectKeyOf(checkKey(key))),
    async read(key, range) {
      const objectKey = objectKeyOf(checkKey(key));
      if (range && !(range.offset >= 0 && range.length >= 0))
        throw new RangeError('a range begins at 0 or later');
      // There is no way to ask for a range of no bytes.
      if (range?.length === 0) return (await bucket.head(objectKey)) && Buffer.alloc(0);
      const pieces = await openPieces(bucket, objectKey, {
        offset: range?.offset ?? 0,
        end: range ? range.offset + range.length : null,
      });
      return pieces && readPieces(pieces);
    },
    delete: async (key) => bucket.delete(objectKeyOf(checkKey(key))),
    list: (prefixOfKeys) => list(bucket, prefix, checkPrefix(prefixOfKeys)),
    locate: (key) => s3UrlOf({ bucket: bucket.bucket, key: objectKeyOf(checkKey(key)) }),
    close: () => bucket.close(),
  };
}

async function* list(bucket: S3Bucket, prefix: string, below: string): AsyncGenerator<BlobEntry> {
  for await (const entry of bucket.list(prefix + below)) {
    const key = entry.key.slice(prefix.length);
    // Others may keep things here too: what cannot be a key is none of ours.
    if (isKey(key)) yield { ...entry, key };
  }
}

function isKey(text: string): boolean {
  try {
    checkKey(text);
    return true;
  } catch {
    return false;
  }
}

/**
 * For the one who starts a job: says in a sentence what is wrong with the bucket, by using it, then removes what
 * writers left behind that died a day ago or longer. Younger things may belong to a living writer on another machine.
 */
export async function prepareS3Blobs(
  url: string,
  settings: S3Settings,
  now: number,
): Promise<{ removed: number; problem: unknown }> {
  const { bucket, prefix } = openPlace(url, settings);
  const before = now - TEMPORARY_AGE_MS_MAX;
  try {
    const probe = `${prefix}${TEMPORARY}${randomUUID()}`;
    await bucket.put(probe, Buffer.from('seine'));
    let problem: unknown = null;
    const [removed, aborted] = await Promise.all([
      deleteOld(bucket, prefix + TEMPORARY, before),
      // Not every store lists uploads, and not every role may: then a rule of the bucket must remove them.
      abortOldUploads(bucket, prefix + TEMPORARY, before).catch((error) => {
        problem = error;
        return 0;
      }),
      bucket.delete(probe),
    ]);
    return { removed: removed + aborted, problem };
  } finally {
    await bucket.close();
  }
}

async function deleteOld(bucket: S3Bucket, prefix: string, before: number): Promise<number> {
  let deleted = 0;
  for await (const { key, modifiedAt } of bucket.list(prefix)) {
    if (modifiedAt >= before) continue;
    await bucket.delete(key);
    deleted++;
  }
  return deleted;
}

async function abortOldUploads(bucket: S3Bucket, prefix: string, before: number): Promise<number> {
  let aborted = 0;
  for await (const { key, id, startedAt } of bucket.uploads(prefix)) {
    if (startedAt >= before) continue;
    await bucket.abortUpload(key, id);
    aborted++;
  }
  return aborted;
}

function openPlace(url: string, settings: S3Settings): { bucket: S3Bucket; prefix: string } {
  const { bucket, key } = parseS3Url(url);
  const path = key.replace(/\/+$/, '');
  try {
    if (path !== '') checkKey(path);
  } catch (error) {
    throw new SeineError(`${url} is not a valid location for blobs`, {
      hint: 'use only A-Z a-z 0-9 . _ / = - in the path, without empty parts and parts that begin with a dot',
      cause: error,
    });
  }
  return { bucket: new S3Bucket(settings, bucket), prefix: path === '' ? '' : `${path}/` };
}
