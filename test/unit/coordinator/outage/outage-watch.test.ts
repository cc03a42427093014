import { describe, expect, test } from 'vitest';
import { OutageWatch } from '../../../../src/coordinator/outage/outage-watch.ts';
import type { RobotsOutcome } from '../../../../src/core/batch/outcome.ts';
import type { DueHost } from '../../../../src/ports/store.ts';
import { reportOf } from '../../../support/coordinator/batches.ts';
import { batchOf } from '../../../support/coordinator/progress-reports.ts';

const logger = { info: () => {}, warn: () => {} };

/** What the robots.txt of each host came to. */
function told(watch: OutageWatch, answers: Record<string, 'answers' | 'unreachable'>): void {
  const hosts = Object.keys(answers);
  const asked = hosts.map((host, permit) => ({
    permit,
    origin: `http://${host}`,
    url: `http://${host}/robots.txt`,
  }));
  const trace = { startedAt: 0, durationMs: 1, bytes: 0 };
  const robots = hosts.map((host): RobotsOutcome => {
    const about = { kind: 'failed', origin: `http://${host}` } as const;
    if (answers[host] === 'answers')
      return { ...about, code: 'server-error', detail: 'status 500', trace: { ...trace, httpStatus: 500 } };
    const detail = 'the connection failed (ENETUNREACH)';
    return { ...about, code: 'connect', detail, trace: { ...trace, httpStatus: null } };
  });
  const batch = { ...batchOf(1, hosts, 0), robots: asked };
  watch.judge({ batch, tasks: new Map() }, reportOf({ robots }));
}

test('the host that is asked whether the network is there has not failed yet, where there is one', () => {
  const watch = new OutageWatch({ clock: { now: () => 0, after: () => () => {} }, logger });
  told(watch, { 'a.example': 'answers', 'b.example': 'answers' });
  expect(watch.reference).toBeNull();
  told(watch, { 'a.example': 'unreachable' });
  expect(watch.reference).toEqual({ host: 'b.example', url: 'http://b.example/robots.txt' });
});

test('when all of them have failed, they are asked again: they may have no tasks left that would', () => {
  const watch = new OutageWatch({ clock: { now: () => 0, after: () => () => {} }, logger });
  told(watch, { 'a.example': 'answers' });
  told(watch, { 'a.example': 'unreachable', 'b.example': 'unreachable' });
  expect(watch.reference).toEqual({ host: 'a.example', url: 'http://a.example/robots.txt' });
  told(watch, { 'a.example': 'answers' });
  expect(watch.reference).toBeNull();
});

const dueHost = (host: string): DueHost => ({
  ...{ id: 1, host, ready: 5, nextAt: 0, crawlDelayMs: null, failuresInRow: 0, rests: 0 },
  ...{ pace: null, ban: null, reachedAt: null },
});

test('a probe asks other hosts beside the few that were reached, whose robots.txt may be at a host that is gone', () => {
  let now = 0;
  const watch = new OutageWatch({ clock: { now: () => now, after: () => () => {} }, logger });
  told(watch, { 'a.example': 'answers' });
  told(watch, { 'a.example': 'unreachable' });
  const due = ['w.example', 'x.example', 'y.example', 'z.example', 'a.example'].map(dueHost);
  expect(watch.select(due)).toEqual([]);
  const asked = new Set<string>();
  for (let probe = 0; probe < 4; probe++) {
    now += 1_000_000;
    const selected = watch.select(due);
    expect(selected).toHaveLength(3);
    expect(selected[0]).toMatchObject({ host: 'a.example', ready: 1 });
    for (const { host } of selected) asked.add(host);
  }
  expect(asked.size).toBe(5);
});

describe('a probe of which nothing was sent', () => {
  /** How long after each probe the next one is sent, of which the first comes back without a request. */
  function probed(sent: number) {
    let now = 0;
    const watch = new OutageWatch({ clock: { now: () => now, after: () => () => {} }, logger });
    told(watch, { 'a.example': 'answers' });
    told(watch, { 'a.example': 'unreachable' });
    const isDue = () => watch.select([dueHost('a.example')]).length > 0;
    const next = () => {
      const from = now;
      while (!isDue()) now += 500;
      return now - from;
    };
    // Long enough for the longest gap.
    for (let probe = 1; probe <= 12; probe++) {
      next();
      watch.onSent([probe]);
    }
    const permits = [{ host: 'a.example', sent, lastSentAt: sent > 0 ? now : null, finished: true }];
    const batch = batchOf(12, ['a.example'], 0);
    watch.judge({ batch, tasks: new Map() }, { ...reportOf({}), batchId: 12, final: true, permits });
    const first = next();
    watch.onSent([13]);
    return [first, next()];
  }

  test('does not count: the next one follows soon, and the gap after it is no longer than five minutes', () => {
    expect(probed(0)).toEqual([1_000, 300_000]);
    expect(probed(1)).toEqual([300_000, 300_000]);
  });
});
