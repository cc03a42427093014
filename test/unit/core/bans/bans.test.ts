import { describe, expect, test } from 'vitest';
import {
  type BanDecision,
  banRestMs,
  type HostBan,
  isBanned,
  NO_BAN,
  nextBan,
  probeUrlOf,
  refusalsLeft,
} from '../../../../src/core/bans/bans.ts';
import type { ProbeResult } from '../../../../src/core/batch/batch.ts';
import type { Outcome } from '../../../../src/core/batch/outcome.ts';
import type { FailureCode } from '../../../../src/core/failures.ts';
import { pageOf, T0, traceOf } from '../../../support/fixtures.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

const fetched = (taskId: number): Outcome => ({
  ...{ kind: 'fetched', taskId, page: pageOf(), links: [], records: [], shows: [], trace: traceOf() },
});
const failed = (taskId: number, code: FailureCode, httpStatus: number | null = 403): Outcome => ({
  ...{ kind: 'failed', taskId, code, detail: '', page: null, retryAfterMs: null },
  trace: { ...traceOf(), httpStatus },
});
const forbidden = (taskId: number) => failed(taskId, 'forbidden');

function next(
  ban: HostBan,
  outcomes: Outcome[],
  options: {
    attempt?: number;
    probe?: ProbeResult | null;
    isProbe?: boolean;
    areOthersOut?: boolean;
    isLate?: boolean;
    now?: number;
  } = {},
): BanDecision {
  const {
    attempt = 1,
    probe = null,
    isProbe = probe !== null,
    areOthersOut = false,
    isLate = false,
    now = T0,
  } = options;
  const seen = { outcomes, attemptOf: () => attempt, urlOf: ({ taskId }: Outcome) => `http://a/${taskId}` };
  return nextBan(ban, { ...seen, isProbe, probe, areOthersOut, isLate, isOver: true }, { attempts: 4 }, now);
}

const open = next(NO_BAN, [fetched(1)]).ban;
const suspected = next(open, [forbidden(2), forbidden(3), forbidden(4)]).ban;
const banned = next(suspected, [], { probe: 'refused' }).ban;

