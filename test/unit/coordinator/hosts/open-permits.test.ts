import { expect, test } from 'vitest';
import { OpenPermits } from '../../../../src/coordinator/hosts/open-permits.ts';
import type { Permit } from '../../../../src/core/batch/batch.ts';

const permit: Permit = { host: 'a.example', startAt: 0, endAt: 1_000, gapMs: 0, parallel: 4 };
const HEALTH = { failuresInRow: 0, rests: 0, pace: null };

function open(isShared: boolean) {
  const permits = new OpenPermits({ isShared });
  const woken: string[] = [];
  const wakes = new Map(['one', 'two', 'three'].map((name) => [name, () => void woken.push(name)]));
  const waitAs = (name: string, host = permit.host) => permits.wakeOnRelease(host, wakes.get(name)!);
  return { permits, woken, waitAs };
}

test('a permit that comes back wakes those that waited longest for the host, each once', () => {
  const { permits, woken, waitAs } = open(true);
  for (let count = 0; count < 3; count++) permits.grant(permit, HEALTH);
  for (const name of ['one', 'two', 'one', 'three']) waitAs(name);
  waitAs('three', 'other.example');
  permits.release(permit, 0);
  expect(woken).toEqual(['one', 'two']);
  permits.release(permit, 0);
  expect(woken).toEqual(['one', 'two', 'three']);
  permits.release(permit, 0);
  expect(woken).toHaveLength(3);
});

test('nothing is kept of hosts that have no permits out, or where there is one job', () => {
  const { permits, woken, waitAs } = open(true);
  waitAs('one');
  permits.grant(permit, HEALTH);
  permits.release(permit, 0);
  expect(woken).toEqual([]);
  const alone = open(false);
  alone.permits.grant(permit, HEALTH);
  alone.waitAs('one');
  alone.permits.release(permit, 0);
  expect(alone.woken).toEqual([]);
});
