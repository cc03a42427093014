import { expect, test } from 'vitest';
import { OpenPermits } from '../../../../src/coordinator/hosts/open-permits.ts';
import { NO_BAN } from '../../../../src/core/bans/bans.ts';
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

test('of a permit that was given back, only what is under way counts, until it comes back', () => {
  const { permits, woken, waitAs } = open(true);
  const [given, kept] = [{ ...permit }, { ...permit }];
  permits.grant(given, HEALTH);
  permits.grant(kept, HEALTH);
  for (const name of ['one', 'two', 'three']) waitAs(name);
  permits.ease(given, 3);
  expect(permits.load(permit.host)).toMatchObject({ permits: 1, parallel: 7 });
  expect(woken).toEqual(['one', 'two', 'three']);
  permits.ease(given, 1);
  // It was overtaken by the one before.
  permits.ease(given, 2);
  expect(permits.load(permit.host)).toMatchObject({ permits: 1, parallel: 5 });
  expect(permits.release(kept, 10)).toBeNull();
  expect(permits.load(permit.host)).toMatchObject({ permits: 0, parallel: 1 });
  expect(permits.release(given, 0)).toBe(10);
  expect(permits.size).toBe(0);
});

test('what is said of a permit can only make it smaller', () => {
  const { permits } = open(true);
  const [given, kept] = [{ ...permit }, { ...permit }];
  permits.grant(given, HEALTH);
  permits.grant(kept, HEALTH);
  permits.ease(given, 100);
  expect(permits.load(permit.host)).toMatchObject({ permits: 1, parallel: 8 });
  permits.release(given, 0);
  expect(permits.load(permit.host)).toMatchObject({ permits: 1, parallel: 4 });
});

test('what a report says while the store is asked is known to the permits that follow', async () => {
  const { permits } = open(false);
  const ban = { ...NO_BAN, known: { url: 'http://a.example/', at: 1 } };
  permits.grant(permit, HEALTH);
  await permits.holding(new Set([permit.host, 'other.example']), async () => {
    Object.assign(permits.entry(permit.host)!, { ban });
    permits.release(permit, 0);
    // The health is from before the report.
    permits.grant(permit, HEALTH);
  });
  expect(permits.entry(permit.host)!.ban).toBe(ban);
  permits.release(permit, 0);
  expect(permits.size).toBe(0);
});

test('that a host answered another coordinator meanwhile is known to the next permit, and never forgotten', () => {
  const { permits } = open(false);
  const known = { url: 'http://a.example/', at: 1 };
  // Of a batch that was taken over, from before the host answered.
  permits.grant(permit, HEALTH);
  permits.entry(permit.host)!.ban = { ...NO_BAN, refusals: 2 };
  permits.grant(permit, { ...HEALTH, ban: { ...NO_BAN, known, answers: 4 } });
  expect(permits.entry(permit.host)!.ban).toMatchObject({ known, refusals: 0, answers: 4 });
  const banned = { ...NO_BAN, known, since: 5, rests: 1, restUntil: 20_000 };
  permits.entry(permit.host)!.ban = banned;
  permits.grant(permit, { ...HEALTH, ban: { ...NO_BAN, known, answers: 5 } });
  permits.grant(permit, { ...HEALTH, ban: null });
  expect(permits.entry(permit.host)!.ban).toBe(banned);
});

test('of several that ask the store about a host, the last one forgets it, also when the store fails', async () => {
  const { permits } = open(true);
  permits.grant(permit, HEALTH);
  const hosts = new Set([permit.host]);
  const failing = permits.holding(hosts, async () => {
    await permits.holding(hosts, async () => void permits.release(permit, 0));
    expect(permits.size).toBe(1);
    throw new Error('disk I/O error');
  });
  await expect(failing).rejects.toThrow('disk I/O error');
  expect(permits.size).toBe(0);
});
