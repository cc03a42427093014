import { describe, expect, test } from 'vitest';
import { quietHoursOf } from '../../../../src/core/quiet-hours/quiet-hours.ts';
import { addLatency } from '../../../../src/core/rollups/histogram.ts';
import { countName, emptyRollup } from '../../../../src/core/rollups/rollup.ts';

interface Hour {
  requests: number;
  refused: number;
  ms: number;
}

/** Some days of a host that behaves by the hour of the day. */
function rowsOf(of: (hour: number, day: number) => Partial<Hour>, days = 7) {
  const rows = [];
  for (let day = 0; day < days; day++)
    for (let hour = 0; hour < 24; hour++) {
      const { requests = 200, refused = 0, ms = 90 } = of(hour, day);
      const rollup = emptyRollup();
      rollup.requests = requests;
      rollup.counts.set(countName('failure', 'throttled'), refused);
      // Other failures say nothing about quiet hours.
      rollup.counts.set(countName('failure', 'not-found'), 50);
      for (let answer = 0; answer < requests; answer++) addLatency(rollup.latency, ms);
      rows.push({ at: Date.UTC(2026, 4, 4 + day, hour), rollup });
    }
  return rows;
}

const isNight = (hour: number) => hour >= 22 || hour < 5;

describe('quiet hours of a host', () => {
  test('are those in which it refuses less, also over midnight', () => {
    const found = quietHoursOf(rowsOf((hour) => ({ refused: isNight(hour) ? 0 : 10 })));
    expect(found).toEqual({
      window: { from: '22:00', to: '05:00', timeZone: 'UTC' },
      inside: { refusedShare: 0, medianMs: expect.any(Number), requests: 7 * 7 * 200 },
      outside: { refusedShare: 0.05, medianMs: expect.any(Number), requests: 17 * 7 * 200 },
      days: 7,
    });
  });

  test('are those in which it answers faster, if it refuses no more', () => {
    const faster = (hour: number) => (hour >= 1 && hour < 6 ? 60 : 240);
    const found = quietHoursOf(rowsOf((hour) => ({ ms: faster(hour) })));
    expect(found?.window).toEqual({ from: '01:00', to: '06:00', timeZone: 'UTC' });
    expect(found!.inside.medianMs!).toBeLessThan(found!.outside.medianMs!);
    const refusing = rowsOf((hour) => ({ ms: faster(hour), refused: faster(hour) === 60 ? 20 : 0 }));
    expect(quietHoursOf(refusing)?.window).not.toEqual({ from: '01:00', to: '06:00', timeZone: 'UTC' });
  });

  test.each([
    ['every hour is alike', rowsOf(() => ({ refused: 4 }))],
    ['there are too few days', rowsOf((hour) => ({ refused: isNight(hour) ? 0 : 10 }), 2)],
    ['there are too few requests', rowsOf((hour) => ({ requests: 10, refused: isNight(hour) ? 0 : 1 }))],
    ['only two hours are better', rowsOf((hour) => ({ refused: hour === 3 || hour === 4 ? 0 : 10 }))],
    [
      'one bad day makes the difference',
      rowsOf((hour, day) => (day === 0 && hour === 9 ? { refused: 8 } : {})),
    ],
    [
      'only a few hours are known',
      rowsOf((hour) => ({ requests: hour < 8 ? 200 : 0, refused: hour < 4 ? 0 : 10 })),
    ],
    ['nothing happened', []],
  ])('are not proposed when %s', (_, rows) => {
    expect(quietHoursOf(rows)).toBeNull();
  });

  test('leave out an hour in their middle only with all others: windows are in a row', () => {
    const found = quietHoursOf(rowsOf((hour) => ({ refused: isNight(hour) && hour !== 23 ? 0 : 20 })));
    expect(found?.window).toEqual({ from: '00:00', to: '05:00', timeZone: 'UTC' });
  });
});
