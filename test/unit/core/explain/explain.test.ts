import { describe, expect, test } from 'vitest';
import { bandOf, explain, limitOf, type SlotAccount } from '../../../../src/core/explain/explain.ts';
import { idleReason } from '../../../../src/core/explain/idle-reason.ts';
import { type HostBacklog, predictRate, type RunFacts } from '../../../../src/core/explain/predict.ts';
import { noSums, type SlotSums } from '../../../../src/core/explain/slot-ledger.ts';
import { parseChange } from '../../../../src/core/explain/what-if.ts';
import { guardedGapMs } from '../../../../src/core/politeness/permits.ts';

const HOUR = 3_600_000;
const shop: HostBacklog = {
  host: 'shop.example',
  ready: 60_480,
  gapMs: guardedGapMs(250, null),
  parallel: 4,
  latencyMs: 100,
};

/** One host at 4 a second, two of 16 slots in use. */
const oneSlowHost: SlotSums = {
  ...noSums(),
  wallMs: HOUR,
  slotMs: 16 * HOUR,
  busy: { network: HOUR, hostGap: HOUR * 0.44 },
  idle: { hostGap: 14.12 * HOUR, noWork: 0.44 * HOUR },
  waits: { hostGap: HOUR },
  pages: 4 * 3_600,
};
const fewWorkers: SlotSums = {
  ...noSums(),
  wallMs: HOUR,
  slotMs: 8 * HOUR,
  busy: { network: 8 * HOUR },
  fullMs: HOUR,
  pages: 36_000,
};

function factsOf(sums: SlotSums, more: Partial<RunFacts> = {}): RunFacts {
  return {
    sums,
    slots: 16,
    workers: 2,
    hosts: [],
    hostsPerSecond: Number.POSITIVE_INFINITY,
    writeMs: null,
    ...more,
  };
}

function accountOf(sums: SlotSums, more: Partial<SlotAccount> = {}): SlotAccount {
  const hosts = { hosts: [shop], hostsPerSecond: 1_000 / shop.gapMs, writeMs: null };
  return {
    pass: 1,
    at: HOUR,
    slots: 16,
    workers: 2,
    total: sums,
    recent: sums,
    rates: [],
    ...hosts,
    ...more,
  };
}

describe('an explanation', () => {
  const input = { remaining: 60_480, isRunning: true, isSourceDone: true, isOverBudget: false };

  test('says what is waited for, what changes give and when it is done', () => {
    const changes = ['workers=+8', 'rate:shop.example=8'].map((text) => ({
      text,
      change: parseChange(text, 2),
    }));
    const rates = [4, 4.1, 3.9, 4];
    const explained = explain({ ...input, accounts: [accountOf(oneSlowHost, { rates })], changes });
    expect(explained).toEqual({
      shares: { network: 6.3, hostGap: 91, noWork: 2.7 },
      limiting: 'hostGap',
      criticalHost: 'shop.example',
      gains: [
        { change: 'workers=+8', gainPercent: 0, etaSeconds: 15_952 },
        { change: 'rate:shop.example=8', gainPercent: 89.6, etaSeconds: 7_976 },
      ],
      eta: { seconds: 15_952, low: 14_501, high: 17_724, tasks: 60_480 },
      sentence:
        '91 % waits for shop.example (4/s). 8 more workers: +0 %. A rate of 8/s there: 2.2 h earlier. Done in about 4.4 h (4.0 h to 4.9 h).',
    });
  });

  test('stays with what was measured while there are no workers', () => {
    const account = accountOf(oneSlowHost, { slots: 0, workers: 0 });
    const { gains, sentence } = explain({ ...input, accounts: [account], changes: [] });
    expect(gains[0]).toEqual({ change: 'workers=+1', gainPercent: 0, etaSeconds: 15_952 });
    expect(sentence).not.toContain('NaN');
  });

  test('of nothing says so', () => {
    const explained = explain({ ...input, accounts: [], changes: [] });
    expect(explained).toEqual({
      shares: {},
      limiting: null,
      criticalHost: null,
      gains: [],
      eta: null,
      sentence: 'Nothing has been measured yet.',
    });
  });

  test('of coordinators that worked at the same time counts that time once', () => {
    const accounts = [1, 2].map(() => accountOf(fewWorkers, { hosts: [], hostsPerSecond: null }));
    const { gains, limiting } = explain({ ...input, remaining: 72_000, accounts, changes: [] });
    expect(limiting).toBe('workers');
    // Twenty pages a second now: 72,000 take an hour, and half of that with twice the workers.
    expect(gains).toEqual([{ change: 'workers=+4', gainPercent: 100, etaSeconds: 1_800 }]);
  });

  test('of a run that has ended is of all of it, not of its last minutes', () => {
    const account = accountOf(oneSlowHost, { recent: fewWorkers, hosts: [], hostsPerSecond: null });
    expect(explain({ ...input, accounts: [account], changes: [] }).limiting).toBe('workers');
    const ended = explain({ ...input, isRunning: false, accounts: [account], changes: [] });
    expect(ended.limiting).toBe('hostGap');
    const stopped = explain({
      ...input,
      isRunning: false,
      isOverBudget: true,
      accounts: [account],
      changes: [],
    });
    expect(stopped.limiting).toBe('budget');
  });
});

