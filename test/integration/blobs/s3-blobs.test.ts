import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { S3Bucket } from '../../../src/aws/s3/s3-bucket.ts';
import { openS3Blobs, prepareS3Blobs } from '../../../src/blobs/s3-blobs.ts';
import { SeineError } from '../../../src/core/errors.ts';
import { runBlobsContract } from '../../contract/blobs-contract.ts';
import { S3_ENV, type S3Server, startS3Server } from '../../support/servers/s3-server.ts';

let server: S3Server;
let places = 0;
beforeAll(async () => {
  Object.assign(process.env, S3_ENV);
  server = await startS3Server({ listMax: 8 });
});
afterAll(() => server.close());

const MiB = 1024 * 1024;
const DAY_MS = 24 * 3_600_000;
const settings = () => ({ endpoint: server.endpoint, region: null, pathStyle: null });
const freshUrl = () => `s3://${server.bucket}/place-${places++}`;
const sentSince = (mark: number) => server.log.slice(mark).map((line) => line.replace(/\?.*/, ''));

runBlobsContract('S3', async () => openS3Blobs(freshUrl(), settings()));
runBlobsContract('S3, below a longer path', async () => openS3Blobs(`${freshUrl()}/a/b/`, settings()));

describe('S3 blobs', () => {
  test('a small blob is one request, and lies at its key', async () => {
    const url = freshUrl();
    const blobs = openS3Blobs(url, settings());
    expect(blobs.locate('a/b.txt')).toBe(`${url}/a/b.txt`);
    const mark = server.log.length;
    const writer = await blobs.write('a/unnamed');
    await writer.append(Buffer.alloc(5 * MiB - 1));
    await writer.commit('a/b.txt');
    expect(sentSince(mark)).toEqual([`PUT /${server.bucket}${new URL(url).pathname}/a/b.txt`]);
    await blobs.close();
  });

  test('a large blob goes out while it is written, in equal parts, and leaves nothing beside it', async () => {
    const blobs = openS3Blobs(freshUrl(), settings());
    const mark = server.log.length;
    const writer = await blobs.write('large');
    for (let written = 0; written < 12; written++) {
      await writer.append(Buffer.alloc(MiB));
      // What has not left yet is held in memory: a part that is being sent and one that is being filled.
      const left = server.log.slice(mark).filter((line) => line.includes('partNumber=')).length;
      expect(writer.size - left * 5 * MiB).toBeLessThanOrEqual(10 * MiB);
    }
    await writer.commit();
    expect(server.log.slice(mark).filter((line) => line.includes('partNumber='))).toHaveLength(3);
    expect(await blobs.read('large')).toHaveLength(12 * MiB);
    expect(await server.uploads()).toEqual([]);
    expect(sentSince(mark).at(-2)).toMatch(/^DELETE .*\/\.tmp\//);
    await blobs.close();
  });

  test('every blob is described by its name, whole or in parts, and the bytes of strangers never as a page', async () => {
    const url = freshUrl();
    const blobs = openS3Blobs(url, settings(), { copyBytesMax: 6 * MiB, copyPartBytes: 5 * MiB });
    const typeOf = async (key: string) => {
      const answer = await fetch(`${server.endpoint}/${server.bucket}${new URL(url).pathname}/${key}`);
      return answer.headers.get('content-type');
    };
    await blobs.put('sheets/one-1/index.html', Buffer.from('<p>'));
    await blobs.put('media/ab/ab.html', Buffer.from('<script>'));
    await blobs.put('media/ab/ab.svg', Buffer.from('<svg>'));
    const write = async (key: string, bytes: number, as?: string) => {
      const writer = await blobs.write(key);
      await writer.append(Buffer.alloc(bytes));
      await writer.commit(as);
    };
    await write('warc/one-1/1-0.warc.gz', 10);
    await write('media/unnamed', 6 * MiB, 'media/ab/ab.png');
    await write('shards/one-1/1-0.tar', 7 * MiB);
    expect(await typeOf('sheets/one-1/index.html')).toBe('text/html; charset=utf-8');
    expect(await typeOf('media/ab/ab.html')).toBe('text/plain; charset=utf-8');
    expect(await typeOf('media/ab/ab.svg')).toBe('text/plain; charset=utf-8');
    expect(await typeOf('warc/one-1/1-0.warc.gz')).toBe('application/gzip');
    expect(await typeOf('media/ab/ab.png')).toBe('image/png');
    expect(await typeOf('shards/one-1/1-0.tar')).toBe('application/x-tar');
    await blobs.close();
  });

  test('an abort takes the upload back, also while parts are on their way', async () => {
    const blobs = openS3Blobs(freshUrl(), settings());
    const writer = await blobs.write('gone');
    await writer.append(Buffer.alloc(10 * MiB));
    expect(await server.uploads()).toHaveLength(1);
    const late = writer.append(Buffer.alloc(11 * MiB)).catch(() => {});
    await writer.abort();
    await late;
    expect(await server.uploads()).toEqual([]);
    await blobs.close();
  });

  test('what is too large for one copy is copied in parts', async () => {
    const sizes = { partBytes: 100_000, copyBytesMax: 250_000, copyPartBytes: 120_000 };
    const blobs = openS3Blobs(freshUrl(), settings(), sizes);
    const bytes = randomBytes(400_001);
    const mark = server.log.length;
    const writer = await blobs.write('unnamed');
    await writer.append(bytes);
    await writer.commit('copied');
    expect((await blobs.read('copied'))?.equals(bytes)).toBe(true);
    expect(server.log.slice(mark).filter((line) => line.includes('copied?partNumber'))).toHaveLength(4);
    expect(await server.uploads()).toEqual([]);
    await blobs.close();
  });

  test('an object that cannot be a blob is not listed', async () => {
    const url = freshUrl();
    const bucket = new S3Bucket(settings(), server.bucket);
    const path = new URL(url).pathname.slice(1);
    for (const key of ['.tmp/x', 'a b', 'folder/', 'ok'])
      await bucket.put(`${path}/${key}`, Buffer.from('x'));
    const found: string[] = [];
    for await (const { key } of openS3Blobs(url, settings()).list('')) found.push(key);
    expect(found).toEqual(['ok']);
    await bucket.close();
  });

  test('the sweep takes what was left a day ago, and nothing younger or committed', async () => {
    const url = freshUrl();
    const path = new URL(url).pathname.slice(1);
    const blobs = openS3Blobs(url, settings());
    const bucket = new S3Bucket(settings(), server.bucket);
    await blobs.put('kept', Buffer.from('x'));
    for (const name of ['old', 'young']) await bucket.put(`${path}/.tmp/${name}`, Buffer.from('x'));
    const old = await bucket.beginUpload(`${path}/.tmp/old-upload`, 'mark');
    const young = await bucket.beginUpload(`${path}/.tmp/young-upload`, 'mark');
    const foreign = await bucket.beginUpload('elsewhere/upload', 'mark');
    await server.age({ key: `${path}/kept` }, 2 * DAY_MS);
    await server.age({ key: `${path}/.tmp/old` }, DAY_MS + 60_000);
    await server.age({ key: `${path}/.tmp/young` }, DAY_MS - 60_000);
    for (const id of [old, foreign]) await server.age({ upload: id }, DAY_MS + 60_000);

    expect(await prepareS3Blobs(url, settings(), Date.now())).toEqual({ removed: 2, problem: null });
    expect((await server.uploads()).sort()).toEqual([young, foreign].sort());
    expect(await bucket.head(`${path}/.tmp/old`)).toBeNull();
    expect(await bucket.head(`${path}/.tmp/young`)).not.toBeNull();
    expect(await blobs.has('kept')).toBe(true);
    for (const [key, id] of [
      ['elsewhere/upload', foreign],
      [`${path}/.tmp/young-upload`, young],
    ] as const)
      await bucket.abortUpload(key, id);
    await Promise.all([blobs.close(), bucket.close()]);
  });

  test.each([
    's3://',
    's3:///path',
    's3://b',
    's3://bucket/a b',
    's3://bucket/.hidden',
    's3://bucket/a//b',
    's3://bucket/../x',
  ])('blobs cannot be at %s', (url) => {
    expect(() => openS3Blobs(url, settings())).toThrow(SeineError);
  });
});
