import { describe, expect, test } from 'vitest';
import { T0 } from '../../../support/fixtures.ts';
import type { StoreSetup } from '../store-setup.ts';

export function testAlerts(setup: StoreSetup): void {
  describe('alerts', () => {
    test('fire once until they are resolved, and are kept as history', async () => {
      const { alerts } = setup.store;
      const about = { kind: 'success-low', subject: 'shop', text: 'a', now: T0 } as const;
      const tries = await Promise.all([1, 2, 3].map(() => alerts.fire(about)));
      expect(tries.filter((id) => id !== null)).toHaveLength(1);
      await alerts.fire({ ...about, subject: '' });
      expect(await alerts.resolve('success-low', 'shop', T0 + 1)).toBe(true);
      expect(await alerts.resolve('success-low', 'shop', T0 + 2)).toBe(false);
      expect(await alerts.fire({ ...about, text: 'b', now: T0 + 3 })).not.toBeNull();
      expect((await alerts.firing()).map(({ subject, text }) => [subject, text])).toEqual([
        ['', 'a'],
        ['shop', 'b'],
      ]);
      const all = await alerts.list({ before: Number.MAX_SAFE_INTEGER, limit: 10 });
      expect(all.map(({ subject, firedAt, resolvedAt }) => [subject, firedAt, resolvedAt])).toEqual([
        ['shop', T0 + 3, null],
        ['', T0, null],
        ['shop', T0, T0 + 1],
      ]);
      expect(await alerts.list({ before: all[0]!.id, limit: 1 })).toEqual([all[1]]);
      await alerts.forget(T0 + 2);
      expect(await alerts.list({ before: Number.MAX_SAFE_INTEGER, limit: 10 })).toEqual(all.slice(0, 2));
    });

    test('are silenced until a time, by kind and job or all of them', async () => {
      const { alerts } = setup.store;
      await alerts.silence({ kind: 'disk-low', subject: null, until: T0 + 10 });
      await alerts.silence({ kind: null, subject: 'shop', until: T0 + 20 });
      await alerts.silence({ kind: 'disk-low', subject: null, until: T0 + 30 });
      expect(await alerts.silences(T0 + 10)).toEqual([
        { kind: null, subject: 'shop', until: T0 + 20 },
        { kind: 'disk-low', subject: null, until: T0 + 30 },
      ]);
      expect(await alerts.silences(T0 + 30)).toEqual([]);
    });
  });
}
