import { describe, expect, test } from 'vitest';
import type { Permit } from '../../../../src/core/batch/batch.ts';
import type { Outcome } from '../../../../src/core/batch/outcome.ts';
import { ChainCheck } from '../../../../src/core/host-log/check-chain.ts';
import { EntriesBack, NO_SUMS } from '../../../../src/core/host-log/checkpoint.ts';
import {
  calibrationEntry,
  checkpointEntry,
  FIRST_PREVIOUS,
  type HostLogRow,
  hashOf,
  lostEntry,
  reportEntry,
  rowOf,
  textOf,
} from '../../../../src/core/host-log/host-log.ts';
import { canonicalJson } from '../../../../src/core/values/canonical-json.ts';
import { traceOf } from '../../../support/fixtures.ts';

const T0 = Date.parse('2026-01-01T00:00:00Z');
const permit: Permit = {
  ...{ host: 'a.example', startAt: T0 + 0.4, endAt: T0 + 10_000, gapMs: 1_000 / 3, parallel: 2 },
};
const failed = (
  taskId: number,
  httpStatus: number | null,
  code: 'throttled' | 'forbidden' | 'reset',
): Outcome => ({
  ...{
    kind: 'failed',
    taskId,
    code,
    detail: '',
    page: null,
    retryAfterMs: null,
    trace: traceOf({ httpStatus }),
  },
});
const report = (use: { sent: number; from: number; to: number; gapMs?: number | null }) =>
  reportEntry({
    ...{ now: T0 + 20_000, job: 'shop-1', batch: 7, permit },
    use: {
      ...{ host: 'a.example', sent: use.sent, finished: true },
      ...{ firstSentAt: T0 + use.from, lastSentAt: T0 + use.to, smallestGapMs: use.gapMs ?? null },
    },
    outcomes: [failed(1, 429, 'throttled'), failed(2, 403, 'forbidden'), failed(3, null, 'reset')],
    robots: [{ kind: 'text', origin: 'https://a.example', text: '', trace: traceOf({ httpStatus: 200 }) }],
    fetched: [{ origin: 'https://a.example', text: 'abc' }],
  })!;

/** A report of one of several addresses. */
const perAddress = {
  ...{ now: T0, job: 'shop-1', batch: 7, address: 'lambda-1', outcomes: [], robots: [] },
  permit: { ...permit, addresses: { gapsMs: {}, otherMs: 500, lanes: 2, knownPage: null } },
  use: { host: 'a.example', sent: 1, lastSentAt: T0, finished: true },
};

/** A chain of entries as it would be exported. */
function chainOf(...texts: string[]): HostLogRow[] {
  let previous = FIRST_PREVIOUS;
  return texts.map((text, index) => {
    const row = rowOf({ number: index + 1, previous, hash: hashOf(previous, text), text });
    previous = row.hash;
    return row;
  });
}

function checked(rows: readonly unknown[], earlier?: ChainCheck) {
  const check = new ChainCheck(earlier?.heads);
  for (const row of rows) check.add(JSON.parse(JSON.stringify(row)));
  return { check, ...check.finish() };
}

test('an entry says what was permitted, sent, answered and refused, in whole numbers', () => {
  expect(report({ sent: 4, from: 1.7, to: 1_002, gapMs: 333.4 })).toEqual({
    kind: 'report',
    host: 'a.example',
    at: '2026-01-01T00:00:20.000Z',
    job: 'shop-1',
    batch: 7,
    permit: {
      ...{ startAt: '2026-01-01T00:00:00.000Z', endAt: '2026-01-01T00:00:10.000Z' },
      ...{ gapUs: 333_333, parallel: 2 },
    },
    requests: 4,
    firstSentAt: '2026-01-01T00:00:00.001Z',
    lastSentAt: '2026-01-01T00:00:01.002Z',
    smallestGapUs: 333_400,
    answers: { '200': 1, '403': 1, '429': 1, none: 1 },
    refusals: 2,
    robots: [
      {
        origin: 'https://a.example',
        sha256: 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad',
      },
    ],
  });
  const nothing = { host: 'a.example', sent: 0, lastSentAt: null, finished: true };
  const about = { now: T0, job: 'shop-1', batch: 7, permit, outcomes: [], robots: [], fetched: [] };
  expect(reportEntry({ ...about, use: nothing })).toBeNull();
});

test('answers are told also where their requests are told with another part of the report', () => {
  const about = { now: T0, job: 'shop-1', batch: 7, permit, robots: [], fetched: [] };
  const use = { host: 'a.example', sent: 0, lastSentAt: T0 + 900, finished: false };
  const outcomes = [failed(1, 429, 'throttled'), failed(2, null, 'reset')];
  expect(reportEntry({ ...about, use, outcomes })).toMatchObject({
    ...{ requests: 0, firstSentAt: null, lastSentAt: null, refusals: 1, answers: { '429': 1, none: 1 } },
  });
  const untried: Outcome[] = [{ kind: 'deferred', taskId: 3 }];
  expect(reportEntry({ ...about, use, outcomes: untried })).toBeNull();
});

