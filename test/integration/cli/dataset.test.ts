import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import sharp from 'sharp';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { AWS_ITSELF } from '../../../src/aws/s3/s3-client.ts';
import { openFolderBlobs } from '../../../src/blobs/folder-blobs.ts';
import { type ImageChange, openImageReader } from '../../../src/cli/export/dataset-image.ts';
import { openDestination } from '../../../src/cli/export/destination.ts';
import { StoredMedia } from '../../../src/cli/export/stored-media.ts';
import { writeDataset } from '../../../src/cli/export/write-dataset.ts';
import type { TaskRow } from '../../../src/core/model.ts';
import type { Blobs } from '../../../src/ports/blobs.ts';
import { openMediaWriter } from '../../../src/worker/media/media-writer.ts';
import { openDuckDb } from '../../support/duckdb.ts';
import { temporaryFolder } from '../../support/fixtures.ts';

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let duck: Awaited<ReturnType<typeof openDuckDb>>;
let blobs: Blobs;
let wide: Buffer;
let rows: TaskRow[];

beforeAll(async () => {
  folder = await temporaryFolder();
  duck = await openDuckDb();
  blobs = await openFolderBlobs(folder.dir, { sync: false });
  const colour = { r: 200, g: 30, b: 90 };
  wide = await sharp({ create: { width: 80, height: 40, channels: 3, background: colour } })
    .jpeg()
    .toBuffer();
  const tall = await sharp({ create: { width: 30, height: 60, channels: 3, background: colour } })
    .png()
    .toBuffer();
  const stored = await store('none', [wide, tall]);
  const packed = await store('webdataset', [wide, tall, wide.subarray(0, wide.length - 40)]);
  rows = [
    rowOf(0, stored[0]!, { caption: 'wide "one"', license: 'cc0' }),
    rowOf(1, null, { caption: 'gone' }),
    // The same bytes as the first, and a sample of its own.
    rowOf(2, packed[0]!, { caption: 'wide again' }),
    rowOf(3, packed[1]!, { caption: null, width: 'of the list' }),
    rowOf(4, packed[2]!, { caption: 'cut off' }),
    rowOf(5, stored[1]!, { caption: 'tall' }),
  ];
});

afterAll(async () => {
  duck.close();
  await blobs.close();
  await folder.remove();
});

interface Stored {
  ref: NonNullable<TaskRow['media']>;
  sha256: string;
  bytes: number;
}

async function store(pack: 'none' | 'webdataset', objects: Buffer[]): Promise<Stored[]> {
  const writer = openMediaWriter(blobs, pack, `shards/${pack}.tar`);
  const refs: Stored[] = [];
  for (const bytes of objects) {
    const [sha256, md5] = ['sha256', 'md5'].map((name) => createHash(name).update(bytes).digest('hex'));
    const extension = bytes[0] === 0xff ? 'jpg' : 'png';
    const item = {
      bytes,
      sha256: sha256!,
      md5: md5!,
      extension,
      at: 0,
      about: { url: 'https://img.example/' },
      onStored() {},
    };
    refs.push({ ref: await writer.put(item), sha256: sha256!, bytes: bytes.length });
  }
  await writer.commit();
  return refs;
}

function rowOf(number: number, stored: Stored | null, meta: TaskRow['meta']): TaskRow {
  return {
    url: `https://img.example/${number}`,
    state: stored ? 'done' : 'dead',
    httpStatus: stored ? 200 : 404,
    failureCode: stored ? null : 'not-found',
    failureDetail: null,
    attempts: 1,
    bytes: stored?.bytes ?? null,
    sha256: stored?.sha256 ?? null,
    contentType: stored ? 'image/jpeg' : null,
    archive: null,
    media: stored?.ref ?? null,
    shots: [],
    robotsTags: null,
    redirectTo: null,
    depth: 0,
    priority: 0,
    route: 'image',
    host: 'img.example',
    revisitSeconds: null,
    fetchedAt: '2026-03-01T00:00:00.000Z',
    meta,
  };
}

