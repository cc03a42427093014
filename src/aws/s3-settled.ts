import { createHash } from 'node:crypto';
import type { S3Bucket } from './s3-bucket.ts';
import { isUncertain } from './s3-errors.ts';

/** For a request whose reply may be lost though it was done: a failure counts only if it was not. */
export async function settled(action: Promise<void>, isDone: () => Promise<boolean>): Promise<void> {
  try {
    await action;
  } catch (error) {
    const done = isUncertain(error) && (await isDone().catch(() => false));
    if (!done) throw error;
  }
}

/** A PUT without a reply has happened if what is there has the size and the MD5 of what was sent. */
export async function putObject(
  bucket: S3Bucket,
  key: string,
  bytes: Uint8Array,
  type: string | null,
): Promise<void> {
  await settled(bucket.put(key, bytes, type), async () => {
    const found = await bucket.head(key);
    const md5 = createHash('md5').update(bytes).digest('hex');
    return found?.bytes === bytes.length && found.etag === `"${md5}"`;
  });
}