describe('a ban', () => {
  test('is not suspected where the host never answered: its pages fail as they are', () => {
    const { ban, waiting, again } = next(NO_BAN, [forbidden(1), forbidden(2), forbidden(3), forbidden(4)]);
    expect(isBanned(ban)).toBe(false);
    expect([...waiting, ...again]).toEqual([]);
    expect(refusalsLeft(ban)).toBeNull();
  });

  test('may be known from the report of another batch: pages of a host that never answered are tried once more', () => {
    const others = { areOthersOut: true };
    const first = next(NO_BAN, [forbidden(1), forbidden(2)], others);
    expect([first.ban.known, [...first.waiting], [...first.again]]).toEqual([null, [], [1, 2]]);
    const answered = next(first.ban, [fetched(3), forbidden(4), forbidden(5), forbidden(6)]).ban;
    expect(isBanned(answered)).toBe(true);
    expect([...next(answered, [forbidden(1)], { attempt: 2 }).waiting]).toEqual([1]);
    const second = next(first.ban, [forbidden(1)], { ...others, attempt: 2 });
    expect([...second.waiting, ...second.again]).toEqual([]);
    const law = next(NO_BAN, [failed(1, 'forbidden', 451)], others);
    expect([...law.waiting, ...law.again]).toEqual([]);
  });

  test('is not ended by what comes late: refused pages wait, and an answer only says that the host is known', () => {
    const late = { isLate: true };
    const first = next(NO_BAN, [forbidden(1), fetched(2)], late);
    expect([first.ban.known?.url, [...first.waiting]]).toEqual(['http://a/2', [1]]);
    const second = next(banned, [fetched(3), forbidden(4)], { ...late, attempt: 2 });
    expect(second.ban).toEqual(banned);
    expect([[...second.waiting], [...second.again]]).toEqual([[4], []]);
    expect(next(banned, [], { ...late, probe: 'answered' }).ban).toEqual(banned);
    expect(next(NO_BAN, [forbidden(1)], late)).toMatchObject({ ban: NO_BAN, waiting: new Set([1]) });
  });

  test('is no longer waited for in the reports of other batches once a hundred pages were refused', () => {
    const refusals = Array.from({ length: 150 }, (_, taskId) => forbidden(taskId));
    const { ban, again } = next(NO_BAN, refusals, { areOthersOut: true });
    expect(again.size).toBe(99);
    expect([...next(ban, [forbidden(200)], { areOthersOut: true }).again]).toEqual([]);
    expect(next(ban, [fetched(201)]).ban).toMatchObject({ refusals: 0, known: { url: 'http://a/201' } });
  });

  test('is not suspected where the host has only redirected: many that refuse every page do that', () => {
    const redirected: Outcome = {
      ...{ kind: 'redirected', taskId: 1, to: 'https://a/1', page: pageOf(), trace: traceOf() },
    };
    const { ban, waiting, again } = next(NO_BAN, [redirected, forbidden(2), forbidden(3), forbidden(4)]);
    expect([ban.known, isBanned(ban), ...waiting, ...again]).toEqual([null, false]);
  });

  test('is suspected also where the refusals of a report came faster than its answers', () => {
    const { ban, waiting, again } = next(NO_BAN, [forbidden(1), forbidden(2), fetched(3), forbidden(4)]);
    expect(ban.known?.url).toBe('http://a/3');
    expect([...waiting, ...again]).toEqual([1, 2, 4]);
  });

  test('is not waited out for a day because the clock was a day ahead when it was met', () => {
    const ahead = { ...banned, since: T0 + 24 * HOUR, restUntil: T0 + 24 * HOUR };
    const { ban } = next(ahead, [], { probe: 'refused' });
    expect(ban.restUntil).toBe(T0 + banRestMs(ban.rests));
  });

  test('is suspected after three refusals in a row where another page answered before', () => {
    const first = next(open, [forbidden(2), forbidden(3)]);
    expect(isBanned(first.ban)).toBe(false);
    expect([...first.again]).toEqual([2, 3]);
    const second = next(first.ban, [forbidden(4), forbidden(5)]);
    expect(isBanned(second.ban)).toBe(true);
    expect([...second.waiting]).toEqual([4, 5]);
    expect(probeUrlOf(second.ban)).toBe('http://a/1');
    expect(second.ban.restUntil).toBe(0);
  });

  test('is not suspected because of single refusals among answers', () => {
    let ban = open;
    for (let taskId = 2; taskId < 100; taskId += 3) {
      const { ban: after, waiting } = next(ban, [
        forbidden(taskId),
        forbidden(taskId + 1),
        fetched(taskId + 2),
      ]);
      expect([isBanned(after), waiting.size]).toEqual([false, 0]);
      ban = after;
    }
  });

  test('is suspected before a page is given up, and the page fails once the known page has answered', () => {
    const { ban, waiting } = next(open, [forbidden(7)], { attempt: 2 });
    expect([isBanned(ban), waiting.has(7)]).toEqual([true, true]);
    const after = next(ban, [forbidden(7)], { attempt: 2, probe: 'answered' });
    expect([isBanned(after.ban), after.waiting.size, after.again.size]).toEqual([false, 0, 0]);
  });

  test('pages of a bot protection count, those by law, through a proxy and with status 429 do not', () => {
    const codes: FailureCode[] = ['blocked', 'captcha', 'soft-block'];
    for (const code of codes)
      expect(
        isBanned(
          next(
            open,
            [2, 3, 4].map((id) => failed(id, code)),
          ).ban,
        ),
      ).toBe(true);
    const via = { rung: 0, fetcher: 'http' as const, identity: null, proxy: 'p' };
    const proxied = [2, 3, 4].map((id) => ({
      ...forbidden(id),
      trace: { ...traceOf(), httpStatus: 403, via },
    }));
    expect(isBanned(next(open, proxied as Outcome[]).ban)).toBe(false);
    expect(
      isBanned(
        next(
          open,
          [2, 3, 4].map((id) => failed(id, 'forbidden', 451)),
        ).ban,
      ),
    ).toBe(false);
    expect(
      isBanned(
        next(
          open,
          [2, 3, 4].map((id) => failed(id, 'blocked', 429)),
        ).ban,
      ),
    ).toBe(false);
  });

  test('begins when the known page is refused as well, with rests that double up to an hour', () => {
    expect(banned).toMatchObject({ since: T0, rests: 1, restUntil: T0 + banRestMs(1) });
    const rests = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map((count) => banRestMs(count) / 1_000);
    expect(rests).toEqual([20, 40, 80, 160, 320, 640, 1_280, 2_560, 3_600, 3_600]);
  });

  test('refusals of batches that were out before make no rest longer', () => {
    const { ban, waiting } = next(banned, [forbidden(8)], { now: T0 + 1_000 });
    expect(ban).toEqual(banned);
    expect([...waiting]).toEqual([8]);
    // Not even those of a probe of another coordinator.
    expect(next(banned, [forbidden(8)], { now: T0 + 1_000, isProbe: true }).ban).toEqual(banned);
  });

  test('a failed probe is no answer, and from the second rest on a waiting page is the probe every other time', () => {
    let ban = banned;
    const urls: (string | null)[] = [];
    for (let count = 0; count < 5; count++) {
      urls.push(probeUrlOf(ban));
      ban = next(ban, [], { probe: 'failed', now: ban.restUntil }).ban;
    }
    expect(urls).toEqual(['http://a/1', null, 'http://a/1', null, 'http://a/1']);
    expect(ban.rests).toBe(6);
  });

  test('ends with one answer', () => {
    expect(next(banned, [fetched(9)], { now: T0 + HOUR }).ban).toMatchObject({ since: null, refusals: 0 });
    expect(next(banned, [failed(9, 'not-found', 404)], { now: T0 + HOUR }).ban.since).toBeNull();
    expect(next(banned, [failed(9, 'server-error', 500)], { now: T0 + HOUR }).ban.since).not.toBeNull();
  });

  test('forbidden pages in a row are checked less and less often while the known page answers', () => {
    let ban = open;
    let checks = 0;
    for (let taskId = 2; taskId < 400; taskId++) {
      const decision = next(ban, [forbidden(taskId)], { attempt: 2 });
      ban = decision.ban;
      if (!isBanned(ban)) continue;
      checks++;
      ban = next(ban, [], { probe: 'answered' }).ban;
    }
    expect(checks).toBeLessThan(10);
  });

  test('of any length up to a day is waited out with few requests', () => {
    for (const [lengthMs, most] of [
      [20_000, 2],
      [60_000, 3],
      [30 * MINUTE, 9],
      [24 * HOUR, 35],
    ] as const) {
      let ban = suspected;
      let requests = 0;
      let now = T0;
      while (isBanned(ban)) {
        now = Math.max(now, ban.restUntil);
        const isLifted = now >= T0 + lengthMs;
        if (!isLifted) requests++;
        const url = probeUrlOf(ban);
        const outcome = isLifted ? fetched(50) : forbidden(50);
        const decision =
          url === null
            ? next(ban, [outcome], { isProbe: true, now })
            : next(ban, isLifted ? [outcome] : [], { probe: isLifted ? 'answered' : 'refused', now });
        if (!isLifted && url === null) expect([...decision.waiting]).toEqual([50]);
        ban = decision.ban;
      }
      expect(requests).toBeLessThanOrEqual(most);
      expect(now - T0 - lengthMs).toBeLessThanOrEqual(Math.max(lengthMs, HOUR));
    }
  });
});