describe('a prediction', () => {
  const workers = { kind: 'workers', workers: 8 } as const;

  test('of more workers is worth what they can do, and not more than hosts take', () => {
    expect(predictRate(factsOf(fewWorkers, { slots: 8 }), workers)).toBeCloseTo(40);
    expect(
      predictRate(factsOf(fewWorkers, { slots: 8, hosts: [shop], hostsPerSecond: 25 }), workers),
    ).toBeCloseTo(25);
    expect(predictRate(factsOf(oneSlowHost, { hosts: [shop], hostsPerSecond: 4 }), workers)).toBeCloseTo(4);
  });

  test('of fewer workers is what is left of the slots', () => {
    expect(predictRate(factsOf(fewWorkers, { slots: 8 }), { kind: 'workers', workers: 1 })).toBeCloseTo(5);
  });

  test('of one host says what all take together', () => {
    const facts = factsOf(oneSlowHost, { hosts: [shop], hostsPerSecond: 2_000 / shop.gapMs });
    expect(predictRate(facts, { kind: 'rate', host: 'shop.example', rate: 8 })).toBeCloseTo(6);
    expect(predictRate(facts, { kind: 'rate', host: 'other.example', rate: 8 })).toBeCloseTo(4);
  });

  test('of a faster state saves its share of the time', () => {
    const sums = { ...fewWorkers, busy: { network: 4 * HOUR, archive: 4 * HOUR } };
    const change = { kind: 'speed', state: 'archive', factor: 2 } as const;
    expect(predictRate(factsOf(sums, { slots: 8 }), change)).toBeCloseTo(10 / 0.75);
  });

  test('of more workers is not worth more than a store can write', () => {
    const sums = { ...fewWorkers, busy: { store: 8 * HOUR }, writingMs: HOUR, writes: 3_600 };
    expect(predictRate(factsOf(sums, { slots: 8, writeMs: 1_000 }), workers)).toBeCloseTo(10);
    // A report took ten seconds, and yet there was one each second: the store writes several at once.
    expect(predictRate(factsOf(sums, { slots: 8, writeMs: 10_000 }), workers)).toBeCloseTo(40);
  });

  test('where hosts take no more than they get, more workers are not the answer', () => {
    expect(limitOf(factsOf(fewWorkers))).toBe('workers');
    expect(limitOf(factsOf(fewWorkers, { hosts: [shop], hostsPerSecond: 10 }))).toBe('hostGap');
  });

  test('is as wide as rates have varied', () => {
    expect(bandOf(100, [])).toEqual({ low: 100 / 1.5, high: 200 });
    expect(bandOf(100, [5, 5, 5]).high).toBeCloseTo(100 / 0.9);
    expect(bandOf(100, [1, 9, 1, 9]).high).toBeGreaterThan(300);
  });
});

describe('a free slot', () => {
  const facts = {
    isStoragePaused: false,
    tasksLeft: 10,
    stopped: {},
    pending: 5,
    isSourceDone: true,
    nextHost: null,
    nextTask: null,
  };
  const gap = { at: 5, reason: 'hostGap' } as const;
  const retry = { at: 4, reason: 'retryBackoff' } as const;

  test.each([
    ['store', { isStoragePaused: true, tasksLeft: 0 }],
    ['budget', { tasksLeft: 0, stopped: { hostGap: 3 } }],
    ['robots', { stopped: { hostGap: 1, robots: 3 }, nextTask: retry }],
    ['retryBackoff', { nextHost: gap, nextTask: retry }],
    ['hostGap', { nextHost: gap, nextTask: { ...retry, at: 6 } }],
    ['hostGap', { nextHost: gap }],
    ['retryBackoff', { nextTask: retry }],
    ['source', { pending: 0, isSourceDone: false, nextHost: gap }],
    ['noWork', { pending: 0, tasksLeft: 0 }],
  ] as const)('is idle because of %s', (reason, more) => {
    expect(idleReason({ ...facts, ...more })).toBe(reason);
  });
});

describe('a change', () => {
  test.each([
    ['workers=+8', { kind: 'workers', workers: 10 }],
    ['workers=16', { kind: 'workers', workers: 16 }],
    ['rate:shop.example:8080=0.5', { kind: 'rate', host: 'shop.example:8080', rate: 0.5 }],
    ['parallel:shop.example=8', { kind: 'parallel', host: 'shop.example', parallel: 8 }],
    ['archive=2x', { kind: 'speed', state: 'archive', factor: 2 }],
  ])('%s', (text, change) => {
    expect(parseChange(text, 2)).toEqual(change);
  });

  test.each([
    '',
    'workers',
    'workers=0',
    'workers=-1',
    'rate:=4',
    'rate:a=x',
    'store=2',
    'store=0x',
    'stor=2x',
  ])("'%s' is none", (text) => {
    expect(() => parseChange(text, 2)).toThrow('--what-if');
  });
});
