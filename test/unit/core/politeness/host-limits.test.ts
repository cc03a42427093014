import { describe, expect, test } from 'vitest';
import { CompiledWindow, compileHostLimits } from '../../../../src/core/politeness/host-limits.ts';
import { specOf } from '../../../support/fixtures.ts';

describe('limits of hosts', () => {
  const limitsOf = compileHostLimits(
    specOf({
      politeness: {
        rate: 4,
        hosts: {
          'slow.example': { rate: 0.5, parallel: 1 },
          '*.shop.example': { rate: 'max' },
          'night.example': { window: { from: '22:00', to: '06:00' } },
        },
      },
    }),
  );

  test('the first rule that fits decides, whatever the port', () => {
    expect(limitsOf('slow.example')).toMatchObject({ rate: 0.5, parallel: 1 });
    expect(limitsOf('slow.example:8080')).toMatchObject({ rate: 0.5 });
    expect(limitsOf('a.shop.example')).toMatchObject({ rate: Number.POSITIVE_INFINITY, parallel: 4 });
    expect(limitsOf('shop.example')).toMatchObject({ rate: 4 });
    expect(limitsOf('notslow.example')).toMatchObject({ rate: 4, window: null });
  });

  test('what a rule does not say is as for all', () => {
    expect(limitsOf('night.example')).toMatchObject({ rate: 4, parallel: 4 });
    expect(limitsOf('night.example').window?.isOpen(Date.UTC(2026, 0, 1, 23))).toBe(true);
  });

  test('a group of hosts has the rule of its domain, of all below it, or of its address', () => {
    expect(limitsOf('*.slow.example')).toMatchObject({ rate: 0.5 });
    expect(limitsOf('*.shop.example')).toMatchObject({ rate: Number.POSITIVE_INFINITY });
    const byAddress = compileHostLimits(
      specOf({ politeness: { hosts: { '203.0.113.7': { rate: 1 }, '2001:db8::1': { rate: 2 } } } }),
    );
    expect(byAddress('ip:203.0.113.7')).toMatchObject({ rate: 1 });
    expect(byAddress('ip:2001:db8::1')).toMatchObject({ rate: 2 });
    expect(byAddress('ip:203.0.113.77')).toMatchObject({ rate: 4 });
    expect(byAddress('203.0.113.7:8080')).toMatchObject({ rate: 1 });
  });
});

describe('hours of a host', () => {
  const night = new CompiledWindow({ from: '22:00', to: '06:00', timeZone: 'Europe/Paris' });

  test('are those of its time zone, over midnight too', () => {
    // Paris is two hours ahead of UTC in summer, one in winter.
    expect(night.isOpen(Date.UTC(2026, 6, 1, 20, 0))).toBe(true);
    expect(night.isOpen(Date.UTC(2026, 6, 1, 19, 59))).toBe(false);
    expect(night.isOpen(Date.UTC(2026, 0, 1, 20, 30))).toBe(false);
    expect(night.isOpen(Date.UTC(2026, 0, 1, 21, 0))).toBe(true);
    expect(night.isOpen(Date.UTC(2026, 0, 2, 4, 59))).toBe(true);
    expect(night.isOpen(Date.UTC(2026, 0, 2, 5, 0))).toBe(false);
  });

  test('open next at their beginning', () => {
    expect(night.opensAt(Date.UTC(2026, 0, 1, 12, 0, 30))).toBe(Date.UTC(2026, 0, 1, 21, 0));
    const open = Date.UTC(2026, 0, 1, 22, 10, 5);
    expect(night.opensAt(open)).toBe(open);
  });

  test('on the days on which the clocks change they are found all the same', () => {
    // On 2026-03-29 the hour from 2 to 3 does not exist in Paris.
    const lost = new CompiledWindow({ from: '02:15', to: '02:45', timeZone: 'Europe/Paris' });
    const opens = lost.opensAt(Date.UTC(2026, 2, 28, 23, 30));
    expect(lost.isOpen(opens)).toBe(true);
    const spring = night.opensAt(Date.UTC(2026, 2, 29, 12));
    expect(new Date(spring).toISOString()).toBe('2026-03-29T20:00:00.000Z');
  });

  test('close at their end, by the minute, also on the days on which the clocks change', () => {
    expect(night.closesAt(Date.UTC(2026, 0, 1, 22, 10, 5))).toBe(Date.UTC(2026, 0, 2, 5, 0));
    expect(night.closesAt(Date.UTC(2026, 0, 2, 4, 59, 59, 999))).toBe(Date.UTC(2026, 0, 2, 5, 0));
    expect(night.closesAt(Date.UTC(2026, 2, 28, 23))).toBe(Date.UTC(2026, 2, 29, 4, 0));
    expect(night.closesAt(Date.UTC(2026, 9, 24, 23))).toBe(Date.UTC(2026, 9, 25, 5, 0));
    const odd = new CompiledWindow({ from: '22:00', to: '02:37', timeZone: 'Europe/Paris' });
    expect(odd.closesAt(Date.UTC(2026, 0, 1, 23))).toBe(Date.UTC(2026, 0, 2, 1, 37));
    // At two o'clock it is three: 02:37 does not come.
    expect(odd.closesAt(Date.UTC(2026, 2, 28, 23))).toBe(Date.UTC(2026, 2, 29, 1, 0));
  });

  test('leave no time for a permit just before they end', () => {
    const end = Date.UTC(2026, 0, 2, 5, 0);
    expect(night.nextPermit(end - 60_000)).toEqual({ opensAt: end - 60_000, closesAt: end - 500 });
    const tomorrow = { opensAt: Date.UTC(2026, 0, 2, 21), closesAt: Date.UTC(2026, 0, 3, 5) - 500 };
    expect(night.nextPermit(end - 900)).toEqual(tomorrow);
    expect(night.nextPermit(end)).toEqual(tomorrow);
    expect(night.nextPermit(end - 8 * 3_600_000 - 10).opensAt).toBe(end - 8 * 3_600_000);
  });

  test('the same time twice is the whole day, and a wrong time zone is an error', () => {
    expect(new CompiledWindow({ from: '08:00', to: '08:00', timeZone: 'UTC' }).isOpen(0)).toBe(true);
    expect(new CompiledWindow({ from: '08:00', to: '08:00', timeZone: 'UTC' }).closesAt(0)).toBe(
      Number.POSITIVE_INFINITY,
    );
    expect(() => new CompiledWindow({ from: '08:00', to: '09:00', timeZone: 'Mars/North' })).toThrow(
      "unknown time zone 'Mars/North'",
    );
  });
});