describe('a ban of one of several addresses', () => {
  const many = (
    ban: HostBan,
    outcomes: Outcome[],
    more: { ownProbe?: ProbeResult; probe?: ProbeResult; now?: number } = {},
  ) => {
    const { ownProbe = null, probe = null, now = T0 } = more;
    const seen = { outcomes, attemptOf: () => 1, urlOf: ({ taskId }: Outcome) => `http://a/${taskId}` };
    const about = { isProbe: probe !== null, probe, ownProbe, isByAddress: true, isOver: true };
    return nextBan(ban, { ...seen, ...about }, { attempts: 4 }, now);
  };
  const refused = many(open, [forbidden(2), forbidden(3)], { ownProbe: 'refused' });

  test('is told by the known page, requested from that address: the whole host rests, and its pages wait', () => {
    expect(refused.ban).toMatchObject({ since: T0, rests: 1, restUntil: T0 + banRestMs(1) });
    expect([[...refused.waiting], [...refused.again]]).toEqual([[2, 3], []]);
  });

  test('is not ended by answers to the other addresses, which were asked before', () => {
    const { ban } = many(refused.ban, [fetched(7)], { now: T0 + 2_000 });
    expect([isBanned(ban), ban.restUntil]).toEqual([true, refused.ban.restUntil]);
  });

  test('is over when a probe is answered; the next one within an hour rests for longer', () => {
    const over = many(refused.ban, [], { probe: 'answered', now: T0 + 20_000 }).ban;
    expect(isBanned(over)).toBe(false);
    const answered = many(over, [fetched(8)], { now: T0 + 21_000 }).ban;
    const again = many(answered, [forbidden(9)], { ownProbe: 'refused', now: T0 + 25_000 }).ban;
    expect(again).toMatchObject({ rests: 2, restUntil: T0 + 25_000 + banRestMs(2) });
    const later = many(answered, [forbidden(9)], { ownProbe: 'refused', now: T0 + 3 * HOUR }).ban;
    expect(later).toMatchObject({ rests: 1, restUntil: T0 + 3 * HOUR + banRestMs(1) });
  });

  test('is none where the known page answers that address: the pages are forbidden', () => {
    const { ban } = many(open, [forbidden(2), forbidden(3), forbidden(4)], { ownProbe: 'answered' });
    expect(isBanned(ban)).toBe(false);
    expect(ban.tolerated).toBe(6);
  });
});
