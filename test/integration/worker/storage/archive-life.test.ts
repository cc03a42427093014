import { randomBytes } from 'node:crypto';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openFolderBlobs } from '../../../../src/blobs/folder-blobs.ts';
import { SeineError } from '../../../../src/core/errors.ts';
import type { Blobs } from '../../../../src/ports/blobs.ts';
import {
  ARCHIVE_BUFFER_BYTES,
  type ArchivePage,
  openArchive,
} from '../../../../src/worker/storage/archive.ts';
import { readPage } from '../../../../src/worker/storage/read-page.ts';

const INFO = { software: 'Seine/test', job: 'shop', date: Date.UTC(2026, 0, 5) };
const KEY = 'archive/shop/batch-1.warc.gz';

let root: string;
let folders = 0;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'seine-archive-'));
});
afterAll(() => rm(root, { recursive: true, force: true }));

async function fresh(): Promise<{ dir: string; blobs: Blobs }> {
  const dir = join(root, String(folders++));
  return { dir, blobs: await openFolderBlobs(dir) };
}

describe('the life of an archive', () => {
  const page: ArchivePage = {
    url: 'https://shop.example/',
    date: INFO.date,
    status: 200,
    statusText: 'OK',
    rawHeaders: ['Content-Type', 'text/html'],
    wireBody: Buffer.from('<p>hello</p>'),
  };

  test('nothing appended: no blob, and null', async () => {
    const { dir, blobs } = await fresh();
    expect(await openArchive(blobs, KEY, INFO).commit()).toBeNull();
    expect(await readdir(dir)).toEqual([]);
  });

  test('without commit nothing is ever under the key', async () => {
    const { dir, blobs } = await fresh();
    const abandoned = openArchive(blobs, KEY, INFO);
    for (let i = 0; i < 6; i++) {
      abandoned.append({ ...page, wireBody: randomBytes(ARCHIVE_BUFFER_BYTES) });
    }
    await abandoned.pressure();
    expect(await readdir(join(dir, '.tmp'))).toHaveLength(1);
    expect(await blobs.read(KEY)).toBeNull();
    await abandoned.abort();
    await abandoned.abort();
    expect(await blobs.read(KEY)).toBeNull();
    expect(await readdir(join(dir, '.tmp'))).toEqual([]);
    expect(() => abandoned.append(page)).toThrow(/closed/);
  });

  test('abort before anything was written opens no blob', async () => {
    const { dir, blobs } = await fresh();
    const archive = openArchive(blobs, KEY, INFO);
    archive.append(page);
    await archive.abort();
    expect(await readdir(dir)).toEqual([]);
  });

  test('a second archive of the same key replaces the first whole', async () => {
    const { blobs } = await fresh();
    const first = openArchive(blobs, KEY, INFO);
    first.append(page);
    first.append(page);
    await first.commit();
    const second = openArchive(blobs, KEY, INFO);
    const place = second.append(page);
    const done = await second.commit();
    expect(done?.bytes).toBe(place.offset + place.length);
    expect((await blobs.read(KEY))?.length).toBe(done?.bytes);
  });

  test.each(['write', 'append', 'commit'] as const)(
    'trouble in %s shows at commit and leaves nothing',
    async (where) => {
      const { dir, blobs } = await fresh();
      const full = new SeineError('the disk is full');
      const failing: Blobs = {
        ...blobs,
        async write(key) {
          if (where === 'write') throw full;
          const writer = await blobs.write(key);
          return {
            size: 0,
            append: where === 'append' ? () => Promise.reject(full) : (bytes) => writer.append(bytes),
            commit: () => Promise.reject(full),
            abort: () => writer.abort(),
          };
        },
      };
      const archive = openArchive(failing, KEY, INFO);
      for (let i = 0; i < 4; i++)
        archive.append({ ...page, wireBody: randomBytes(ARCHIVE_BUFFER_BYTES / 2) });
      // Long enough for a rejection that nobody handles to be noticed, which would fail the run.
      await new Promise((resolve) => setImmediate(resolve));
      archive.append(page);
      await expect(archive.commit()).rejects.toBe(full);
      expect(await blobs.read(KEY)).toBeNull();
      expect(await readdir(join(dir, '.tmp')).catch(() => [])).toEqual([]);
    },
  );

  test('a slow blob asks for patience, and pages still come out in order', async () => {
    const { blobs } = await fresh();
    let open = () => {};
    const gate = new Promise<void>((resolve) => {
      open = resolve;
    });
    const slow: Blobs = {
      ...blobs,
      async write(key) {
        await gate;
        return blobs.write(key);
      },
    };
    const archive = openArchive(slow, KEY, INFO);
    expect(archive.pressure()).toBeNull();
    const bodies = Array.from({ length: 8 }, () => randomBytes(ARCHIVE_BUFFER_BYTES));
    const places = bodies.map((wireBody) => archive.append({ ...page, wireBody }));
    const pressure = archive.pressure();
    expect(pressure).toBeInstanceOf(Promise);
    open();
    await pressure;
    expect(archive.pressure()).toBeNull();
    await archive.commit();
    for (const [i, body] of bodies.entries()) {
      expect((await readPage(blobs, { key: KEY, ...places[i]! })).body.equals(body)).toBe(true);
    }
  });
});
