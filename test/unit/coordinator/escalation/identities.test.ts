import { describe, expect, test } from 'vitest';
import type { JobInput } from '../../../../src/core/job-schema/job.ts';
import { EscalationSetup, everything, HOST } from '../../../support/coordinator/escalation-setup.ts';

describe('identities', () => {
  const browser: Partial<JobInput> = { identity: { mode: 'browser' } };

  test('stay while they work, and are the same after a restart', () => {
    const setup = new EscalationSetup(browser, () => null);
    const [first] = setup.round(setup.tasks(3)).methods;
    expect(first!.identity).toMatch(/^[a-z0-9]{7}-1$/);
    setup.restart();
    const all = setup.round(setup.tasks(20)).methods.map(({ identity }) => identity);
    expect(new Set(all)).toEqual(new Set([first!.identity]));
  });

  test('are retired when they are refused, and leave their cookies behind', () => {
    let banned = '';
    const setup = new EscalationSetup(browser, ({ identity }) => (identity === banned ? 'captcha' : null));
    const [first] = setup.round(setup.tasks(5)).methods;
    banned = first!.identity!;
    const jar = { origin: `https://${HOST}`, identity: banned, cookies: [cookie('a', '1')] };
    setup.policy.takeCookies([jar]);
    expect(setup.give(setup.tasks(1)).cookies).toEqual([jar]);
    for (let round = 0; round < 8; round++) setup.finish(setup.tasks(2));
    const [later] = setup.round(setup.tasks(1)).methods;
    expect(later!.identity).not.toBe(banned);
    expect(later!.level).toBe(0);
    expect(setup.give(setup.tasks(1)).cookies).toEqual([]);
    const rows = setup.policy.takeChanges();
    expect(rows.filter(({ template }) => template.startsWith('@'))).toEqual([
      { host: `https://${HOST}`, template: `@cookies ${banned}`, stats: null },
    ]);
  });

  test('another one is taken by the level that says so', () => {
    const input: Partial<JobInput> = { ...browser, routes: [{ name: 'all', escalate: ['identity'] }] };
    const setup = new EscalationSetup(input, ({ level }) => (level < 3 ? 'blocked' : null));
    const seen: (string | null)[] = [];
    let [task] = setup.tasks(1);
    for (let attempt = 1; attempt <= 4; attempt++) {
      const { methods } = setup.round([{ ...task!, attempt }]);
      task = { ...task!, attempt };
      seen.push(methods[0]!.identity);
    }
    expect(new Set(seen.slice(0, 3)).size).toBe(1);
    expect(seen[3]).not.toBe(seen[0]);
  });
});

function cookie(name: string, value: string) {
  return { name, value, domain: HOST, path: '/', expiresAt: null, secure: true, hostOnly: true };
}

describe('what is written down', () => {
  test('brings the learned levels back', () => {
    const setup = new EscalationSetup(everything, ({ level }) => (level >= 2 ? null : 'blocked'));
    setup.finish(setup.tasks(4));
    setup.restart();
    expect(setup.policy.isUnsure(HOST)).toBe(false);
    expect(setup.finish(setup.tasks(5))).toEqual(Array(5).fill([2]));
    expect(setup.policy.takeChanges().length).toBeGreaterThan(0);
    expect(setup.policy.takeChanges()).toEqual([]);
  });

  test('has cookies of bounded size only', () => {
    const setup = new EscalationSetup({ identity: { cookies: true } }, () => null);
    const jar = { origin: `https://${HOST}`, identity: null, cookies: [cookie('big', 'x'.repeat(10_000))] };
    setup.policy.takeCookies([jar]);
    expect(setup.give(setup.tasks(1)).cookies).toEqual([]);
    setup.policy.takeCookies([{ ...jar, cookies: [cookie('a', '1')] }]);
    expect(setup.give(setup.tasks(1)).cookies).toHaveLength(1);
    setup.restart();
    expect(setup.give(setup.tasks(1)).cookies).toEqual([{ ...jar, cookies: [cookie('a', '1')] }]);
  });
});
