import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { S3Bucket } from '../../../src/aws/s3/s3-bucket.ts';
import { openS3Files } from '../../../src/aws/s3/s3-files.ts';
import { uploadTo } from '../../../src/aws/s3/s3-upload.ts';
import { SeineError } from '../../../src/core/errors.ts';
import { MissingFileError, type RemoteFiles } from '../../../src/ports/remote-files.ts';
import { type FaultProxy, startFaultProxy } from '../../support/servers/fault-proxy.ts';
import { S3_ENV, type S3Server, startS3Server } from '../../support/servers/s3-server.ts';

let server: S3Server;
let proxy: FaultProxy;
let bucket: S3Bucket;
let files: RemoteFiles;
/** Through the proxy. */
let harmed: RemoteFiles;
const settingsOf = (endpoint: string) => ({ endpoint, region: 'eu-central-1', pathStyle: true });

beforeAll(async () => {
  Object.assign(process.env, S3_ENV);
  server = await startS3Server({ listMax: 4 });
  proxy = await startFaultProxy(server);
  bucket = new S3Bucket(settingsOf(server.endpoint), server.bucket);
  files = openS3Files(settingsOf(server.endpoint));
  harmed = openS3Files(settingsOf(proxy.endpoint));
});
afterAll(async () => {
  await Promise.all([bucket.close(), files.close(), harmed.close()]);
  await proxy.close();
  await server.close();
});

const url = (key: string) => `s3://${server.bucket}/${key}`;
async function listed(pattern: string): Promise<string[]> {
  const found: string[] = [];
  for await (const file of files.list(url(pattern))) found.push(file.url.slice(url('').length));
  return found;
}

describe('files in S3', () => {
  const KEYS = [
    'in/a.parquet',
    'in/a b+ü&.parquet',
    'in/b.parquet',
    'in/b.csv',
    'in/deep/c.parquet',
    'in/deep/er/d.parquet',
    'in/part-1.parquet',
    'in/part-10.parquet',
    'in/part-2.parquet',
    'in2/z.parquet',
  ];
  beforeAll(async () => {
    for (const key of KEYS) await bucket.put(key, Buffer.from(key));
    await bucket.put('in/folder/', Buffer.alloc(0));
  });

  test.each([
    ['in/*.parquet', (key: string) => /^in\/[^/]*\.parquet$/.test(key)],
    ['in/**.parquet', (key: string) => /^in\/.*\.parquet$/.test(key)],
    ['in/part-*.parquet', (key: string) => key.includes('part-')],
    ['in/*/*.parquet', (key: string) => key === 'in/deep/c.parquet'],
    ['in*/*.parquet', (key: string) => /^in2?\/[^/]*\.parquet$/.test(key)],
    ['**', () => true],
    ['in/*.json', () => false],
    ['nowhere/*', () => false],
  ])('%s stands for what fits, in order', async (pattern, fits) => {
    expect(await listed(pattern)).toEqual(KEYS.filter(fits).sort());
  });

  test('a name without * is that file, with its size; one that is not there is missing', async () => {
    for await (const file of files.list(url('in/a.parquet')))
      expect(file).toEqual({ url: url('in/a.parquet'), bytes: 'in/a.parquet'.length });
    expect(await listed('in/a.parquet')).toEqual(['in/a.parquet']);
    await expect(listed('in/none.parquet')).rejects.toThrow(MissingFileError);
    await expect(listed('in/')).rejects.toThrow(/is not a file/);
  });

  test('pages of the list are asked for when they are needed', async () => {
    const mark = server.log.length;
    for await (const file of files.list(url('in/**'))) {
      expect(file.bytes).toBeGreaterThan(0);
      break;
    }
    expect(server.log.slice(mark)).toHaveLength(1);
  });

  test('size, pieces and streams', async () => {
    const content = randomBytes(300_000);
    await bucket.put('bytes', content);
    expect(await files.size(url('bytes'))).toBe(content.length);
    expect((await files.read(url('bytes'), 1_000, 5_000)).equals(content.subarray(1_000, 6_000))).toBe(true);
    expect((await files.read(url('bytes'), 0, 1)).equals(content.subarray(0, 1))).toBe(true);
    expect((await files.read(url('bytes'), 299_999, 1)).equals(content.subarray(299_999))).toBe(true);
    expect(await files.read(url('bytes'), 5, 0)).toHaveLength(0);
    expect((await buffer(await files.stream(url('bytes')))).equals(content)).toBe(true);
    expect((await buffer(await files.stream(url('bytes'), 123_456))).equals(content.subarray(123_456))).toBe(
      true,
    );
    expect(await buffer(await files.stream(url('bytes'), 300_000))).toHaveLength(0);
    await bucket.put('empty', Buffer.alloc(0));
    expect(await buffer(await files.stream(url('empty')))).toHaveLength(0);
  });

  test('fewer bytes than asked for are an error, and so is what is not there', async () => {
    await bucket.put('short', Buffer.from('0123456789'));
    await expect(files.read(url('short'), 5, 6)).rejects.toThrow(/shorter/);
    await expect(files.read(url('short'), 10, 1)).rejects.toThrow(/shorter/);
    await expect(files.read(url('none'), 0, 1)).rejects.toThrow(MissingFileError);
    await expect(files.size(url('none'))).rejects.toThrow(MissingFileError);
    await expect(files.stream(url('none'))).rejects.toThrow(MissingFileError);
    await expect(files.size('s3://no-such-bucket/x/')).rejects.toThrow(SeineError);
    for await (const _ of files.list(url('none*'))) expect.unreachable();
    const list = files.list('s3://no-such-bucket/*')[Symbol.asyncIterator]();
    await expect(list.next()).rejects.toThrow(/no bucket no-such-bucket/);
  });

  test('a connection that breaks again and again only costs time', async () => {
    const content = randomBytes(2_000_000);
    await bucket.put('broken', content);
    proxy.plan((request, earlier) => (request.startsWith('GET') && earlier < 6 ? 'cut-reply' : 'none'));
    expect((await buffer(await harmed.stream(url('broken'), 1_000))).equals(content.subarray(1_000))).toBe(
      true,
    );
    expect(proxy.log.length).toBeGreaterThan(5);
  });

  test('a file that is replaced while it is read is not mixed with the old one', async () => {
    await bucket.put('replaced', Buffer.alloc(1_000_000, 'a'));
    await files.size(url('replaced'));
    await bucket.put('replaced', Buffer.alloc(1_000_000, 'b'));
    await expect(files.read(url('replaced'), 0, 10)).rejects.toThrow(/changed while reading it/);
    proxy.plan(() => 'cut-reply');
    const stream = await harmed.stream(url('replaced'));
    await bucket.put('replaced', Buffer.alloc(1_000_000, 'c'));
    await expect(buffer(stream)).rejects.toThrow(/changed while reading it/);
  });
});

