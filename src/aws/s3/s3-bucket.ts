import { createHash } from 'node:crypto';
import type { Readable } from 'node:stream';
import { type LoadedS3, loadS3, type S3Settings } from './s3-client.ts';
import { explainS3, isAbsent, isForbidden, isUncertain } from './s3-errors.ts';
import type { ListMultipartUploadsOutput } from './s3-sdk.ts';

interface S3Entry {
  key: string;
  bytes: number;
  modifiedAt: number;
}

export interface S3Head {
  bytes: number;
  etag: string;
  /** What the writer marked it with. */
  mark: string | null;
}

export interface S3Part {
  number: number;
  etag: string;
}

export interface S3Body extends S3Head {
  /** Where in the object the stream begins: a store may not know ranges. */
  offset: number;
  stream: Readable;
}

/** Tells a writer whether what it finds under a key is what it wrote, when the reply was lost. */
const MARK = 'seine-upload';

/** The requests that Seine makes, of one bucket. Nothing is sent, or loaded, before the first. */
export class S3Bucket {
  readonly bucket: string;
  readonly #settings: S3Settings;
  #loading: Promise<LoadedS3> | null = null;

  /** It says of objects that are not there that they are forbidden: one request less is to look in the list at once. */
  #hidesAbsence = false;

  constructor(settings: S3Settings, bucket: string) {
    this.#settings = settings;
    this.bucket = bucket;
  }

