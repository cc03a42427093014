import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createProgress } from '../../../../src/coordinator/reports/progress.ts';
import { FAILURES, type FailureCode } from '../../../../src/core/failures.ts';
import {
  batchOf,
  deliver,
  type Kind,
  look,
  reportOf,
  START,
} from '../../../support/coordinator/progress-reports.ts';

describe('hosts, failures, workers, notices', () => {
  test('counts by host, with latencies about right and the state of each', () => {
    const progress = createProgress({ startedAt: START });
    deliver(progress, batchOf(1, ['a.test', 'b.test'], 40), {
      startedAt: START,
      endedAt: START + 1_000,
      durationMs: 90,
    });
    const down = { kinds: ['failed' as const], codes: ['connect' as const] };
    deliver(progress, batchOf(2, ['down.test'], 5), { startedAt: START, endedAt: START + 1_000, ...down });
    const busy = { kinds: ['fetched' as const, 'failed' as const], codes: ['throttled' as const] };
    deliver(progress, batchOf(3, ['busy.test'], 10), { startedAt: START, endedAt: START + 1_000, ...busy });
    const view = look(progress, START + 3_000, {});
    const byHost = Object.fromEntries(view.hosts.map((host) => [host.host, host]));
    expect(view.hostsTotal).toBe(4);
    expect(byHost['a.test']).toMatchObject({ requests: 20, done: 20, failed: 0, state: 'idle' });
    expect(byHost['a.test']!.p50Ms).toBeGreaterThan(90 * 0.8);
    expect(byHost['a.test']!.p95Ms).toBeLessThan(90 * 1.3);
    expect(byHost['down.test']).toMatchObject({ requests: 5, done: 0, failed: 5, state: 'failing' });
    expect(byHost['busy.test']).toMatchObject({ requests: 10, done: 5, failed: 5, state: 'throttled' });
    expect(view.hosts.slice(2).map((host) => host.host)).toEqual(['a.test', 'b.test']);
    expect(look(progress, START + 9_000, {}).hosts.find((host) => host.host === 'busy.test')!.state).toBe(
      'idle',
    );
    progress.onDispatch(batchOf(4, ['a.test'], 1), START + 9_000);
    const later = look(progress, START + 9_000, {}).hosts;
    expect(later[0]).toMatchObject({ host: 'a.test', state: 'active' });
    expect(later[1]).toMatchObject({ host: 'down.test', state: 'failing' });
  });

  test('p50 and p95 follow a spread of latencies', () => {
    const progress = createProgress({ startedAt: START });
    for (let ms = 1; ms <= 1_000; ms++) {
      deliver(progress, batchOf(ms, ['a.test'], 1), {
        startedAt: START,
        endedAt: START + ms,
        durationMs: ms,
      });
    }
    const [host] = look(progress, START + 1_000, {}).hosts;
    expect(Math.abs(host!.p50Ms! - 500)).toBeLessThan(100);
    expect(Math.abs(host!.p95Ms! - 950)).toBeLessThan(120);
  });

  test('failures and skips sorted by number, workers by name', () => {
    const progress = createProgress({ startedAt: START });
    const kinds: Kind[] = ['failed', 'failed', 'failed', 'skipped', 'deferred', 'fetched'];
    const codes: FailureCode[] = ['reset', 'not-found', 'not-found', 'reset', 'reset', 'reset'];
    const shape = { startedAt: START, endedAt: START + 1_000, kinds, codes };
    deliver(progress, batchOf(1, ['a.test'], 6), { ...shape, worker: 'w-2' });
    deliver(progress, batchOf(2, ['a.test'], 6), { ...shape, worker: 'w-1' }, START + 1_500);
    progress.onDispatch(batchOf(3, ['a.test'], 6), START + 1_600);
    const view = look(progress, START + 2_000, {});
    expect(view.failures).toEqual([
      { code: 'not-found', count: 4 },
      { code: 'reset', count: 2 },
    ]);
    expect(view.skips).toEqual([{ code: 'robots', count: 2 }]);
    expect(view.openBatches).toBe(1);
    expect(
      view.workers.map(({ name, batches, tasks, lastSeenAt }) => ({ name, batches, tasks, lastSeenAt })),
    ).toEqual([
      { name: 'w-1', batches: 1, tasks: 6, lastSeenAt: START + 1_500 },
      { name: 'w-2', batches: 1, tasks: 6, lastSeenAt: START + 1_000 },
    ]);
    expect(view.recent.at(-1)).toMatchObject({ level: 'error', text: 'not-found  http://a.test/page/2' });
    expect(view.recent).toHaveLength(6);
  });

  test('a report in parts counts each part once, and the batch is open until the last', () => {
    const progress = createProgress({ startedAt: START });
    const batch = batchOf(1, ['a.test'], 4);
    progress.onDispatch(batch, START);
    const whole = reportOf(batch, { startedAt: START, endedAt: START + 4_000 });
    const early = { ...whole, part: 0, final: false, outcomes: whole.outcomes.slice(0, 3) };
    const last = { ...whole, part: 1, final: true, permits: [], outcomes: whole.outcomes.slice(3) };
    progress.onDelivery({ kind: 'report', report: early }, START + 3_000);
    progress.onDelivery({ kind: 'report', report: early }, START + 3_100);
    const midway = look(progress, START + 3_200, {});
    expect(midway.openBatches).toBe(1);
    expect(midway.hosts[0]).toMatchObject({ done: 3, requests: 4, state: 'active' });
    progress.onDelivery({ kind: 'report', report: last }, START + 4_000);
    progress.onDelivery({ kind: 'report', report: last }, START + 4_000);
    const end = look(progress, START + 8_000, {});
    expect(end.openBatches).toBe(0);
    expect(end.hosts[0]).toMatchObject({ done: 4, requests: 4, state: 'idle' });
  });

  test('the reasons that the store counted come before those seen in this run', () => {
    const progress = createProgress({ startedAt: START });
    const shape = { startedAt: START, endedAt: START + 1_000, kinds: ['skipped' as const] };
    deliver(progress, batchOf(1, ['a.test'], 2), shape);
    const tallies = [
      { state: 'skipped', code: 'scope', count: 1 },
      { state: 'dead', code: 'not-found', count: 2 },
      { state: 'skipped', code: 'robots', count: 7 },
    ];
    const view = look(progress, START + 1_000, {}, { tallies });
    expect(view.skips.map((skip) => `${skip.code} ${skip.count}`)).toEqual(['robots 7', 'scope 1']);
    expect(view.dead).toEqual([{ code: 'not-found', count: 2 }]);
  });

  test('a lost batch frees its hosts and is told; a second delivery changes nothing', () => {
    const progress = createProgress({ startedAt: START });
    const batch = batchOf(1, ['a.test'], 6);
    progress.onDispatch(batch, START);
    progress.onDelivery({ kind: 'lost', batchId: 1, reason: 'the thread exited' }, START + 5_000);
    const before = look(progress, START + 6_000, {});
    expect(before.openBatches).toBe(0);
    expect(before.hosts[0]!.state).toBe('idle');
    expect(before.recent).toEqual([
      { at: START + 5_000, level: 'error', text: 'batch 1 lost: the thread exited' },
    ]);
    const report = reportOf(batch, { startedAt: START, endedAt: START + 5_500 });
    progress.onDelivery({ kind: 'report', report }, START + 5_500);
    expect(look(progress, START + 6_000, {})).toEqual(before);
  });
});

