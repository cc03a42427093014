import { createHash, randomUUID } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rename, rm, stat, utimes } from 'node:fs/promises';
import type { IncomingMessage, Server } from 'node:http';
import { createRequire } from 'node:module';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';

/**
 * A real S3 server of its own folder and port. The package leaves out some of what S3 does and we rely on;
 * that is added here: a PUT that is atomic, listings in order and in pages, aborting and listing multipart
 * uploads, NoSuchUpload, and 416 for a range of an empty object.
 */
export interface S3Server {
  endpoint: string;
  port: number;
  bucket: string;
  /** For a process or an SDK: the credentials that it takes. */
  env: Record<string, string>;
  /** Every request, as `PUT /bucket/key?query`. */
  log: string[];
  /** Of every object in the bucket. */
  keys(): Promise<string[]>;
  /** Ids of multipart uploads that are neither completed nor aborted. */
  uploads(): Promise<string[]>;
  /** Makes an object or an unfinished upload look older than it is. */
  age(what: { key: string } | { upload: string }, ms: number): Promise<void>;
  close(): Promise<void>;
}

export const S3_ENV = { AWS_ACCESS_KEY_ID: 'S3RVER', AWS_SECRET_ACCESS_KEY: 'S3RVER' };

interface Context {
  req: IncomingMessage;
  method: string;
  path: string;
  url: string;
  query: Record<string, string>;
  headers: Record<string, string | undefined>;
  status: number;
  type: string;
  body: unknown;
}

interface StoredObject {
  key: string;
  size: number;
  lastModifiedDate: Date;
  metadata: Record<string, string>;
  content: Readable | null;
  range?: unknown;
}

interface FileStore {
  getBucket(bucket: string): Promise<unknown>;
  putBucket(bucket: string): Promise<unknown>;
  listObjects(bucket: string, options: { prefix?: string }): Promise<{ objects: StoredObject[] }>;
  getObject(bucket: string, key: string, options: unknown): Promise<StoredObject | null>;
  putContent(path: string, content: Readable | Buffer): Promise<[number, string]>;
}

interface S3rver {
  store: FileStore;
  middleware: ((context: Context, next: () => Promise<void>) => Promise<void>)[];
  httpServer: Server;
  run(): Promise<AddressInfo>;
}

const require = createRequire(import.meta.url);
const Package = require('@20minutes/s3rver') as new (options: Record<string, unknown>) => S3rver;

export async function startS3Server(
  options: {
    strictSignatures?: boolean;
    listMax?: number;
    /** Whether a request is allowed, as a policy of AWS says it: an action, an ARN, and the prefix of a list. */
    isAllowed?: (action: string, resource: string, prefix: string | null) => boolean;
  } = {},
): Promise<S3Server> {
  const root = await mkdtemp(join(tmpdir(), 'seine-s3-'));
  const bucket = 'seine-test';
  const server = new Package({
    address: '127.0.0.1',
    port: 0,
    silent: true,
    directory: join(root, 'objects'),
    vhostBuckets: false,
    // It reckons with another path than the SDK signs when a request names only a bucket.
    allowMismatchedSignatures: !options.strictSignatures,
  });
  await mkdir(join(root, 'temporary'), { recursive: true });
  const log: string[] = [];
  const uploadsDir = (name: string) => join(root, 'objects', name, '._S3rver_uploads');
  mendStore(server.store, join(root, 'temporary'));
  server.middleware.unshift(async (context, next) => {
    log.push(`${context.method} ${context.url}`);
    if (options.isAllowed && !(await isPermitted(context, server.store, options.isAllowed))) {
      context.req.resume();
      answer(context, 403, '<Error><Code>AccessDenied</Code><Message>Access Denied</Message></Error>');
      return;
    }
    if (!(await answerItself(context, server.store, uploadsDir, options.listMax ?? 1_000))) await next();
  });
  await server.store.putBucket(bucket);
  const { port } = await server.run();
  return {
    endpoint: `http://127.0.0.1:${port}`,
    port,
    bucket,
    env: S3_ENV,
    log,
    keys: async () => (await server.store.listObjects(bucket, {})).objects.map(({ key }) => key).sort(),
    uploads: () => readdir(uploadsDir(bucket)).catch(() => []),
    async age(what, ms) {
      const at = (Date.now() - ms) / 1_000;
      const path =
        'upload' in what
          ? join(uploadsDir(bucket), what.upload, 'key')
          : join(root, 'objects', bucket, `${what.key}._S3rver_object`);
      await utimes(path, at, at);
    },
    async close() {
      server.httpServer.closeAllConnections();
      await new Promise((resolve) => server.httpServer.close(resolve));
      await rm(root, { recursive: true, force: true });
    },
  };
}