describe('uploads to S3', () => {
  const sizes = { partBytes: 100_000, partsInFlight: 2 };
  const read = async (key: string) => buffer(await files.stream(url(key)));

  test.each([
    ['empty', 0, 1],
    ['small', 1_000, 1],
    ['one part exactly', 100_000, 3],
    ['large', 1_234_567, 15],
  ])('%s', async (name, bytes, requests) => {
    const content = randomBytes(bytes);
    const key = `out/${name}`;
    const mark = server.log.length;
    const upload = uploadTo(url(key), settingsOf(server.endpoint), sizes);
    const pieces = Array.from({ length: Math.ceil(bytes / 7_777) }, (_, index) =>
      content.subarray(index * 7_777, (index + 1) * 7_777),
    );
    await pipeline(Readable.from(pieces), upload.stream);
    await upload.done();
    expect(server.log.slice(mark)).toHaveLength(requests);
    expect((await read(key)).equals(content)).toBe(true);
    await upload.abort();
    expect((await read(key)).equals(content)).toBe(true);
    expect(await server.uploads()).toEqual([]);
  });

  test('one that is aborted, or whose source fails, leaves nothing', async () => {
    const upload = uploadTo(url('out/aborted'), settingsOf(server.endpoint), sizes);
    upload.stream.write(Buffer.alloc(350_000));
    await upload.abort();
    await expect(upload.done()).rejects.toThrow();
    const failing = uploadTo(url('out/failing'), settingsOf(server.endpoint), sizes);
    const source = async function* () {
      yield Buffer.alloc(350_000);
      throw new Error('the source failed');
    };
    await expect(pipeline(source, failing.stream)).rejects.toThrow('the source failed');
    await failing.abort();
    expect(await listed('out/a*')).toEqual([]);
    expect(await listed('out/f*')).toEqual([]);
    expect(await server.uploads()).toEqual([]);
  });

  test('what goes wrong at S3 is said in a sentence by done and by the stream', async () => {
    const upload = uploadTo('s3://no-such-bucket/x', settingsOf(server.endpoint), sizes);
    const piped = pipeline(Readable.from([Buffer.from('x')]), upload.stream);
    await expect(piped).rejects.toThrow(/no bucket no-such-bucket/);
    await expect(upload.done()).rejects.toThrow(/no bucket no-such-bucket/);
    expect(() => uploadTo(url('out/'), settingsOf(server.endpoint))).toThrow(/is not a file name/);
  });

  test('a lost reply to the last request does no harm', async () => {
    proxy.plan((request, earlier) =>
      request.startsWith('POST') && request.includes('uploadId') && earlier === 0 ? 'lose-reply' : 'none',
    );
    const upload = uploadTo(url('out/lost'), settingsOf(proxy.endpoint), sizes);
    upload.stream.end(Buffer.alloc(250_000, 'x'));
    await upload.done();
    expect(await read('out/lost')).toHaveLength(250_000);
    expect(proxy.log.some(({ fault }) => fault === 'lose-reply')).toBe(true);
  });
});
