import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { TAR_END } from '../../../../src/core/media/tar.ts';
import type { Blobs } from '../../../../src/ports/blobs.ts';
import { MEDIA_BUFFER_BYTES } from '../../../../src/worker/media/media-intake.ts';
import { type RawHandler, reply, sends } from '../../../support/servers/raw-origin.ts';
import {
  type MediaSetup,
  md5,
  openMediaSetup,
  outcomesOf,
  pagesOf,
  pictureOf,
  sha256,
} from '../../../support/worker/media-setup.ts';

const run = promisify(execFile);
/** Some are copied and some are written as they are; together they are more than is written at once. */
const PICTURES = Array.from({ length: 40 }, (_, at) => pictureOf(at, 1_000 + at * 1_777));
const LARGE = pictureOf(99, MEDIA_BUFFER_BYTES + 1);
const JSON_DATA = Buffer.from('{"n": 1}');
const SVG = Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>');

const handlers: Record<string, RawHandler> = {
  '/large.jpg': sends(reply('200 OK', [], LARGE)),
  '/data.json': sends(reply('200 OK', ['Content-Type: application/json'], JSON_DATA)),
  '/drawing': sends(reply('200 OK', ['Content-Type: image/svg+xml'], SVG)),
  '/page': sends(reply('200 OK', ['Content-Type: text/html'], '<title>a page</title>')),
  '/slow.jpg': (socket) => {
    // Longer than outcomes wait for the rest of their batch, so that they leave in several parts.
    const timer = setTimeout(() => socket.write(reply('200 OK', [], PICTURES[0])), 2_000);
    socket.on('close', () => clearTimeout(timer));
  },
};
for (const [at, picture] of PICTURES.entries())
  handlers[`/${at}.jpg`] = sends(reply('200 OK', ['Content-Type: image/jpeg'], picture));

const spec = { media: { pack: 'webdataset' as const } };
const paths = PICTURES.map((_, at) => `/${at}.jpg`);

let setup: MediaSetup;
beforeAll(async () => {
  setup = await openMediaSetup(handlers);
});
afterEach(async () => {
  for await (const { key } of setup.blobs.list('')) await setup.blobs.delete(key);
});
afterAll(() => setup.close());

async function memberOf(key: string, member: string): Promise<Buffer> {
  const { stdout } = await run('tar', ['xOf', join(setup.dir, key), member], {
    encoding: 'buffer',
    maxBuffer: 1024 ** 3,
  });
  return stdout;
}