test('names are in order wherever entries are made', () => {
  const entries = [
    report({ sent: 4, from: 0, to: 1 }),
    lostEntry({ now: T0, job: 'shop-1', batch: 7, permit }),
    calibrationEntry({ now: T0, host: 'a.example', requests: 3, refusals: 0 }),
    checkpointEntry({ now: T0, host: 'a.example', before: { ...NO_SUMS, hash: '' } }),
    reportEntry({ ...perAddress, fetched: [] })!,
  ];
  for (const entry of entries) expect(textOf(entry)).toBe(canonicalJson(entry));
});

test('the text and the hash of an entry stay as they are documented', () => {
  const text = textOf(lostEntry({ now: T0, job: 'shop-1', batch: 7, permit }));
  expect(text).toBe(
    '{"answers":null,"at":"2026-01-01T00:00:00.000Z","batch":7,"firstSentAt":null,"host":"a.example","job":"shop-1","kind":"lost","lastSentAt":null,"permit":{"endAt":"2026-01-01T00:00:10.000Z","gapUs":333333,"parallel":2,"startAt":"2026-01-01T00:00:00.000Z"},"refusals":null,"requests":null,"robots":[],"smallestGapUs":null}',
  );
  expect(hashOf(FIRST_PREVIOUS, text)).toBe(
    '4993d3e5cbe377854d00c075202dd8ba90fc1193f3dfd07b68d96ea3b59c8173',
  );
});

const texts = [
  textOf(report({ sent: 4, from: 0, to: 1_002, gapMs: 340 })),
  textOf(report({ sent: 4, from: 1_336, to: 2_400 })),
  textOf(lostEntry({ now: T0, job: 'shop-1', batch: 8, permit })),
];

test('a chain that nobody touched is whole', () => {
  const rows = chainOf(...texts);
  const mixed = rows.flatMap((row, index) => [row, ...(index === 0 ? [otherHost] : [])]);
  expect(checked(mixed)).toMatchObject({
    ...{ hosts: 2, entries: 4, requests: 8, refusals: 4, lost: 2, shortGaps: 0, faultCount: 0 },
  });
});

const otherHost = chainOf(
  textOf(lostEntry({ now: T0, job: 'shop-1', batch: 1, permit: { ...permit, host: 'b.example' } })),
)[0]!;

test.each([
  ['changed', (rows: HostLogRow[]) => rows.with(1, { ...rows[1]!, refusals: 0 }), 1, 'was changed'],
  ['removed', (rows: HostLogRow[]) => rows.toSpliced(1, 1), 1, 'missing or doubled'],
  ['doubled', (rows: HostLogRow[]) => rows.toSpliced(1, 0, rows[0]!), 1, 'missing or doubled'],
  [
    'exchanged',
    (rows: HostLogRow[]) => rows.with(1, { ...otherHost, host: 'a.example', number: 2 }),
    3,
    'does not name',
  ],
  ['not an entry', (rows: HostLogRow[]) => [...rows, { host: 7 }], 1, 'not an entry'],
])('an entry that is %s is found', (_name, alter, count, problem) => {
  const { faultCount, faults } = checked(alter(chainOf(...texts)));
  expect(faultCount).toBe(count);
  expect(faults[0]!.problem).toContain(problem);
});

test('figures that are none are a fault, though the hash of their entry fits', () => {
  const entry = report({ sent: 4, from: 1, to: 1_002 });
  for (const change of [
    { requests: '9' },
    { requests: -4 },
    { refusals: { '\u001b[31m': 1 } },
    { firstSentAt: 5 },
    { permit: { ...entry.permit, gapUs: '1' } },
    { permit: { ...entry.permit, address: ['a'] } },
  ]) {
    const text = canonicalJson({ ...entry, ...change });
    expect(checked(chainOf(text))).toMatchObject({ faultCount: 1, entries: 0, requests: 0, refusals: 0 });
  }
  expect(checked(chainOf(canonicalJson(entry)))).toMatchObject({ faultCount: 0, entries: 1, requests: 4 });
});

test('a log goes on from an earlier one, or it is not the same log', () => {
  const earlier = checked(chainOf(...texts.slice(0, 2))).check;
  expect(checked(chainOf(...texts), earlier).faults).toEqual([]);
  expect(checked(chainOf(texts[0]!), earlier).faults[0]).toMatchObject({ number: 1 });
  expect(checked(chainOf(texts[1]!, texts[0]!, texts[2]!), earlier).faults[0]!.problem).toContain(
    'another one than in the earlier log',
  );
});

