import { describe, expect, test } from 'vitest';
import { figuresOf, historyLines } from '../../../bench/history.ts';
import { costRows, judgeCost } from '../../../bench/report/cost-section.ts';

describe('history of the benchmarks', () => {
  test('has every number of a scenario but those of single rounds, named by its row', () => {
    const data = {
      date: '2026-01-01',
      site: { pages: 20_000 },
      rounds: 3,
      rows: [
        {
          id: 'seine-links',
          samples: [{ pages: 1 }],
          measured: { cpuMicros: 512.345678, peakMb: Number.NaN },
        },
        { tasks: 1_000_000, leaseUs: 30 },
        { leaseUs: 40 },
      ],
      status: { p50: 1.5 },
    };
    expect(figuresOf('crawl', data)).toEqual({
      'crawl.seine-links.cpuMicros': 512.3,
      'crawl.1000000.tasks': 1_000_000,
      'crawl.1000000.leaseUs': 30,
      'crawl.2.leaseUs': 40,
      'crawl.status.p50': 1.5,
    });
  });

  const run = (commit: string, figures: Record<string, number>, workMs?: number) => ({
    date: '2026-01-01',
    commit,
    machine: 'this',
    ...(workMs === undefined ? {} : { workMs }),
    figures,
  });
  const textsOf = (...args: Parameters<typeof historyLines>) => historyLines(...args).map(({ text }) => text);

  test('shows each figure with the runs that have it, and the last against the one before', () => {
    const entries = [
      run('a', { 'x.cpuMs': 200, 'x.count': 3 }),
      run('b', { 'x.cpuMs': 100, 'y.perSecond': 7, 'z.urlsPerSecond': 7 }),
      run('c', { 'x.cpuMs': 105 }),
    ];
    expect(textsOf(entries, [])).toEqual([
      'x.cpuMs          200 (a) → 100 (b) → 105 (c)  1.05 ×',
      'z.urlsPerSecond  7 (b)',
    ]);
    expect(textsOf(entries, ['y'])).toEqual(['y.perSecond  7 (b)']);
    expect(textsOf(entries, ['x.count'])).toEqual(['x.count  3 (a)']);
  });

  test('marks what got worse: more time or memory, fewer pages a second', () => {
    const worse = (name: string, before: number, last: number) =>
      historyLines([run('a', { [name]: before }), run('b', { [name]: last })], [])[0]!.worse;
    expect(worse('x.peakMb', 100, 120)).toBeCloseTo(0.2);
    expect(worse('x.peakMb', 100, 80)).toBe(0);
    expect(worse('x.pagesPerSecond', 100, 80)).toBeCloseTo(0.2);
    expect(worse('x.pagesPerSecond', 100, 120)).toBe(0);
    expect(worse('x.pagesPerSecond', 100, 95)).toBe(0);
    expect(worse('fleet.settle.sqlite', 100, 50)).toBeCloseTo(0.5);
  });

  test('takes the speed of the machine out of what was timed, and says where it is not known', () => {
    const figures = { 'x.cpuMicros': 100, 'x.pagesPerSecond': 1_000, 'x.peakMb': 100 };
    const slow = { 'x.cpuMicros': 200, 'x.pagesPerSecond': 500, 'x.peakMb': 100 };
    // The machine was half as fast, and so was all that was timed.
    for (const { text, worse } of historyLines([run('a', figures, 10), run('b', slow, 20)], [])) {
      expect(text).toMatch(/ {2}1\.00 ×$/);
      expect(worse).toBe(0);
    }
    const [cpu] = textsOf([run('a', figures), run('b', slow, 20)], []);
    expect(cpu).toMatch(/ {2}2\.00 × {2}WORSE, or the machine was slower$/);
    // As fast as before on a machine of twice the speed is a loss.
    const [own] = historyLines([run('a', figures, 20), run('b', figures, 10)], []);
    expect(own!.worse).toBeCloseTo(1);
  });

  test('shows rates and CPU also as ratios to what ran beside them', () => {
    const entries = [
      run('a', { 'crawl.spider-links.cpuMicros': 800, 'crawl.seine-links.cpuMicros': 400 }),
      run('b', { 'crawl.spider-links.cpuMicros': 400, 'crawl.seine-links.cpuMicros': 300 }),
    ];
    const [line] = historyLines(entries, ['crawl.seine-links.cpuMicros ÷']);
    expect(line).toMatchObject({
      text: 'crawl.seine-links.cpuMicros ÷ spider-links  0.5 (a) → 0.75 (b)  1.50 ×  WORSE',
      worse: expect.closeTo(0.5),
    });
  });
});

test('a million pages cost what their CPU costs on a machine, and in Lambda the longer of computing and waiting', () => {
  const [machine, spot, spotWeb, atOnce, web] = costRows(500).map(({ dollars }) => dollars);
  expect(machine).toBeCloseTo((500 / 2 / 3_600) * 0.0765, 6);
  expect(spot).toBeLessThan(machine!);
  expect(spotWeb).toBeCloseTo(spot! * 6, 6);
  const calls = 1e6 / 60;
  const fixed = calls * (0.000_000_2 + 0.000_005);
  expect(web).toBeCloseTo(fixed + calls * 1 * 0.000_013_333_4, 6);
  expect(atOnce).toBeCloseTo(fixed + calls * 60 * 0.0005 * (1_769 / 1_024) * 0.000_013_333_4, 6);
  // Where computing takes longer than the pages, that is paid.
  const heavy = costRows(50_000).map(({ dollars }) => dollars);
  expect(heavy[4]).toBe(heavy[3]);
  expect(judgeCost(500)).toMatchObject({ measured: '$0.0128', passed: true });
  expect(judgeCost(20_000).passed).toBe(false);
  expect(judgeCost(undefined).passed).toBeUndefined();
});