async function write(name: string, change: ImageChange | null, captionColumn: string | null = 'caption') {
  const into = join(folder.dir, name);
  mkdirSync(into);
  const read = async function* () {
    yield* rows;
  };
  const counts = await writeDataset(
    read,
    {
      media: new StoredMedia(blobs),
      readImage: await openImageReader(change),
      open: (file) => openDestination(join(into, file), new PassThrough(), AWS_ITSELF),
    },
    { shardSize: 2, captionColumn, parallel: 3 },
  );
  const unpacked = join(into, 'unpacked');
  mkdirSync(unpacked);
  const tars = readdirSync(into).filter((file) => file.endsWith('.tar'));
  for (const tar of tars) execFileSync('tar', ['-xf', join(into, tar), '-C', unpacked]);
  return { counts, into, unpacked, files: readdirSync(unpacked).sort() };
}

test('a data set has numbered shards, one sample a row, captions, and an index with every column', async () => {
  const { counts, into, unpacked, files } = await write('plain', null);
  expect(counts).toEqual({ shards: 2, samples: 4, failed: 2 });
  expect(readdirSync(into).sort()).toEqual([
    '00000.parquet',
    '00000.tar',
    '00001.parquet',
    '00001.tar',
    'unpacked',
  ]);
  expect(files).toEqual([
    ...['000000.jpg', '000000.json', '000000.txt', '000001.jpg', '000001.json', '000001.txt'],
    ...['000010.json', '000010.png', '000011.json', '000011.png', '000011.txt'],
  ]);
  expect(execFileSync('cat', [join(unpacked, '000001.jpg')])).toEqual(wide);
  expect(execFileSync('cat', [join(unpacked, '000000.txt')], { encoding: 'utf8' })).toBe('wide "one"');
  const index = await duck.rows(
    `SELECT key, url, status, error, caption, width::INT AS width, height::INT AS height, "meta.license" AS license,
       "meta.width" AS listed FROM '${into}/*.parquet' ORDER BY url`,
  );
  const none = { license: null, listed: null };
  expect(index).toMatchObject([
    { key: '000000', status: 'success', caption: 'wide "one"', width: 80, height: 40, license: 'cc0' },
    { key: null, status: 'failed', error: 'not-found', caption: 'gone', width: null, ...none },
    { key: '000001', status: 'success', caption: 'wide again', width: 80, height: 40, ...none },
    { key: '000010', status: 'success', caption: null, width: 30, height: 60, listed: 'of the list' },
    { key: null, status: 'failed', error: expect.stringContaining('corrupt-media'), width: null, ...none },
    { key: '000011', status: 'success', caption: 'tall', width: 30, height: 60, ...none },
  ]);
});

test('images are resized and encoded where that is asked for', async () => {
  const change: ImageChange = { size: 20, mode: 'crop', encoding: 'webp', quality: 80 };
  const { unpacked, files, into } = await write('resized', change);
  const images = files.filter((file) => file.endsWith('.webp'));
  expect(images).toEqual(['000000.webp', '000001.webp', '000010.webp', '000011.webp']);
  expect(await sharp(join(unpacked, images[0]!)).metadata()).toMatchObject({
    format: 'webp',
    width: 20,
    height: 20,
  });
  const [first] = await duck.rows(
    `SELECT width::INT AS width, "originalWidth"::INT AS before FROM '${into}/00000.parquet' WHERE key = '000000'`,
  );
  expect(first).toEqual({ width: 20, before: 80 });
});

test('a caption column that no row has is named, with those there are', async () => {
  await expect(write('wrong', null, 'captoin')).rejects.toMatchObject({
    message: "no row has a column 'captoin'",
    hint: 'choose one of caption, license, width',
  });
});

test('a shard that cannot be read leaves no half of a data set', async () => {
  const kept = rows;
  rows = [rowOf(0, { ref: { key: 'media/00/none.jpg', md5: '', member: null }, sha256: '', bytes: 1 }, null)];
  await expect(write('broken', null, null)).rejects.toThrow('is missing');
  rows = kept;
  expect(readdirSync(join(folder.dir, 'broken'))).toEqual([]);
});
