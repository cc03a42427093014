import { expect, test } from 'vitest';
import { StoreRoom } from '../../../../src/coordinator/storage/store-room.ts';
import { StorageFullError } from '../../../../src/core/errors.ts';

const CLOCK = { now: () => 0 };
const FULL = new StorageFullError('the disk of /data is full');

test('a run that is asked to stop does not wait for room any longer', async () => {
  const warnings: string[] = [];
  const room = new StoreRoom({ clock: CLOCK, logger: { warn: (text) => void warnings.push(text) } });
  const waiting = [1, 2].map(() => room.retry(() => Promise.reject(FULL)));
  const results = Promise.allSettled(waiting);
  await new Promise((resolve) => setImmediate(resolve));
  room.stopWaiting();
  expect(await results).toEqual([
    { status: 'rejected', reason: FULL },
    { status: 'rejected', reason: FULL },
  ]);
  expect(await room.orNothing(() => Promise.reject(FULL), 'nothing')).toBe('nothing');
  expect(warnings).toContain('the disk of /data is full; waiting until there is room');
});

test('other failures are not waited for', async () => {
  const room = new StoreRoom({ clock: CLOCK, logger: { warn: () => {} } });
  const broken = new Error('the file is no database');
  await expect(room.retry(() => Promise.reject(broken))).rejects.toBe(broken);
  await expect(room.orNothing(() => Promise.reject(broken), null)).rejects.toBe(broken);
});
