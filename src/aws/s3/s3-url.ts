import { SeineError } from '../../core/errors.ts';

/** Where something is in S3: `s3://bucket/key`. The key may be empty, and is taken literally: nothing in it is escaped. */
interface S3Place {
  bucket: string;
  key: string;
}

/** AWS allows less, compatible stores and old buckets all of this. */
const BUCKET = /^[A-Za-z0-9][A-Za-z0-9._-]{1,254}$/;
const KEY_BYTES_MAX = 1_024;

export function isS3Url(text: string): boolean {
  return /^s3:\/\//i.test(text);
}

export function parseS3Url(url: string): S3Place {
  const rest = url.slice('s3://'.length);
  const slashAt = rest.indexOf('/');
  const bucket = slashAt === -1 ? rest : rest.slice(0, slashAt);
  const key = slashAt === -1 ? '' : rest.slice(slashAt + 1);
  if (!isS3Url(url) || !BUCKET.test(bucket)) {
    throw new SeineError(`${url} has no valid bucket name`, { hint: 'write s3://bucket/path' });
  }
  if (Buffer.byteLength(key) > KEY_BYTES_MAX || /[\u0000-\u001f\u007f]/.test(key)) {
    throw new SeineError(`${JSON.stringify(url.slice(0, 200))} is not a valid object name`, {
      hint: `use at most ${KEY_BYTES_MAX} bytes and no control characters`,
    });
  }
  return { bucket, key };
}

export function s3UrlOf({ bucket, key }: S3Place): string {
  return `s3://${bucket}/${key}`;
}
