import { chmod, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { flagsOf } from '../../../../../src/fetch/browser/process/chromium-flags.ts';
import { fitsSharedMemory } from '../../../../../src/fetch/browser/process/shared-memory.ts';

let folder: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'seine-shared-'));
});

afterAll(() => rm(folder, { recursive: true }));

test('memory is shared where there is room for each tab', async () => {
  await chmod(folder, 0o777);
  expect(await fitsSharedMemory(0, folder)).toBe(true);
  expect(await fitsSharedMemory(1e9, folder)).toBe(false);
});

test('memory is not shared where others may not, or where there is none', async () => {
  await chmod(folder, 0o770);
  expect(await fitsSharedMemory(0, folder)).toBe(false);
  expect(await fitsSharedMemory(0, join(folder, 'missing'))).toBe(false);
});

test('Chromium is told to share in files where memory has no room', () => {
  const options = { folder: '/tmp/x', proxyUrl: 'http://127.0.0.1:1', sandbox: true, isAlone: false };
  const flag = '--disable-dev-shm-usage';
  expect(flagsOf({ ...options, sharesInMemory: false })).toContain(flag);
  expect(flagsOf({ ...options, sharesInMemory: true })).not.toContain(flag);
});
