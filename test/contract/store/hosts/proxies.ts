import { describe, expect, test } from 'vitest';
import { newHealth } from '../../../../src/core/proxies/proxy-health.ts';
import { T0 } from '../../../support/fixtures.ts';
import type { StoreSetup } from '../store-setup.ts';

export function testProxies(setup: StoreSetup): void {
  describe('proxies', () => {
    const health = (at: number, change = {}) => ({ ...newHealth(at), ...change });

    test('are remembered by id and host, the newest news of each', async () => {
      const { proxies } = setup.store;
      const early = health(T0, { ok: 1.5, until: T0 + 5_000 });
      const late = health(T0 + 2_000.5, { bad: 2, rests: 1 });
      await proxies.save(
        [
          { proxy: 'a:1#x', host: null, health: early },
          { proxy: 'a:1#x', host: 'one.example', health: early },
        ],
        0,
      );
      await proxies.save([{ proxy: 'a:1#x', host: null, health: late }], 0);
      await proxies.save([{ proxy: 'a:1#x', host: null, health: early }], 0);
      expect(await proxies.load(0, 10)).toEqual([
        { proxy: 'a:1#x', host: null, health: late },
        { proxy: 'a:1#x', host: 'one.example', health: early },
      ]);
      expect(await proxies.load(0, 1)).toHaveLength(1);
      expect(await proxies.load(T0 + 1, 10)).toEqual([{ proxy: 'a:1#x', host: null, health: late }]);
    });

    test('are forgotten in time', async () => {
      const { proxies } = setup.store;
      await proxies.save([{ proxy: 'a:1#x', host: null, health: health(T0) }], T0);
      expect(await proxies.load(0, 10)).toHaveLength(1);
      await proxies.save([], T0 + 1);
      expect(await proxies.load(0, 10)).toEqual([]);
    });

    test('and what the API took is added up by job', async () => {
      const { proxies } = setup.store;
      expect(await proxies.cost(setup.job.id)).toBe(0);
      await proxies.addCost(setup.job.id, 1.5);
      await proxies.addCost(setup.job.id, 10);
      expect(await proxies.cost(setup.job.id)).toBe(11.5);
      expect(await proxies.cost(setup.job.id + 1)).toBe(0);
    });
  });
}
