import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { sharesOf } from '../../../../src/core/explain/explain.ts';
import { noSums, SlotLedger, statesOf } from '../../../../src/core/explain/slot-ledger.ts';
import { checkWorkerTimes, SLOT_STATES, sumOf } from '../../../../src/core/explain/slot-states.ts';

const ms = fc.double({ min: 0, max: 5_000, noNaN: true });
const batch = fc.integer({ min: 1, max: 6 });
const step = fc.oneof(
  fc.record({ kind: fc.constant('open' as const), batch }),
  fc.record({
    kind: fc.constant('report' as const),
    batch,
    times: fc.record({ network: ms, cpu: ms, hostGap: ms }, { requiredKeys: [] }),
    startedAt: fc.double({ min: -1e6, max: 1e6, noNaN: true }),
    final: fc.boolean(),
  }),
  fc.record({ kind: fc.constant('close' as const), batch }),
  fc.record({ kind: fc.constant('slots' as const), slots: fc.integer({ min: 0, max: 5 }) }),
  fc.record({ kind: fc.constant('reason' as const), reason: fc.constantFrom('source', 'robots', 'store') }),
);

describe('slot-seconds', () => {
  test('are each in exactly one state, whatever batches and reports do', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(step, ms), { maxLength: 60 }), (steps) => {
        let now = 1_000;
        const ledger = new SlotLedger(now, 3);
        for (const [each, wait] of steps) {
          now += wait;
          if (each.kind === 'open') ledger.open(each.batch, now);
          else if (each.kind === 'report') ledger.report(each.batch, { ...each, pages: 1 }, now);
          else if (each.kind === 'close') ledger.close(each.batch, now);
          else if (each.kind === 'slots') ledger.setSlots(each.slots, now);
          else ledger.setReason(each.reason as 'source', now);
          const sums = ledger.sums(now);
          const accounted = sumOf(statesOf(sums)) + ledger.unaccountedMs;
          expect(Math.abs(accounted - sums.slotMs)).toBeLessThan(1e-3);
          expect(Math.abs(sums.fullMs + sumOf(sums.waits) - sums.wallMs)).toBeLessThan(1e-3);
          for (const state of SLOT_STATES) expect(sums.busy[state] ?? 0).toBeGreaterThanOrEqual(0);
        }
      }),
      { numRuns: 200 },
    );
  });

  test('a batch is cold until its worker begins, then what the worker says, then a report, then in the store', () => {
    const ledger = new SlotLedger(0, 1);
    ledger.open(1, 0);
    ledger.report(1, { times: { network: 500, cpu: 100 }, startedAt: 300, pages: 1, final: false }, 900);
    ledger.report(1, { times: { network: 200 }, startedAt: 300, pages: 2, final: true }, 1_200);
    ledger.close(1, 1_250);
    const { busy, pages, fullMs } = ledger.sums(1_250);
    expect(busy).toEqual({ network: 700, cpu: 100, coldStart: 300, report: 100, store: 50 });
    expect({ pages, fullMs }).toEqual({ pages: 3, fullMs: 1_250 });
  });

  test('of a lost batch are waiting for its report, and a late report adds nothing', () => {
    const ledger = new SlotLedger(0, 1);
    ledger.open(1, 0);
    ledger.close(1, 400);
    ledger.report(1, { times: { network: 400 }, startedAt: 0, pages: 0, final: true }, 500);
    expect(ledger.sums(500)).toMatchObject({ busy: { report: 400 }, idle: { source: 100 } });
  });

  test('of which a worker tells nonsense are left out', () => {
    const times = {
      network: Number.NaN,
      cpu: -1,
      browser: 'x',
      store: 5,
      archive: 7,
      __proto__: { robots: 1 },
    };
    expect(checkWorkerTimes(times)).toEqual({ archive: 7, robots: 1 });
    expect(checkWorkerTimes(null)).toEqual({});
  });
});

describe('shares', () => {
  test('add up to 100 percent, rounded to one digit', () => {
    const times = fc.dictionary(
      fc.constantFrom(...SLOT_STATES),
      fc.double({ min: 0, max: 1e12, noNaN: true }),
    );
    fc.assert(
      fc.property(times, times, (busy, idle) => {
        const shares = Object.values(sharesOf({ busy, idle }));
        const isEmpty = sumOf(busy) + sumOf(idle) === 0;
        expect(shares.reduce((sum, share) => sum + Math.round(share * 10), 0)).toBe(isEmpty ? 0 : 1_000);
      }),
    );
  });

  test('of nothing are none', () => {
    expect(sharesOf(noSums())).toEqual({});
  });
});
