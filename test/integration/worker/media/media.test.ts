import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import zlib from 'node:zlib';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { Blobs } from '../../../../src/ports/blobs.ts';
import { MEDIA_BUFFER_BYTES } from '../../../../src/worker/media/media-intake.ts';
import { drips, type RawHandler, reply, sends, sendsThenEnds } from '../../../support/servers/raw-origin.ts';
import {
  type MediaSetup,
  md5,
  openMediaSetup,
  outcomesOf,
  pagesOf,
  pictureOf,
  sha256,
} from '../../../support/worker/media-setup.ts';

const SMALL = pictureOf(1, 80_000);
const LARGE = pictureOf(2, MEDIA_BUFFER_BYTES + 1_234_567);
const PAGE = Buffer.from(`<!doctype html><title>not found</title>${' '.repeat(100)}`);
const LARGE_PAGE = Buffer.concat([PAGE, LARGE]);

function chunked(body: Buffer, headers: string[] = []): Buffer {
  const head = ['HTTP/1.1 200 OK', ...headers, 'Transfer-Encoding: chunked', '', ''].join('\r\n');
  return Buffer.concat([
    Buffer.from(`${head}${body.length.toString(16)}\r\n`),
    body,
    Buffer.from('\r\n0\r\n\r\n'),
  ]);
}

const jpeg = (body: Buffer, ...headers: string[]) =>
  sends(reply('200 OK', ['Content-Type: image/jpeg', ...headers], body));

const handlers: Record<string, RawHandler> = {
  '/small.jpg': jpeg(SMALL, 'ETag: "s1"', 'Last-Modified: Wed, 21 Oct 2015 07:28:00 GMT'),
  '/same.bin': sends(reply('200 OK', ['Content-Type: application/octet-stream'], SMALL)),
  '/chunked.jpg': sends(chunked(SMALL)),
  '/gzip.jpg': jpeg(zlib.gzipSync(SMALL), 'Content-Encoding: gzip'),
  '/large.jpg': jpeg(LARGE),
  '/large-again.jpg': jpeg(LARGE),
  '/large-chunked.jpg': sends(chunked(LARGE)),
  '/large-gzip.jpg': jpeg(zlib.gzipSync(LARGE, { level: 1 }), 'Content-Encoding: gzip'),
  '/large-cut.jpg': sendsThenEnds(reply('200 OK', [], LARGE).subarray(0, -100)),
  '/large-stalls.jpg': sends(reply('200 OK', [], LARGE).subarray(0, -100)),
  '/endless.jpg': drips('HTTP/1.1 200 OK\r\n\r\n', 'x'.repeat(64 * 1024), 1),
  '/page.jpg': jpeg(PAGE),
  '/large-page.jpg': jpeg(LARGE_PAGE),
  '/noise.jpg': jpeg(Buffer.from([1, 2, 3, 4, 5])),
  '/empty.jpg': jpeg(Buffer.alloc(0)),
  '/moved.jpg': sends(reply('302 Found', ['Location: /small.jpg'])),
  '/unchanged.jpg': sends('HTTP/1.1 304 Not Modified\r\nETag: "s1"\r\n\r\n'),
  '/noai.jpg': jpeg(SMALL, 'X-Robots-Tag: noai, noimageai'),
  '/large-noai.jpg': jpeg(LARGE, 'X-Robots-Tag: noai, noimageai'),
};

/** Each of several pieces, in blocks of several sizes: more than are under way at once. */
const ALBUM = Array.from({ length: 60 }, (_, at) => pictureOf(100 + at, 70_000 + at * 5_003));
for (const [at, picture] of ALBUM.entries()) handlers[`/album/${at}.jpg`] = jpeg(picture);

const keyOf = (bytes: Buffer, extension = 'jpg') =>
  `media/${sha256(bytes).slice(0, 2)}/${sha256(bytes)}.${extension}`;

let setup: MediaSetup;
beforeAll(async () => {
  setup = await openMediaSetup(handlers);
});
afterEach(async () => {
  for await (const { key } of setup.blobs.list('')) await setup.blobs.delete(key);
  expect(await setup.files()).toEqual([]);
});
afterAll(() => setup.close());