test('gaps that are shorter than permitted are counted, within an entry and between two', () => {
  const short = textOf(report({ sent: 4, from: 0, to: 1_002, gapMs: 333.3 }));
  const soon = textOf(report({ sent: 4, from: 1_002 + 330, to: 2_400 }));
  expect(checked(chainOf(short, soon)).shortGaps).toBe(2);
  expect(checked(chainOf(texts[0]!, texts[1]!)).shortGaps).toBe(0);
});

test('addresses that are used at the same time have gaps of their own', () => {
  const of = (address: string, from: number, to: number) =>
    textOf(
      reportEntry({
        ...{ ...perAddress, address, fetched: [] },
        use: { ...perAddress.use, sent: 2, firstSentAt: T0 + from, lastSentAt: T0 + to },
      })!,
    );
  const two = chainOf(of('lambda-1', 0, 1_000), of('lambda-2', 1_050, 2_000), of('lambda-1', 1_400, 3_000));
  expect(two[0]!.permit).toMatchObject({ address: 'lambda-1' });
  expect(checked(two)).toMatchObject({ shortGaps: 0, faultCount: 0 });
  expect(checked(chainOf(of('lambda-1', 0, 1_000), of('lambda-1', 1_050, 2_000))).shortGaps).toBe(1);
});

describe('a log that was cut at a checkpoint', () => {
  /** The text of a checkpoint after a chain. */
  const checkpointAfter = (rows: readonly HostLogRow[]) => {
    const back = new EntriesBack();
    back.add(
      rows.toReversed().map(({ number, previous: _, hash: __, ...entry }) => ({
        ...{ number, text: canonicalJson(entry) },
      })),
    );
    return back.checkpoint({ host: 'a.example', last: rows.at(-1)!.hash, now: T0, entries: 1 })!;
  };
  const first = chainOf(...texts);
  const second = chainOf(...texts, checkpointAfter(first), ...texts);
  const whole = chainOf(...texts, checkpointAfter(first), ...texts, checkpointAfter(second));
  const cut = whole.slice(3);

  test('is whole, and says what is missing', () => {
    expect(checked(whole)).toMatchObject({ faultCount: 0, entries: 8, cut: { hosts: 0, entries: 0 } });
    expect(checked(cut)).toMatchObject({ faultCount: 0, entries: 5, requests: 8, lost: 1 });
    expect(checked(cut).cut).toEqual({ hosts: 1, entries: 3, requests: 8, refusals: 4 });
    expect(checked(whole.slice(7))).toMatchObject({
      faultCount: 0,
      entries: 1,
      cut: { entries: 7, requests: 16 },
    });
    expect(whole[7]!.before).toEqual({
      ...{ entries: 7, firstAt: whole[0]!.at, hash: whole[6]!.hash },
      ...{ lost: 2, permits: 6, refusals: 8, requests: 16 },
    });
  });

  test.each<[string, (rows: HostLogRow[]) => HostLogRow[], string]>([
    ['without its checkpoint', (rows) => rows.slice(1), 'entry 1 was expected here'],
    ['with an entry changed', (rows) => rows.with(1, { ...rows[1]!, refusals: 0 }), 'was changed'],
    ['with an entry removed', (rows) => rows.toSpliced(2, 1), 'missing or doubled'],
    [
      'with entries in another order',
      (rows) => rows.with(1, rows[2]!).with(2, rows[1]!),
      'missing or doubled',
    ],
    [
      'with other sums',
      (rows) => rows.with(0, { ...rows[0]!, before: { ...rows[0]!.before!, refusals: 0 } }),
      'was changed',
    ],
    [
      'with another beginning',
      (rows) => rows.with(0, { ...rows[0]!, previous: FIRST_PREVIOUS }),
      'does not name the hash',
    ],
  ])('is not whole %s', (_, alter, problem) => {
    const { faults } = checked(alter([...cut]));
    expect(faults.map((fault) => fault.problem).join('; ')).toContain(problem);
  });

  test('a checkpoint whose sums do not fit the entries before it is found, though its hash fits', () => {
    const { before, ...rest } = JSON.parse(checkpointAfter(first));
    const forged = canonicalJson({ ...rest, before: { ...before, refusals: 0 } });
    expect(checked(chainOf(...texts, forged)).faults[0]).toMatchObject({
      ...{ number: 4, problem: 'its sums do not fit the entries before it' },
    });
  });

  test('goes on from an earlier log as far as that can be told', () => {
    const earlier = (count: number) => checked(whole.slice(0, count)).check;
    expect(checked(cut, earlier(5)).faults).toEqual([]);
    expect(checked(cut, earlier(3)).faults).toEqual([]);
    expect(checked(cut, earlier(2)).faults[0]!.problem).toContain('what is between was cut');
    const other = checked(chainOf(texts[1]!, texts[0]!, texts[2]!)).check;
    expect(checked(cut, other).faults[0]!.problem).toContain('another one than in the earlier log');
  });
});
