import { describe, expect, test } from 'vitest';
import { methodCostsOf } from '../../../../src/coordinator/reports/method-costs.ts';
import { attemptDollars, usualDollars } from '../../../../src/core/cost/attempt-cost.ts';
import { PRICES_DEFAULT } from '../../../../src/core/cost/cost.ts';
import { escalationLevels } from '../../../../src/core/escalation/escalation.ts';
import type { JobInput } from '../../../../src/core/job-schema/job.ts';
import { EscalationSetup, HOST } from '../../../support/coordinator/escalation-setup.ts';
import { specOf } from '../../../support/fixtures.ts';

const input: Partial<JobInput> = {
  routes: [
    { name: 'all', fetcher: 'auto', proxy: 'pool', escalate: ['impersonate', 'proxy', 'browser', 'api'] },
  ],
  proxies: { pools: { pool: { from: { list: ['http://proxy.example:8080'] } } } },
  escalation: { choose: 'cheapest' },
};
const LEVELS = escalationLevels(specOf(input).routes[0]!, specOf(input));
const levelOf = (methodName: string) => LEVELS.find((level) => level.methodName === methodName)!.level;

describe('the levels of a job that compares costs', () => {
  test('have a browser without a proxy, too', () => {
    expect(LEVELS.map(({ methodName }) => methodName)).toEqual([
      'http honest',
      'impersonate full',
      'impersonate full via pool',
      'browser full',
      'browser full via pool',
      'api full',
    ]);
    const { escalation: _, ...others } = input;
    const lowest = escalationLevels(specOf(others).routes[0]!, specOf(others));
    expect(lowest.map(({ methodName }) => methodName)).not.toContain('browser full');
  });

  test('cost more the more they use, also where prices are not set', () => {
    const [plain, , pool, browser, , api] = LEVELS.map((level) => usualDollars(level, PRICES_DEFAULT));
    expect(plain!.most).toBeLessThan(browser!.least);
    expect(browser!.least).toBeLessThan(pool!.most);
    expect(api!.least).toBe(api!.most);
    const use = { fetcher: 'api', isProxied: false, bytes: 0, durationMs: 0, credits: 10 } as const;
    expect(attemptDollars(use, { ...PRICES_DEFAULT, apiCall: 0.01 })).toBeCloseTo(0.1);
  });
});

describe('the cheapest level', () => {
  test('stays the plain one where that works', () => {
    const setup = new EscalationSetup(input, () => null);
    expect(setup.policy.isUnsure(HOST)).toBe(true);
    expect(setup.finish(setup.tasks(40))).toEqual(Array(40).fill([0]));
    expect(setup.policy.isUnsure(HOST)).toBe(false);
  });

  test('is found below the order of the levels: a browser costs less than a proxy', () => {
    const setup = new EscalationSetup(input, ({ fetcher, pool }) =>
      fetcher === 'browser' || pool !== null ? null : 'blocked',
    );
    for (let round = 0; round < 10; round++) setup.finish(setup.tasks(4));
    expect(setup.finish(setup.tasks(10))).toEqual(Array(10).fill([levelOf('browser full')]));
  });

  test('goes on from a shell to a level that renders, and gives no page up on its way', () => {
    const setup = new EscalationSetup(input, ({ fetcher, pool }) =>
      fetcher === 'http' || fetcher === 'impersonate'
        ? 'script-only'
        : pool === null && fetcher !== 'api'
          ? 'blocked'
          : null,
    );
    const first = setup.finish(setup.tasks(1))[0]!;
    expect(first.slice(0, 2)).toEqual([0, levelOf('browser full')]);
    expect([levelOf('browser full via pool'), levelOf('api full')]).toContain(first.at(-1));
  });

  test('is known after a restart, with what exploring cost', async () => {
    const setup = new EscalationSetup(input, ({ pool }) => (pool === null ? 'blocked' : null));
    for (let round = 0; round < 10; round++) setup.finish(setup.tasks(4));
    setup.restart();
    expect(setup.policy.isUnsure(HOST)).toBe(false);
    expect(setup.finish(setup.tasks(3))).toEqual(Array(3).fill([levelOf('impersonate full via pool')]));
    const rows = JSON.parse(JSON.stringify(setup.policy.takeChanges()));
    const report = await methodCostsOf(
      { escalations: { load: async () => rows } },
      { id: 1, spec: specOf(input) },
    );
    expect(report!.all[0]).toMatchObject({ method: 'impersonate full via pool', attempts: 43, pages: 43 });
    expect(report!.byHost.get(HOST)!.find(({ method }) => method === 'http honest')).toMatchObject({
      pages: 0,
      dollarsPerPage: null,
    });
    expect(report!.explored).toBeGreaterThanOrEqual(0);
  });

  test('explores for no more than a twentieth of what was paid, and no more than the job says', () => {
    const money = (exploreDollars: number) => {
      let isOpen = false;
      const setup = new EscalationSetup(
        { ...input, escalation: { choose: 'cheapest', exploreDollars } },
        ({ pool, fetcher }) => (isOpen || (pool !== null && fetcher !== 'browser') ? null : 'blocked'),
      );
      // Every chance is taken.
      setup.chance = 0.000_1;
      for (let round = 0; round < 20; round++) setup.finish(setup.tasks(10));
      isOpen = true;
      setup.finish(setup.tasks(1));
      const row = setup.policy.takeChanges().find(({ template }) => template === '@explored')!;
      return row.stats as { paid: number; explored: number };
    };
    const some = money(1);
    expect(some.explored).toBeGreaterThan(0);
    expect(some.explored).toBeLessThanOrEqual(some.paid * 0.05);
    expect(money(0).explored).toBe(0);
  });
});