describe('a shard', () => {
  test('holds the objects of a batch, each with its JSON, for tar and for Python', async () => {
    const meta = { caption: 'Grüße\n"x"' };
    const pages = pagesOf(await setup.run([...paths, '/drawing'], { spec, task: { meta } }));
    const [key] = new Set(pages.map(({ media }) => media?.key));
    expect(key).toMatch(/^shards\/test-1\/\d+-0\.tar$/);
    expect(await setup.files()).toEqual([key]);
    const shard = await setup.blobs.read(key!);
    expect(shard!.length % 512).toBe(0);
    expect(shard!.subarray(-1_024).equals(TAR_END)).toBe(true);
    const { stdout } = await run('tar', ['tf', join(setup.dir, key!)]);
    const names = stdout.trimEnd().split('\n');
    // Each object is followed by what is known of it, under the same name.
    expect(names.filter((_, at) => at % 2 === 1)).toEqual(
      names.filter((_, at) => at % 2 === 0).map((name) => name.replace(/\.\w+$/, '.json')),
    );
    expect(new Set(names.filter((name) => !name.endsWith('.json')))).toEqual(
      new Set([...PICTURES.map((picture) => `${sha256(picture)}.jpg`), `${sha256(SVG)}.svg`]),
    );
    for (const at of [0, 7, 39]) {
      const picture = PICTURES[at]!;
      expect(pages[at]!.media).toEqual({ key, md5: md5(picture), member: `${sha256(picture)}.jpg` });
      expect((await memberOf(key!, pages[at]!.media!.member!)).equals(picture)).toBe(true);
      expect(JSON.parse((await memberOf(key!, `${sha256(picture)}.json`)).toString())).toEqual({
        key: sha256(picture),
        url: `${setup.origin.url}/${at}.jpg`,
        sha256: sha256(picture),
        md5: md5(picture),
        bytes: picture.length,
        contentType: 'image/jpeg',
        fetchedAt: expect.stringMatching(/^20\d\d-.*Z$/),
        meta,
      });
    }
    expect(await hashesByPython(key!)).toEqual(
      Object.fromEntries([
        ...PICTURES.map((picture) => [`${sha256(picture)}.jpg`, sha256(picture)]),
        [`${sha256(SVG)}.svg`, sha256(SVG)],
      ]),
    );
  });

  test('has the same bytes once, whichever URLs they came from', async () => {
    const pages = pagesOf(await setup.run(['/1.jpg', '/1.jpg?again', '/1.jpg?more', '/2.jpg'], { spec }));
    expect(new Set(pages.slice(0, 3).map(({ media }) => media?.member)).size).toBe(1);
    const { stdout } = await run('tar', ['tf', join(setup.dir, pages[0]!.media!.key)]);
    expect(stdout.trimEnd().split('\n')).toHaveLength(4);
  });

  test('keeps an object of JSON apart from what is said of it', async () => {
    const [page] = pagesOf(await setup.run(['/data.json'], { spec }));
    const { key, member } = page!.media!;
    const { stdout } = await run('tar', ['tf', join(setup.dir, key)]);
    expect(stdout.trimEnd().split('\n')).toEqual([
      `${sha256(JSON_DATA)}.data.json`,
      `${sha256(JSON_DATA)}.json`,
    ]);
    expect(await memberOf(key, member!)).toEqual(JSON_DATA);
  });

  test('has no page that came in the place of a file, unless the job takes pages', async () => {
    expect(outcomesOf(await setup.run(['/page'], { spec }))).toMatchObject([
      { kind: 'failed', code: 'media-type', detail: 'the media type is text/html' },
    ]);
    const pages = { media: { pack: 'webdataset' as const, types: ['text/html'] } };
    expect(pagesOf(await setup.run(['/page'], { spec: pages }))).toHaveLength(1);
  });

  test('has no room for what is too large for memory: that is a blob of its own', async () => {
    const [large, small] = pagesOf(await setup.run(['/large.jpg', '/1.jpg'], { spec }));
    expect(large!.media).toMatchObject({ key: expect.stringMatching(/^media\//), member: null });
    expect(small!.media).toMatchObject({ key: expect.stringMatching(/^shards\//) });
    expect((await setup.blobs.read(large!.media!.key))?.equals(LARGE)).toBe(true);
  });

  test('is not written for bytes that are known from the last visit', async () => {
    const lastVisit = { etag: null, lastModified: null, sha256: sha256(PICTURES[1]!) };
    const outcomes = outcomesOf(await setup.run(['/1.jpg'], { spec, task: { lastVisit } }));
    expect(outcomes).toMatchObject([{ kind: 'unchanged', page: null }]);
    expect(await setup.files()).toEqual([]);
  });

  test('is complete before the part of the report that names it leaves', async () => {
    const parts = await setup.run(['/slow.jpg', ...paths], { spec });
    const shards = parts.map((part) => new Set(pagesOf([part]).map(({ media }) => media!.key)));
    const named = shards.filter(({ size }) => size > 0);
    expect(named.length).toBeGreaterThan(1);
    expect(named.map(({ size }) => size)).toEqual(named.map(() => 1));
    expect(new Set(named.flatMap((keys) => [...keys])).size).toBe(named.length);
    for (const part of parts) {
      for (const page of pagesOf([part])) {
        const { key, member } = page.media!;
        expect(key).toMatch(/-\d+\.tar$/);
        expect(sha256(await memberOf(key, member!))).toBe(page.sha256);
      }
    }
  });
});

describe('when it cannot be written', () => {
  const spec = {
    media: { pack: 'webdataset' as const },
    routes: [
      { name: 'page', match: '/page' },
      { name: 'media', kind: 'media' as const },
    ],
  };
  const failingBelow = (prefix: string): Blobs => ({
    ...setup.blobs,
    write: (key) => (key.startsWith(prefix) ? Promise.reject(new Error('no space')) : setup.blobs.write(key)),
  });

  test('its objects are not done, and pages are', async () => {
    const parts = await setup.run(['/1.jpg', '/page', '/large.jpg'], {
      spec,
      blobs: failingBelow('shards/'),
    });
    const [picture, page, large] = outcomesOf(parts);
    expect(picture).toMatchObject({ kind: 'deferred' });
    // A machine that stands still reports in several parts.
    expect(parts.map(({ trouble }) => trouble)).toContain('cannot write the shard: no space');
    expect(parts.filter(({ pack }) => pack !== null)).toEqual([]);
    expect(page).toMatchObject({ kind: 'fetched', page: { archive: { offset: expect.any(Number) } } });
    expect(large).toMatchObject({ kind: 'fetched', page: { media: { member: null } } });
  });

  test('and neither the other way round', async () => {
    const parts = await setup.run(['/1.jpg', '/page'], { spec, blobs: failingBelow('warc/') });
    const [picture, page] = outcomesOf(parts);
    expect(page).toMatchObject({ kind: 'deferred' });
    expect(parts.map(({ trouble }) => trouble)).toContain('cannot write the archive: no space');
    expect(picture).toMatchObject({ kind: 'fetched' });
    expect(parts.filter(({ archive }) => archive !== null)).toEqual([]);
    expect(await setup.files()).toHaveLength(1);
  });
});

/** What Python's tarfile reads: the hash of each member but the JSON. */
async function hashesByPython(key: string): Promise<Record<string, string>> {
  const script = `
import hashlib, json, sys, tarfile
found = {}
with tarfile.open(sys.argv[1], 'r:') as tar:
    for member in tar:
        assert member.isfile() and member.mode == 0o644, member
        data = tar.extractfile(member).read()
        if member.name.endswith('.json'): assert json.loads(data)['sha256'] == member.name[:64]
        else: found[member.name] = hashlib.sha256(data).hexdigest()
print(json.dumps(found))`;
  const { stdout } = await run('python3', ['-c', script, join(setup.dir, key)]);
  return JSON.parse(stdout);
}