describe('an object', () => {
  test('is stored under the hash of its bytes, with everything that is known of it', async () => {
    const [outcome] = outcomesOf(await setup.run(['/small.jpg']));
    expect(outcome).toMatchObject({
      kind: 'fetched',
      links: [],
      records: [],
      shows: [],
      page: {
        route: 'media',
        httpStatus: 200,
        contentType: 'image/jpeg',
        bytes: SMALL.length,
        sha256: sha256(SMALL),
        archive: null,
        media: { key: keyOf(SMALL), md5: md5(SMALL), member: null },
        robotsTags: null,
        etag: '"s1"',
        lastModified: 'Wed, 21 Oct 2015 07:28:00 GMT',
      },
    });
    expect(await setup.files()).toEqual([keyOf(SMALL)]);
    expect((await setup.blobs.read(keyOf(SMALL)))?.equals(SMALL)).toBe(true);
  });

  test('is stored once, wherever and however its bytes come', async () => {
    const paths = ['/small.jpg', '/same.bin', '/chunked.jpg', '/gzip.jpg'];
    const pages = pagesOf(await setup.run([...paths, ...paths]));
    expect(new Set(pages.map(({ media }) => media?.key))).toEqual(new Set([keyOf(SMALL)]));
    expect(new Set(pages.map(({ contentType }) => contentType))).toEqual(new Set(['image/jpeg']));
    expect(await setup.files()).toEqual([keyOf(SMALL)]);
    const written = await stat(join(setup.dir, keyOf(SMALL)));
    await setup.run(paths);
    const again = await stat(join(setup.dir, keyOf(SMALL)));
    expect([again.ino, again.mtimeMs]).toEqual([written.ino, written.mtimeMs]);
  });

  test('has its own bytes, though it is gathered where another was before', async () => {
    const paths = ALBUM.map((_, at) => `/album/${at}.jpg`);
    for (let round = 0; round < 2; round++) {
      const pages = pagesOf(await setup.run(paths));
      expect(pages.map(({ media }) => media?.key).sort()).toEqual(ALBUM.map((each) => keyOf(each)).sort());
      for (const picture of ALBUM) {
        expect((await setup.blobs.read(keyOf(picture)))?.equals(picture)).toBe(true);
        await setup.blobs.delete(keyOf(picture));
      }
    }
  });

  test('that is large is streamed to its blob: with a length, in chunks, coded', async () => {
    for (const path of ['/large.jpg', '/large-chunked.jpg', '/large-gzip.jpg']) {
      const [page] = pagesOf(await setup.run([path]));
      expect(page).toMatchObject({
        bytes: LARGE.length,
        sha256: sha256(LARGE),
        contentType: 'image/jpeg',
        media: { key: keyOf(LARGE), md5: md5(LARGE), member: null },
      });
      expect((await setup.blobs.read(keyOf(LARGE)))?.equals(LARGE)).toBe(true);
      await setup.run(['/large-again.jpg', path]);
      expect(await setup.files()).toEqual([keyOf(LARGE)]);
      await setup.blobs.delete(keyOf(LARGE));
    }
  });

  test('that breaks off leaves nothing behind', async () => {
    const timeouts = { bodyMs: 300 };
    const [cut, stalled] = outcomesOf(
      await setup.run(['/large-cut.jpg', '/large-stalls.jpg'], { spec: { timeouts } }),
    );
    expect(cut).toMatchObject({ kind: 'failed', code: 'truncated', page: null });
    expect(stalled).toMatchObject({ kind: 'failed', code: 'body-timeout', page: null });
    expect(await setup.files()).toEqual([]);
  });

  test('over the limit of the job is too large', async () => {
    const bytes = MEDIA_BUFFER_BYTES + 100_000;
    const outcomes = outcomesOf(
      await setup.run(['/large.jpg', '/large-chunked.jpg', '/large-gzip.jpg', '/endless.jpg'], {
        spec: { media: { bytes } },
      }),
    );
    expect(outcomes).toHaveLength(4);
    for (const outcome of outcomes) expect(outcome).toMatchObject({ kind: 'failed', code: 'too-large' });
  });

  test('of a type that the job does not take is not stored, whatever its header says', async () => {
    const media = { types: ['image/*'] };
    const paths = ['/page.jpg', '/large-page.jpg', '/noise.jpg', '/empty.jpg', '/small.jpg'];
    const outcomes = outcomesOf(await setup.run(paths, { spec: { media } }));
    expect(outcomes.map((outcome) => (outcome.kind === 'failed' ? outcome.detail : outcome.kind))).toEqual([
      'the media type is text/html',
      'the media type is text/html',
      'the media type is application/octet-stream',
      'the file is empty',
      'fetched',
    ]);
    for (const outcome of outcomes.slice(0, -1))
      expect(outcome).toMatchObject({ kind: 'failed', code: 'media-type', page: null });
    expect(await setup.files()).toEqual([keyOf(SMALL)]);
  });

  test('that may be anything may also be empty', async () => {
    const [page] = pagesOf(await setup.run(['/empty.jpg']));
    expect(page).toMatchObject({ bytes: 0, media: { key: keyOf(Buffer.alloc(0), 'bin') } });
  });
});