describe('bounds', () => {
  test('a million hosts and workers leave 2,000 and 1,000 behind, the busy ones among them', () => {
    const progress = createProgress({ startedAt: START });
    for (let i = 0; i < 2_000; i++) {
      const now = START + i * 10;
      const hosts = Array.from({ length: 10 }, (_, n) => `h${i * 10 + n}.test`);
      deliver(progress, batchOf(i, [...hosts, 'big.test'], 110), {
        startedAt: now,
        endedAt: now + 5,
        worker: `w-${i}`,
      });
    }
    const view = look(progress, START + 20_000, {}, { hostsMax: 10_000 });
    expect(view.hosts.length).toBeLessThanOrEqual(2_000);
    expect(view.hostsTotal).toBe(view.hosts.length);
    expect(view.hosts[0]).toMatchObject({ host: 'big.test', requests: 20_000 });
    expect(view.workersTotal).toBe(1_000);
    expect(view.workers.length).toBeLessThanOrEqual(16);
    expect(view.workers.some((worker) => worker.name === 'w-1999')).toBe(true);
  });

  test('2,000 hosts with a batch open each still make room', () => {
    const progress = createProgress({ startedAt: START });
    for (let i = 0; i < 5_000; i++) progress.onDispatch(batchOf(i, [`h${i}.test`], 1), START);
    expect(look(progress, START, {}).hostsTotal).toBeLessThanOrEqual(2_000);
    for (let i = 0; i < 5_000; i++) progress.onDelivery({ kind: 'lost', batchId: i, reason: 'x' }, START);
    expect(look(progress, START, {}).openBatches).toBe(0);
  });

  test('whatever happens, a view is sane and plain JSON', () => {
    const kinds = fc.constantFrom<Kind>(
      'fetched',
      'unchanged',
      'redirected',
      'skipped',
      'failed',
      'deferred',
    );
    const code = fc.constantFrom(...(Object.keys(FAILURES) as FailureCode[]));
    const event = fc.record({
      afterMs: fc.nat(20_000),
      kinds: fc.array(kinds, { minLength: 1, maxLength: 6 }),
      codes: fc.array(code, { minLength: 1, maxLength: 3 }),
      tasks: fc.integer({ min: 1, max: 30 }),
      skewMs: fc.integer({ min: -100_000_000, max: 100_000_000 }),
      fate: fc.constantFrom('report', 'twice', 'lost', 'never'),
      pending: fc.nat(1_000),
      sourcesDone: fc.boolean(),
    });
    fc.assert(
      fc.property(fc.array(event, { maxLength: 25 }), (events) => {
        const progress = createProgress({ startedAt: START });
        let now = START;
        events.forEach((one, id) => {
          const batch = batchOf(id, ['a.test', 'b.test'], one.tasks);
          progress.onDispatch(batch, now);
          const startedAt = now + one.skewMs;
          now += one.afterMs;
          const report = reportOf(batch, { ...one, startedAt, endedAt: startedAt + one.afterMs });
          if (one.fate === 'lost') progress.onDelivery({ kind: 'lost', batchId: id, reason: 'gone' }, now);
          if (one.fate === 'report' || one.fate === 'twice')
            progress.onDelivery({ kind: 'report', report }, now);
          if (one.fate === 'twice') progress.onDelivery({ kind: 'report', report }, now);
          const part = { accepted: one.pending + 10, pending: one.pending, done: 10 };
          const view = look(progress, now, part, { sourcesDone: one.sourcesDone });
          expect(JSON.parse(JSON.stringify(view))).toEqual(view);
          if (view.etaMs !== null) expect(Number.isFinite(view.etaMs) && view.etaMs >= 0).toBe(true);
          if (one.pending === 0) expect(view.etaMs).toBe(one.sourcesDone ? 0 : null);
          const numbers = [
            view.pagesPerSecond,
            view.bytesPerSecond,
            view.averagePagesPerSecond,
            ...view.history,
          ];
          numbers.push(...view.hosts.map((host) => host.requestsPerSecond));
          for (const number of numbers) expect(Number.isFinite(number) && number >= 0).toBe(true);
          expect(view.fraction).toBeGreaterThanOrEqual(0);
          expect(view.fraction).toBeLessThanOrEqual(1);
          expect(view.recent.length).toBeLessThanOrEqual(8);
        });
      }),
      { numRuns: 200 },
    );
  });
});
