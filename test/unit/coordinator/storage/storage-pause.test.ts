import { describe, expect, test } from 'vitest';
import { StoragePause } from '../../../../src/coordinator/storage/storage-pause.ts';
import { StorageFullError } from '../../../../src/core/errors.ts';

/** Storage that works or fails as the test says, under the test's clock. */
function setup() {
  const time = { now: 1_000_000 };
  const warnings: string[] = [];
  const disk = { free: null as number | null, failure: null as Error | null, probes: 0, blobs: 0 };
  const storage = new StoragePause({
    clock: { now: () => time.now },
    logger: { warn: (text) => void warnings.push(text) },
    blobs: {
      async put() {
        disk.probes++;
        if (disk.failure) throw disk.failure;
        disk.blobs++;
      },
      async delete() {
        disk.blobs--;
      },
    },
    diskFree: async () => disk.free,
    diskFreeBytes: 1_000,
  });
  const later = async (ms: number) => {
    time.now += ms;
    await storage.look();
  };
  return { storage, disk, warnings, later };
}

const FULL = { trouble: 'cannot write the archive: the disk is full', storageFull: true, final: true };
const BROKEN = { trouble: 'cannot write the archive: S3 keeps failing', final: true };
const FINE = { trouble: null, final: true };
const ALL = Number.POSITIVE_INFINITY;

describe('storage that fails', () => {
  test('nothing is sent until a blob can be stored, then one batch, then everything', async () => {
    const { storage, disk, warnings, later } = setup();
    expect(storage).toMatchObject({ isOn: false, batchesMax: ALL, reason: null });
    disk.failure = new StorageFullError('the disk is full');
    storage.onReport(FULL);
    storage.onReport(FULL);
    expect(storage).toMatchObject({
      isOn: true,
      batchesMax: 0,
      reason: 'cannot write the archive since 0 s: the disk is full',
    });
    await later(999);
    expect(disk.probes).toBe(0);
    await later(1);
    expect(disk.probes).toBe(1);
    expect(storage.batchesMax).toBe(0);
    disk.failure = null;
    await later(10_000);
    expect(storage).toMatchObject({ isOn: false, batchesMax: 1 });
    expect(disk.blobs).toBe(0);
    storage.onReport({ trouble: null, final: false });
    expect(storage.batchesMax).toBe(1);
    storage.onReport(FINE);
    expect(storage).toMatchObject({ batchesMax: ALL, reason: null });
    expect(warnings).toEqual([
      `${FULL.trouble}; waiting until there is room`,
      'results can be stored again, after 11 s',
    ]);
  });

  test('lack of room is waited for without end, and looked at every ten seconds at least', async () => {
    const { storage, disk, warnings, later } = setup();
    disk.failure = new StorageFullError('the disk is full');
    storage.onReport(FULL);
    for (let i = 0; i < 400; i++) await later(10_000);
    expect(storage).toMatchObject({ isOn: true, troublesInRow: 0 });
    expect(disk.probes).toBeGreaterThan(390);
    expect(warnings).toHaveLength(1);
    disk.failure = null;
    await later(10_000);
    expect(storage.batchesMax).toBe(1);
  });

  test('a batch that fails though a blob could be stored makes the next pause longer', async () => {
    const { storage, disk, later } = setup();
    const probesIn = async (ms: number) => {
      const before = disk.probes;
      await later(ms);
      return disk.probes - before;
    };
    storage.onReport(FULL);
    for (const pause of [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]) {
      expect(await probesIn(pause - 1)).toBe(0);
      expect(await probesIn(1)).toBe(1);
      storage.onReport(FULL);
    }
    expect(storage.troublesInRow).toBe(0);
  });

  test('other trouble counts, so that somebody looks', async () => {
    const { storage, disk, warnings, later } = setup();
    disk.failure = new Error('access denied');
    storage.onReport(BROKEN);
    for (let i = 0; i < 3; i++) await later(60_000);
    expect(storage).toMatchObject({
      troublesInRow: 4,
      reason: 'cannot store a blob since 3 min: access denied',
    });
    expect(warnings.at(-1)).toBe('cannot store a blob: access denied; waiting 8 s');
    disk.failure = null;
    await later(60_000);
    storage.onReport(FINE);
    expect(storage).toMatchObject({ troublesInRow: 0, batchesMax: ALL });
  });
});

test('a disk that is nearly full is waited for', async () => {
  const { storage, disk, warnings, later } = setup();
  disk.free = 999;
  await later(1);
  await later(1);
  expect(storage).toMatchObject({ isOn: true, batchesMax: 0, troublesInRow: 0 });
  expect(storage.reason).toBe(
    'only 999 bytes free on the disk, less than limits.diskFreeBytes (1000) since 0 s',
  );
  disk.free = 1_000;
  await later(1);
  expect(storage).toMatchObject({ isOn: false, batchesMax: ALL, reason: null });
  expect(warnings).toEqual([
    'only 999 bytes free on the disk, less than limits.diskFreeBytes (1000); waiting until there is room',
    'there is room on the disk again',
  ]);
});
