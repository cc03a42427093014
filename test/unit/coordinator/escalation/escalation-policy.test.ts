import { describe, expect, test } from 'vitest';
import { openEscalationPolicy } from '../../../../src/coordinator/escalation/escalation-policy.ts';
import { STALE_MS } from '../../../../src/core/escalation/score.ts';
import { EscalationSetup, everything, HOST } from '../../../support/coordinator/escalation-setup.ts';
import { specOf, T0 } from '../../../support/fixtures.ts';

describe('escalation', () => {
  test('is off for a job that asks for nothing', () => {
    expect(openEscalationPolicy(specOf(), 'x', Math.random)).toBeNull();
    expect(openEscalationPolicy(specOf({ routes: [{ name: 'all' }] }), 'x', Math.random)).toBeNull();
    expect(openEscalationPolicy(specOf({ identity: { cookies: true } }), 'x', Math.random)).not.toBeNull();
  });

  test('goes up one level an attempt, and the level that works is kept', () => {
    const setup = new EscalationSetup(everything, ({ level }) => (level >= 2 ? null : 'blocked'));
    expect(setup.finish(setup.tasks(3))).toEqual([
      [0, 1, 2],
      [0, 1, 2],
      [0, 1, 2],
    ]);
    expect(setup.finish(setup.tasks(20))).toEqual(Array(20).fill([2]));
  });

  test('sends a few tasks ahead while nobody knows how the host answers', () => {
    const setup = new EscalationSetup(everything, ({ level }) => (level >= 1 ? null : 'captcha'));
    expect(setup.policy.isUnsure(HOST)).toBe(true);
    const { escalating } = setup.round(setup.tasks(4));
    expect(escalating.size).toBe(4);
    // The lowest is known to fail now, and of the next nothing is known.
    expect(setup.policy.isUnsure(HOST)).toBe(true);
    setup.round(setup.tasks(4));
    expect(setup.policy.isUnsure(HOST)).toBe(false);
  });

  test('sends no scouts to hosts whose tasks go the plain way', () => {
    const routes = [{ name: 'hard', match: '/hard/*', escalate: ['identity' as const] }];
    const setup = new EscalationSetup({ routes }, () => null);
    expect(setup.policy.isUnsure(HOST)).toBe(true);
    expect(setup.give(setup.tasks(4, '/easy/')).tasks[0]!.fetchMethod).toBeUndefined();
    expect(setup.policy.isUnsure(HOST)).toBe(false);
    setup.give(setup.tasks(1, '/hard/'));
    expect(setup.policy.isUnsure(HOST)).toBe(true);
  });

  test('ends at its top: what is refused there is over', () => {
    const setup = new EscalationSetup(everything, () => 'blocked');
    const [levels] = setup.finish(setup.tasks(1));
    expect(levels).toEqual([0, 1, 2, 3, 4, 5]);
  });

  test('does not follow a 429, nor for a broken connection', () => {
    for (const code of ['throttled', 'reset', 'unavailable'] as const) {
      const setup = new EscalationSetup(everything, () => code);
      expect(setup.finish(setup.tasks(2))).toEqual([[0], [0]]);
      expect(setup.round(setup.tasks(1)).methods[0]!.level).toBe(0);
    }
  });

  test('goes up one level in all for a page that is forbidden where others are not', () => {
    const setup = new EscalationSetup(everything, (_method, { url }) =>
      url.includes('/private/') ? 'forbidden' : null,
    );
    setup.finish(setup.tasks(20));
    const same = setup.tasks(1);
    same[0]!.url = `https://${HOST}/private/p/7`;
    expect(setup.finish(same)).toEqual([[0, 1]]);
  });

  test('is not tried again and again where every level is known to fail', () => {
    const setup = new EscalationSetup(everything, (_method, { url }) =>
      url.includes('/private/') ? 'forbidden' : null,
    );
    setup.finish(setup.tasks(3, '/private/'));
    setup.finish(setup.tasks(20));
    const attempts = setup.finish(setup.tasks(50, '/private/')).flat().length;
    expect(attempts).toBeLessThan(110);
  });

  test('is learned by URL template', () => {
    const setup = new EscalationSetup(everything, ({ level }, { url }) =>
      url.includes('/hard/') && level < 3 ? 'blocked' : null,
    );
    setup.finish(setup.tasks(10, '/easy/'));
    setup.finish(setup.tasks(10, '/hard/'));
    expect(setup.finish(setup.tasks(5, '/hard/'))).toEqual(Array(5).fill([3]));
    expect(setup.finish(setup.tasks(5, '/easy/'))).toEqual(Array(5).fill([0]));
  });

  test('takes a page without its required elements for a reason to try another way, within its attempts', () => {
    const setup = new EscalationSetup(everything, ({ fetcher }) =>
      fetcher === 'browser' ? null : 'validation',
    );
    const [task] = setup.tasks(1);
    const levels: number[] = [];
    for (let attempt = 1; attempt <= 6; attempt++) {
      const { methods, escalating } = setup.round([{ ...task!, attempt }]);
      levels.push(methods[0]!.level);
      expect(escalating.size).toBe(0);
    }
    expect(levels).toEqual([0, 1, 2, 3, 4, 5]);
  });
});

describe('cheaper ways', () => {
  test('are tried again now and then, and taken when they work again', () => {
    let open = false;
    const setup = new EscalationSetup(everything, ({ level }) => (open || level >= 2 ? null : 'blocked'));
    setup.finish(setup.tasks(4));
    setup.chance = 0.019;
    expect(setup.round(setup.tasks(1)).methods[0]!.level).toBe(1);
    setup.chance = 0.0;
    expect(setup.round(setup.tasks(1)).methods[0]!.level).toBe(0);
    setup.chance = 0.5;
    expect(setup.round(setup.tasks(10)).methods.map(({ level }) => level)).toEqual(Array(10).fill(2));

    open = true;
    let state = 1;
    const levels: number[] = [];
    for (let count = 0; count < 400; count++) {
      state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
      setup.chance = state / 2 ** 32;
      levels.push(setup.round(setup.tasks(1)).methods[0]!.level);
    }
    expect(levels.slice(-50)).toEqual(Array(50).fill(0));
  });

  test('are tried again by one task when nobody tried for long', () => {
    const setup = new EscalationSetup(everything, ({ level }) => (level >= 1 ? null : 'blocked'));
    setup.finish(setup.tasks(4));
    setup.now += STALE_MS + 1_000;
    expect(setup.round(setup.tasks(5)).methods.map(({ level }) => level)).toEqual([0, 1, 1, 1, 1]);
  });

  test('cost 2 % of the tasks at most', () => {
    const setup = new EscalationSetup(everything, ({ level }) => (level >= 1 ? null : 'blocked'));
    setup.finish(setup.tasks(4));
    let lower = 0;
    for (let count = 0; count < 5_000; count++) {
      setup.chance = (count % 100) / 100;
      setup.now = T0;
      if (setup.round(setup.tasks(1)).methods[0]!.level === 0) lower++;
    }
    expect(lower / 5_000).toBeLessThanOrEqual(0.02);
    expect(lower).toBeGreaterThan(0);
  });
});