describe('a further visit', () => {
  const lastVisit = { etag: '"s1"', lastModified: null, sha256: sha256(SMALL) };

  test('that is answered with 304 is unchanged', async () => {
    const [outcome] = outcomesOf(await setup.run(['/unchanged.jpg'], { task: { lastVisit } }));
    expect(outcome).toMatchObject({ kind: 'unchanged', page: null });
    expect(setup.origin.requests.at(-1)?.head).toContain('if-none-match: "s1"');
  });

  test('that brings the same bytes is unchanged, and says where they are', async () => {
    const [outcome] = outcomesOf(await setup.run(['/small.jpg'], { task: { lastVisit } }));
    expect(outcome).toMatchObject({
      kind: 'unchanged',
      page: { media: { key: keyOf(SMALL) }, archive: null },
    });
    const large = { ...lastVisit, sha256: sha256(LARGE) };
    const [streamed] = outcomesOf(await setup.run(['/large.jpg'], { task: { lastVisit: large } }));
    expect(streamed).toMatchObject({ kind: 'unchanged', page: { media: { key: keyOf(LARGE) } } });
  });

  test('that brings other bytes is fetched', async () => {
    const task = { lastVisit: { ...lastVisit, sha256: 'ab'.repeat(32) } };
    expect(outcomesOf(await setup.run(['/small.jpg'], { task }))).toMatchObject([{ kind: 'fetched' }]);
  });
});

describe('on the way to an object', () => {
  test('a redirect is a page of its own', async () => {
    const [outcome] = outcomesOf(await setup.run(['/moved.jpg']));
    expect(outcome).toMatchObject({
      kind: 'redirected',
      to: `${setup.origin.url}/small.jpg`,
      page: { httpStatus: 302, media: null, archive: { offset: expect.any(Number) } },
    });
  });

  test('X-Robots-Tag is recorded, and obeyed when the job does', async () => {
    const paths = ['/noai.jpg', '/large-noai.jpg'];
    for (const page of pagesOf(await setup.run(paths)))
      expect(page).toMatchObject({ robotsTags: 'noai, noimageai', media: { member: null } });
    for await (const { key } of setup.blobs.list('')) await setup.blobs.delete(key);
    const politeness = { robotsTags: 'obey' } as const;
    for (const outcome of outcomesOf(await setup.run(paths, { spec: { politeness } })))
      expect(outcome).toMatchObject({
        kind: 'skipped',
        code: 'robots',
        detail: 'X-Robots-Tag: noai, noimageai',
      });
    expect(await setup.files()).toEqual([]);
  });
});

test('what cannot be stored goes back, and the report says why', async () => {
  const full = async (): Promise<never> => {
    throw new Error('the disk is full');
  };
  const blobs: Blobs = { ...setup.blobs, write: full, put: full };
  const parts = await setup.run(['/small.jpg', '/large.jpg'], { blobs });
  expect(outcomesOf(parts).map(({ kind }) => kind)).toEqual(['deferred', 'deferred']);
  // A machine that stands still reports in several parts.
  expect(parts.map(({ trouble }) => trouble)).toContain('cannot store a media file: the disk is full');
});
