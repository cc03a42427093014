import { createHash, randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { openFolderBlobs } from '../../../../src/blobs/folder-blobs.ts';
import { SeineError } from '../../../../src/core/errors.ts';
import type { Blobs } from '../../../../src/ports/blobs.ts';
import { openMediaWriter } from '../../../../src/worker/media/media-writer.ts';

let root: string;
let blobs: Blobs;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'seine-media-'));
  blobs = await openFolderBlobs(root);
});
afterAll(() => rm(root, { recursive: true, force: true }));

function itemOf(bytes: Buffer, onStored: () => void) {
  const [sha256, md5] = ['sha256', 'md5'].map((name) => createHash(name).update(bytes).digest('hex'));
  return { bytes, sha256: sha256!, md5: md5!, extension: 'jpg', at: 0, about: {}, onStored };
}

describe.each(['none', 'webdataset'] as const)('packed as %s', (pack) => {
  test('an object is stored as it was, though its memory is used again once it is told to be stored', async () => {
    const writer = openMediaWriter(blobs, pack, 'again.tar');
    const stored: Buffer[] = [];
    const about: string[] = [];
    const free: Buffer[] = [];
    let blocks = 0;
    let waiting = 0;
    // The first is small enough to be copied. Of the next there are so many in a piece that what stands between them grows.
    const sizes = [900, ...Array(200).fill(17_000), ...Array(60).fill(100_000)] as number[];
    for (const bytes of sizes) {
      const block = free.pop() ?? Buffer.alloc(100_000);
      if (block.every((byte) => byte === 0)) blocks++;
      const body = block.subarray(0, bytes);
      randomBytes(bytes).copy(body);
      stored.push(Buffer.from(body));
      const item = itemOf(body, () => free.push(block));
      about.push(`${item.sha256}.jpg`, `"number":${stored.length}}`);
      await writer.put({ ...item, about: { number: stored.length } });
      // More than a piece of a shard, so that some of it is written.
      waiting += bytes;
      if (waiting < 1_500_000) continue;
      await vi.waitUntil(() => free.length > 0);
      waiting = 0;
    }
    const last = stored.at(-1)!;
    let isToldAgain = false;
    await writer.put(
      itemOf(Buffer.from(last), () => {
        isToldAgain = true;
      }),
    );
    expect(isToldAgain).toBe(true);
    await writer.commit();
    expect(blocks).toBeLessThan(sizes.length / 2);
    const kept = await all();
    const isKept = (bytes: Buffer | string) => kept.some((blob) => blob.includes(bytes));
    expect(stored.filter((body) => !isKept(body)).length).toBe(0);
    if (pack === 'webdataset') expect(about.filter((text) => !isKept(text))).toEqual([]);
  });

  test('nothing is told to be stored where storing fails', async () => {
    const full = new SeineError('the disk is full');
    const fails = () => Promise.reject(full);
    const failing: Blobs = {
      ...blobs,
      put: fails,
      write: async () => ({ size: 0, append: fails, commit: fails, abort: async () => {} }),
    };
    const writer = openMediaWriter(failing, pack, 'fails.tar');
    let told = 0;
    const puts = Array.from({ length: 30 }, async () =>
      writer.put(itemOf(randomBytes(100_000), () => void told++)),
    );
    await Promise.allSettled(puts);
    if (pack === 'webdataset') await expect(writer.commit()).rejects.toBe(full);
    expect(told).toBe(0);
  });
});

async function all(): Promise<Buffer[]> {
  const found: Buffer[] = [];
  for await (const { key } of blobs.list('')) found.push((await blobs.read(key))!);
  return found;
}
