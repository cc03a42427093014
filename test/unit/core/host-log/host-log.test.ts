import { expect, test } from 'vitest';
import type { Permit } from '../../../../src/core/batch/batch.ts';
import type { Outcome } from '../../../../src/core/batch/outcome.ts';
import { ChainCheck } from '../../../../src/core/host-log/check-chain.ts';
import {
  calibrationEntry,
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

test('names are in order wherever entries are made', () => {
  const entries = [
    report({ sent: 4, from: 0, to: 1 }),
    lostEntry({ now: T0, job: 'shop-1', batch: 7, permit }),
    calibrationEntry({ now: T0, host: 'a.example', requests: 3, refusals: 0 }),
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