/** As AWS decides: what is not there is forbidden to whoever may not list the bucket without a prefix. */
async function isPermitted(
  { method, path, query }: Context,
  store: FileStore,
  isAllowed: (action: string, resource: string, prefix: string | null) => boolean,
): Promise<boolean> {
  const [, bucket = '', ...rest] = path.split('/').map(decodeURIComponent);
  const key = rest.join('/');
  const arn = `arn:aws:s3:::${bucket}`;
  if (key === '')
    return isAllowed(
      'uploads' in query ? 's3:ListBucketMultipartUploads' : 's3:ListBucket',
      arn,
      query.prefix ?? null,
    );
  if (method === 'DELETE')
    return isAllowed(
      query.uploadId === undefined ? 's3:DeleteObject' : 's3:AbortMultipartUpload',
      `${arn}/${key}`,
      null,
    );
  if (method === 'PUT' || method === 'POST') return isAllowed('s3:PutObject', `${arn}/${key}`, null);
  if (!isAllowed('s3:GetObject', `${arn}/${key}`, null)) return false;
  const { objects } = await store.listObjects(bucket, { prefix: key });
  return objects.some((object) => object.key === key) || isAllowed('s3:ListBucket', arn, null);
}

/** What half arrived is not stored, and nothing is seen half written. */
function mendStore(store: FileStore, temporary: string): void {
  store.putContent = async (path, content) => {
    const part = join(temporary, randomUUID());
    const md5 = createHash('md5');
    let size = 0;
    try {
      await pipeline(
        Buffer.isBuffer(content) ? Readable.from([content]) : content,
        async function* (pieces: AsyncIterable<Buffer>) {
          for await (const piece of pieces) {
            md5.update(piece);
            size += piece.length;
            yield piece;
          }
        },
        createWriteStream(part),
      );
      await rename(part, path);
    } finally {
      await rm(part, { force: true });
    }
    return [size, md5.digest('hex')];
  };
  const getObject = store.getObject.bind(store);
  store.getObject = async (bucket, key, options) => {
    const object = await getObject(bucket, key, options);
    if (object?.range && object.size === 0) {
      object.content?.destroy();
      object.content = null;
    }
    return object;
  };
}

async function answerItself(
  context: Context,
  store: FileStore,
  uploadsDir: (bucket: string) => string,
  listMax: number,
): Promise<boolean> {
  const [, bucket = '', ...rest] = context.path.split('/').map(decodeURIComponent);
  const key = rest.join('/');
  const { query, method } = context;
  if (!(await store.getBucket(bucket))) return false;
  if (key === '' && method === 'GET' && query['list-type'] === '2') {
    await listObjects(context, store, bucket, listMax);
    return true;
  }
  if (key === '' && method === 'GET' && 'uploads' in query) {
    await listUploads(context, bucket, uploadsDir(bucket));
    return true;
  }
  if (query.uploadId === undefined || method === 'GET') return false;
  const upload = join(uploadsDir(bucket), query.uploadId);
  if (!(await stat(upload).catch(() => null))) {
    context.req.resume();
    answer(context, 404, '<Error><Code>NoSuchUpload</Code><Message>There is none.</Message></Error>');
    return true;
  }
  if (method !== 'DELETE') return false;
  await rm(upload, { recursive: true });
  context.status = 204;
  return true;
}

async function listObjects(
  context: Context,
  store: FileStore,
  bucket: string,
  listMax: number,
): Promise<void> {
  const { prefix = '', 'continuation-token': token } = context.query;
  const after = token === undefined ? (context.query['start-after'] ?? '') : decodeURIComponent(token);
  const { objects } = await store.listObjects(bucket, { prefix });
  const found = objects.filter(({ key }) => key > after).sort((a, b) => (a.key < b.key ? -1 : 1));
  const page = found.slice(0, listMax);
  const more = page.length < found.length;
  const items = page.map(
    ({ key, size, lastModifiedDate, metadata }) =>
      `<Contents><Key>${xml(key)}</Key><Size>${size}</Size><ETag>${xml(metadata.etag ?? '')}</ETag>` +
      `<LastModified>${lastModifiedDate.toISOString()}</LastModified></Contents>`,
  );
  const next = more
    ? `<NextContinuationToken>${xml(encodeURIComponent(page.at(-1)!.key))}</NextContinuationToken>`
    : '';
  answer(
    context,
    200,
    `<ListBucketResult><Name>${bucket}</Name><IsTruncated>${more}</IsTruncated><KeyCount>${page.length}</KeyCount>${next}${items.join('')}</ListBucketResult>`,
  );
}

async function listUploads(context: Context, bucket: string, dir: string): Promise<void> {
  const { prefix = '' } = context.query;
  const items: string[] = [];
  for (const id of await readdir(dir).catch(() => [])) {
    const key = await readFile(join(dir, id, 'key'), 'utf8');
    const { mtime } = await stat(join(dir, id, 'key'));
    if (key.startsWith(prefix))
      items.push(
        `<Upload><Key>${xml(key)}</Key><UploadId>${id}</UploadId><Initiated>${mtime.toISOString()}</Initiated></Upload>`,
      );
  }
  answer(
    context,
    200,
    `<ListMultipartUploadsResult><Bucket>${bucket}</Bucket><IsTruncated>false</IsTruncated>${items.join('')}</ListMultipartUploadsResult>`,
  );
}

function answer(context: Context, status: number, body: string): void {
  context.status = status;
  context.type = 'application/xml';
  context.body = `<?xml version="1.0" encoding="UTF-8"?>\n${body}`;
}

const xml = (text: string) => text.replace(/[&<>"]/g, (char) => `&#${char.charCodeAt(0)};`);
