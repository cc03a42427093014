import { describe, expect, test } from 'vitest';
import type { JobInput } from '../../../../src/core/job-schema/job.ts';
import { Desk, everything, HOST } from '../../../support/coordinator/escalation-setup.ts';

describe('identities', () => {
  const browser: Partial<JobInput> = { identity: { mode: 'browser' } };

  test('stay while they work, and are the same after a restart', () => {
    const desk = new Desk(browser, () => null);
    const [first] = desk.round(desk.tasks(3)).methods;
    expect(first!.identity).toMatch(/^[a-z0-9]{7}-1$/);
    desk.restart();
    const all = desk.round(desk.tasks(20)).methods.map(({ identity }) => identity);
    expect(new Set(all)).toEqual(new Set([first!.identity]));
  });

  test('are retired when they are refused, and leave their cookies behind', () => {
    let banned = '';
    const desk = new Desk(browser, ({ identity }) => (identity === banned ? 'captcha' : null));
    const [first] = desk.round(desk.tasks(5)).methods;
    banned = first!.identity!;
    const jar = { origin: `https://${HOST}`, identity: banned, cookies: [cookie('a', '1')] };
    desk.book.takeCookies([jar]);
    expect(desk.give(desk.tasks(1)).cookies).toEqual([jar]);
    for (let round = 0; round < 8; round++) desk.finish(desk.tasks(2));
    const [later] = desk.round(desk.tasks(1)).methods;
    expect(later!.identity).not.toBe(banned);
    expect(later!.level).toBe(0);
    expect(desk.give(desk.tasks(1)).cookies).toEqual([]);
    const rows = desk.book.takeChanges();
    expect(rows.filter(({ template }) => template.startsWith('@'))).toEqual([
      { host: `https://${HOST}`, template: `@cookies ${banned}`, stats: null },
    ]);
  });

  test('another one is taken by the level that says so', () => {
    const input: Partial<JobInput> = { ...browser, routes: [{ name: 'all', escalate: ['identity'] }] };
    const desk = new Desk(input, ({ level }) => (level < 3 ? 'blocked' : null));
    const seen: (string | null)[] = [];
    let [task] = desk.tasks(1);
    for (let attempt = 1; attempt <= 4; attempt++) {
      const { methods } = desk.round([{ ...task!, attempt }]);
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
    const desk = new Desk(everything, ({ level }) => (level >= 2 ? null : 'blocked'));
    desk.finish(desk.tasks(4));
    desk.restart();
    expect(desk.book.isUnsure(HOST)).toBe(false);
    expect(desk.finish(desk.tasks(5))).toEqual(Array(5).fill([2]));
    expect(desk.book.takeChanges().length).toBeGreaterThan(0);
    expect(desk.book.takeChanges()).toEqual([]);
  });

  test('has cookies of bounded size only', () => {
    const desk = new Desk({ identity: { cookies: true } }, () => null);
    const jar = { origin: `https://${HOST}`, identity: null, cookies: [cookie('big', 'x'.repeat(10_000))] };
    desk.book.takeCookies([jar]);
    expect(desk.give(desk.tasks(1)).cookies).toEqual([]);
    desk.book.takeCookies([{ ...jar, cookies: [cookie('a', '1')] }]);
    expect(desk.give(desk.tasks(1)).cookies).toHaveLength(1);
    desk.restart();
    expect(desk.give(desk.tasks(1)).cookies).toEqual([{ ...jar, cookies: [cookie('a', '1')] }]);
  });
});
