import { expect, test } from 'vitest';
import { DiskPace } from '../../../src/blobs/folder-blobs.ts';

const asked = (pace: DiskPace, times: number) => Array.from({ length: times }, () => pace.isQuick());

test('a disk that makes callers wait is left to the thread pool, and looked at now and then', () => {
  const pace = new DiskPace();
  for (let n = 0; n < 100; n++) pace.note(0.1);
  expect(asked(pace, 100)).not.toContain(false);
  // One pause of the machine is no slow disk.
  pace.note(15);
  expect(pace.isQuick()).toBe(true);
  for (let n = 0; n < 20; n++) pace.note(10);
  expect(asked(pace, 64).filter((isQuick) => isQuick)).toHaveLength(2);
  for (let n = 0; n < 40; n++) pace.note(0.1);
  expect(asked(pace, 10)).not.toContain(false);
});
