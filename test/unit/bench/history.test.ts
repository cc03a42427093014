import { describe, expect, test } from 'vitest';
import { figuresOf, historyLines } from '../../../bench/history.ts';
import { costRows } from '../../../bench/report/cost-section.ts';

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

  test('shows each figure with the runs that have it, and the last against the one before', () => {
    const run = (commit: string, figures: Record<string, number>) => ({
      date: '2026-01-01',
      commit,
      machine: 'this',
      figures,
    });
    const entries = [
      run('a', { 'x.cpu': 200 }),
      run('b', { 'x.cpu': 100, 'y.rate': 7 }),
      run('c', { 'x.cpu': 150 }),
    ];
    expect(historyLines(entries, [])).toEqual([
      'x.cpu   200 (a) → 100 (b) → 150 (c)  1.50 ×',
      'y.rate  7 (b)',
    ]);
    expect(historyLines(entries, ['y'])).toEqual(['y.rate  7 (b)']);
  });
});

test('a million pages cost what their CPU costs on a machine, and in Lambda the longer of computing and waiting', () => {
  const [machine, spot, atOnce, web] = costRows(500).map(({ dollars }) => dollars);
  expect(machine).toBeCloseTo((500 / 2 / 3_600) * 0.0765, 6);
  expect(spot).toBeLessThan(machine!);
  const calls = 1e6 / 60;
  const fixed = calls * (0.000_000_2 + 0.000_005);
  expect(web).toBeCloseTo(fixed + calls * 1 * 0.000_013_333_4, 6);
  expect(atOnce).toBeCloseTo(fixed + calls * 60 * 0.0005 * (1_769 / 1_024) * 0.000_013_333_4, 6);
  // Where computing takes longer than the pages, that is paid.
  const heavy = costRows(50_000).map(({ dollars }) => dollars);
  expect(heavy[3]).toBe(heavy[2]);
});
