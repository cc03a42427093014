import { Writable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { SeineError } from '../../core/errors.ts';
import { contentTypeOf } from '../../core/media/content-type.ts';
import { putObject, S3Bucket } from './s3-bucket.ts';
import type { S3Settings } from './s3-client.ts';
import { type MultipartSizes, MultipartUpload, PartBuffer } from './s3-multipart.ts';
import { parseS3Url } from './s3-url.ts';

/** An export is one file of up to 10,000 parts, so 160 GB. */
const S3_EXPORT_PART_BYTES = 16 * 1024 * 1024;
/** Parts on their way at once, all held in memory. */
const S3_EXPORT_PARTS_IN_FLIGHT = 4;

/** One object, written as a stream. Nothing is seen under its name before the stream has ended well. */
interface S3Upload {
  /** Slow while S3 is slow. Destroyed, it leaves nothing. */
  stream: Writable;
  /** Resolves when the object is there, rejects when it will not be. */
  done(): Promise<void>;
  /** Leaves nothing; after `done` it changes nothing. */
  abort(): Promise<void>;
}

const SIZES: MultipartSizes = {
  partBytes: S3_EXPORT_PART_BYTES,
  partsInFlight: S3_EXPORT_PARTS_IN_FLIGHT,
};

export function uploadTo(url: string, settings: S3Settings, sizes: MultipartSizes = SIZES): S3Upload {
  const { bucket: name, key } = parseS3Url(url);
  if (key === '' || key.endsWith('/'))
    throw new SeineError(`${url} is not a file name`, { hint: 'write s3://bucket/path/name' });
  const bucket = new S3Bucket(settings, name);
  const buffer = new PartBuffer(sizes.partBytes);
  const type = contentTypeOf(key);
  let upload: MultipartUpload | null = null;

  const push = async (parts: Uint8Array[]) => {
    for (const part of parts) {
      upload ??= new MultipartUpload(bucket, key, sizes.partsInFlight, type);
      await upload.push(part);
    }
  };
  const finish = async () => {
    const rest = buffer.rest();
    if (!upload) {
      await putObject(bucket, key, rest, type);
      return;
    }
    if (rest.length > 0) await upload.push(rest);
    await upload.complete();
    upload = null;
  };
  const clear = async () => {
    await upload?.abort();
    await bucket.close();
  };

  const stream = new Writable({
    write: (chunk: Buffer, _, then) => void push(buffer.add(chunk)).then(() => then(), then),
    final: (then) => void finish().then(() => then(), then),
    // Also after a good end. What cannot be taken back is less important than why.
    destroy: (error, then) =>
      void clear().then(
        () => then(error),
        () => then(error),
      ),
  });
  const ended = finished(stream);
  // Whoever does not ask must not be ended by it.
  ended.catch(() => {});
  return {
    stream,
    done: () => ended,
    async abort() {
      stream.destroy();
      if (!stream.closed) await new Promise((resolve) => stream.once('close', resolve));
    },
  };
}
