import { mkdtemp, open, readFile, rename, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { FileWriter } from '../../../src/blobs/file-writer.ts';

let dir: string;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'seine-writer-'));
});
afterAll(() => rm(dir, { recursive: true, force: true }));

test('what the system writes in part is written on, from within a piece', async () => {
  const path = join(dir, 'temporary');
  const target = join(dir, 'blob');
  const handle = await open(path, 'wx');
  const writev = handle.writev.bind(handle);
  // As a nearly full disk does it: at most five bytes at a time.
  handle.writev = async (pieces, position) => {
    const few = Buffer.concat(pieces as readonly Uint8Array[]).subarray(0, 5);
    const { bytesWritten } = await writev([few], position);
    return { bytesWritten, buffers: pieces };
  };
  const writer = new FileWriter({ handle, path, dir, sync: false, publish: () => rename(path, target) });
  const pieces = ['the first', '', ' and a second', ' and a third piece'].map((text) => Buffer.from(text));
  await writer.append(pieces);
  await writer.append(Buffer.from(', then one alone'));
  await writer.commit();
  expect(await readFile(target, 'utf8')).toBe('the first and a second and a third piece, then one alone');
});