  /** `type`: how it is described to whoever opens it. */
  async put(key: string, body: Uint8Array, type: string | null = null): Promise<void> {
    await this.#run(({ sdk, client }) =>
      client.send(
        new sdk.PutObjectCommand({
          ...this.#at(key),
          ...typeOf(type),
          Body: body,
          ContentLength: body.length,
        }),
      ),
    );
  }

  async has(key: string): Promise<boolean> {
    return this.#hidesAbsence ? this.#isListed(key) : (await this.head(key)) !== null;
  }

  async head(key: string): Promise<S3Head | null> {
    const found = await this.#orNull(key, ({ sdk, client }) =>
      client.send(new sdk.HeadObjectCommand(this.#at(key))),
    );
    return found && headOf(found);
  }

  /** From `offset` on, or to before `end`. Null when there is none; an offset at or past the end is an `InvalidRange`. */
  async open(
    key: string,
    range: { offset: number; end?: number } | null,
    options: { etag?: string } = {},
  ): Promise<S3Body | null> {
    const Range = range ? `bytes=${range.offset}-${range.end === undefined ? '' : range.end - 1}` : undefined;
    const found = await this.#orNull(key, ({ sdk, client }) =>
      client.send(new sdk.GetObjectCommand({ ...this.#at(key), Range, IfMatch: options.etag })),
    );
    if (!found) return null;
    const [, offset = '0', total] = /^bytes (\d+)-\d+\/(\d+)$/.exec(found.ContentRange ?? '') ?? [];
    const head = headOf(found);
    return {
      ...head,
      bytes: total === undefined ? head.bytes : Number(total),
      offset: Number(offset),
      stream: found.Body as Readable,
    };
  }

  async delete(key: string): Promise<void> {
    await this.#run(({ sdk, client }) => client.send(new sdk.DeleteObjectCommand(this.#at(key))));
  }

  /** In the order of their keys, a page of a thousand at a time. */
  async *list(prefix: string): AsyncGenerator<S3Entry> {
    let token: string | undefined;
    do {
      const page = await this.#run(({ sdk, client }) =>
        client.send(
          new sdk.ListObjectsV2Command({ Bucket: this.bucket, Prefix: prefix, ContinuationToken: token }),
        ),
      );
      for (const { Key, Size, LastModified } of page.Contents ?? [])
        yield { key: Key ?? '', bytes: Size ?? 0, modifiedAt: LastModified?.getTime() ?? 0 };
      token = page.NextContinuationToken;
    } while (token !== undefined && token !== '');
  }

  async beginUpload(key: string, mark: string, type: string | null = null): Promise<string> {
    const input = { ...this.#at(key), ...typeOf(type), Metadata: { [MARK]: mark } };
    const { UploadId } = await this.#run(({ sdk, client }) =>
      client.send(new sdk.CreateMultipartUploadCommand(input)),
    );
    return UploadId!;
  }

  async uploadPart(
    key: string,
    upload: { id: string; number: number; body: Uint8Array; signal: AbortSignal },
  ): Promise<S3Part> {
    const { id, number, body, signal } = upload;
    const { ETag } = await this.#run(({ sdk, client }) =>
      client.send(
        new sdk.UploadPartCommand({
          ...this.#at(key),
          UploadId: id,
          PartNumber: number,
          Body: body,
          ContentLength: body.length,
        }),
        { abortSignal: signal },
      ),
    );
    return { number, etag: ETag! };
  }

  async copyPart(
    from: string,
    to: string,
    part: { id: string; number: number; offset: number; end: number },
  ): Promise<S3Part> {
    const { CopyPartResult } = await this.#run(({ sdk, client }) =>
      client.send(
        new sdk.UploadPartCopyCommand({
          ...this.#at(to),
          UploadId: part.id,
          PartNumber: part.number,
          CopySource: this.#source(from),
          CopySourceRange: `bytes=${part.offset}-${part.end - 1}`,
        }),
      ),
    );
    return { number: part.number, etag: CopyPartResult!.ETag! };
  }

  async completeUpload(key: string, id: string, parts: S3Part[]): Promise<void> {
    const Parts = parts.map(({ number, etag }) => ({ PartNumber: number, ETag: etag }));
    await this.#run(({ sdk, client }) =>
      client.send(
        new sdk.CompleteMultipartUploadCommand({
          ...this.#at(key),
          UploadId: id,
          MultipartUpload: { Parts },
        }),
      ),
    );
  }

  /** An upload that is gone is no error. */
  async abortUpload(key: string, id: string): Promise<void> {
    await this.#run(async ({ sdk, client }) => {
      try {
        await client.send(new sdk.AbortMultipartUploadCommand({ ...this.#at(key), UploadId: id }));
      } catch (error) {
        if ((error as Error).name !== 'NoSuchUpload') throw error;
      }
    });
  }

  /** Uploads that were neither completed nor aborted. */
  async *uploads(prefix: string): AsyncGenerator<{ key: string; id: string; startedAt: number }> {
    let at: { key?: string; id?: string } | null = {};
    while (at) {
      const page: ListMultipartUploadsOutput = await this.#uploadsAfter(prefix, at);
      for (const { Key, UploadId, Initiated } of page.Uploads ?? [])
        yield { key: Key ?? '', id: UploadId ?? '', startedAt: Initiated?.getTime() ?? 0 };
      const more = page.IsTruncated && page.NextKeyMarker;
      at = more ? { key: page.NextKeyMarker, id: page.NextUploadIdMarker } : null;
    }
  }

  #uploadsAfter(prefix: string, { key, id }: { key?: string; id?: string }) {
    const input = { Bucket: this.bucket, Prefix: prefix, KeyMarker: key, UploadIdMarker: id };
    return this.#run(({ sdk, client }) => client.send(new sdk.ListMultipartUploadsCommand(input)));
  }

  /** On the server, whole or not at all, with its mark. Its type may be known only now. */
  async copy(from: string, to: string, mark: string, type: string | null): Promise<void> {
    const input = { ...this.#at(to), ...typeOf(type), CopySource: this.#source(from) };
    const about = { MetadataDirective: 'REPLACE', Metadata: { [MARK]: mark } } as const;
    await this.#run(({ sdk, client }) => client.send(new sdk.CopyObjectCommand({ ...input, ...about })));
  }

  explain(error: unknown): unknown {
    return explainS3(error, { bucket: this.bucket, endpoint: this.#settings.endpoint });
  }

  async close(): Promise<void> {
    const loaded = await this.#loading?.catch(() => null);
    loaded?.client.destroy();
  }

  #at(key: string) {
    return { Bucket: this.bucket, Key: key };
  }

  #source(key: string): string {
    return `${this.bucket}/${key.split('/').map(encodeURIComponent).join('/')}`;
  }

  async #run<T>(request: (loaded: LoadedS3) => Promise<T>): Promise<T> {
    try {
      this.#loading ??= loadS3(this.#settings);
      return await request(await this.#loading);
    } catch (error) {
      throw this.explain(error);
    }
  }

  async #orNull<T>(key: string, request: (loaded: LoadedS3) => Promise<T>): Promise<T | null> {
    return this.#run(async (loaded) => {
      try {
        return await request(loaded);
      } catch (error) {
        if (isAbsent(error) || (isForbidden(error) && (await this.#isUnlisted(key)))) return null;
        throw error;
      }
    });
  }

  async #isUnlisted(key: string): Promise<boolean> {
    const isUnlisted = !(await this.#isListed(key).catch(() => true));
    this.#hidesAbsence ||= isUnlisted;
    return isUnlisted;
  }

  /** The key itself comes before all that begin with it. */
  async #isListed(key: string): Promise<boolean> {
    const input = { Bucket: this.bucket, Prefix: key, MaxKeys: 1 };
    const { Contents } = await this.#run(({ sdk, client }) =>
      client.send(new sdk.ListObjectsV2Command(input)),
    );
    return Contents?.[0]?.Key === key;
  }
}

function typeOf(type: string | null): { ContentType?: string } {
  return type === null ? {} : { ContentType: type };
}

function headOf(found: { ContentLength?: number; ETag?: string; Metadata?: Record<string, string> }): S3Head {
  return {
    bytes: found.ContentLength ?? 0,
    etag: found.ETag ?? '',
    mark: found.Metadata?.[MARK] ?? null,
  };
}

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
