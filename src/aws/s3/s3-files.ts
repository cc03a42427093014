import { Readable } from 'node:stream';
import { SeineError } from '../../core/errors.ts';
import { BoundedMap } from '../../core/lru.ts';
import { compileGlob } from '../../core/url/pattern.ts';
import { MissingFileError, type RemoteFiles } from '../../ports/remote-files.ts';
import { S3Bucket, type S3Head } from './s3-bucket.ts';
import type { S3Settings } from './s3-client.ts';
import { openPieces, readPieces } from './s3-read.ts';
import { parseS3Url, s3UrlOf } from './s3-url.ts';

/** Files whose state is remembered, so that all pieces of one come from the same. */
const VERSIONS_MAX = 64;

/** Files to read in S3. In `s3://bucket/path/*.parquet`, `*` stays within a folder and `**` does not. */
export function openS3Files(settings: S3Settings): RemoteFiles {
  const buckets = new Map<string, S3Bucket>();
  const versions = new BoundedMap<string, string>(VERSIONS_MAX);

  const place = (url: string): { bucket: S3Bucket; key: string } => {
    const { bucket: name, key } = parseS3Url(url);
    const bucket = buckets.get(name) ?? new S3Bucket(settings, name);
    buckets.set(name, bucket);
    return { bucket, key };
  };

  const headOf = async (url: string): Promise<S3Head> => {
    const { bucket, key } = place(url);
    if (key === '' || key.endsWith('/'))
      throw new SeineError(`${url} is not a file`, { hint: `to read all files in it, use '${url}*'` });
    const head = await bucket.head(key);
    if (!head) throw missing(url);
    versions.set(url, head.etag);
    return head;
  };

  const pieces = async (url: string, offset: number, end: number | null) => {
    const { bucket, key } = place(url);
    const found = await openPieces(bucket, key, { offset, end }, versions.get(url));
    if (!found) throw missing(url);
    return found;
  };

  return {
    async *list(url) {
      const { bucket, key } = place(url);
      if (!key.includes('*')) {
        yield { url, bytes: (await headOf(url)).bytes };
        return;
      }
      const fits = compileGlob(key);
      for await (const entry of bucket.list(key.slice(0, key.indexOf('*')))) {
        // A key that ends with a slash stands for a folder in some tools.
        if (entry.key.endsWith('/') || !fits(entry.key)) continue;
        yield { url: s3UrlOf({ bucket: bucket.bucket, key: entry.key }), bytes: entry.bytes };
      }
    },
    size: async (url) => (await headOf(url)).bytes,
    async read(url, offset, length) {
      if (length === 0) return Buffer.alloc(0);
      const bytes = await readPieces(await pieces(url, offset, offset + length));
      if (bytes.length === length) return bytes;
      throw new SeineError(`${url} is shorter than before`, { hint: 'start a new run with --fresh' });
    },
    stream: async (url, offset = 0) => Readable.from(await pieces(url, offset, null), { objectMode: false }),
    async close() {
      await Promise.all([...buckets.values()].map((bucket) => bucket.close()));
    },
  };
}

function missing(url: string): MissingFileError {
  return new MissingFileError(`no such file: ${url}`);
}
