import { describe, expect, test } from 'vitest';
import { changeOf } from '../../../../src/coordinator/settle/settle-tasks.ts';
import { escalationLevels, fetcherOfRoute, mayRender } from '../../../../src/core/escalation/escalation.ts';
import { RETRY_SHARE, STALE_MS } from '../../../../src/core/escalation/score.ts';
import type { JobInput } from '../../../../src/core/job-schema/job.ts';
import { EscalationSetup, HOST } from '../../../support/coordinator/escalation-setup.ts';
import { specOf, T0, traceOf } from '../../../support/fixtures.ts';

const honest = { identity: {} };
const auto: Partial<JobInput> = { routes: [{ name: 'all', fetcher: 'auto' }] };
const words = (route: Parameters<typeof escalationLevels>[0]) =>
  escalationLevels(route, honest).map(({ methodName: way }) => way);

describe('the ways of a route', () => {
  test('a route with a browser block and no fetcher wants a browser', () => {
    expect(fetcherOfRoute(null)).toBe('http');
    expect(fetcherOfRoute({})).toBe('http');
    expect(fetcherOfRoute({ browser: {} })).toBe('browser');
    expect(fetcherOfRoute({ browser: {}, fetcher: 'auto' })).toBe('auto');
    expect(fetcherOfRoute({ browser: {}, escalate: ['browser'] })).toBe('http');
    expect(mayRender({ escalate: ['browser'] })).toBe(true);
    expect(mayRender({ escalate: ['proxy'] })).toBe(false);
  });

  test('auto is http, and a browser above whatever else is allowed', () => {
    expect(words({ fetcher: 'auto' })).toEqual(['http honest', 'browser honest']);
    expect(words({ fetcher: 'auto', escalate: ['impersonate'] })).toEqual([
      'http honest',
      'impersonate full',
      'browser full',
    ]);
    const last = escalationLevels({ fetcher: 'auto' }, honest).at(-1)!;
    expect(last.onlyForScripts).toBe(true);
    expect(
      escalationLevels({ fetcher: 'auto', escalate: ['browser'] }, honest).at(-1)!.onlyForScripts,
    ).toBeUndefined();
  });
});

describe('auto', () => {
  const shells = ({ fetcher }: { fetcher: string }) => (fetcher === 'browser' ? null : 'script-only');

  test('goes to the browser at once, and learns it for pages like these', () => {
    const setup = new EscalationSetup(auto, shells);
    expect(setup.policy.isUnsure(HOST)).toBe(true);
    expect(setup.finish(setup.tasks(4))).toEqual(Array(4).fill([0, 1]));
    expect(setup.policy.isUnsure(HOST)).toBe(false);
    expect(setup.finish(setup.tasks(20))).toEqual(Array(20).fill([1]));
  });

  test('jumps over the ways between, which would get the same nothing', () => {
    const setup = new EscalationSetup(
      { routes: [{ name: 'all', fetcher: 'auto', escalate: ['identity', 'impersonate'] }] },
      shells,
    );
    const top =
      escalationLevels({ fetcher: 'auto', escalate: ['identity', 'impersonate'] }, honest).length - 1;
    expect(setup.finish(setup.tasks(2))).toEqual(Array(2).fill([0, top]));
    expect(setup.finish(setup.tasks(5))).toEqual(Array(5).fill([top]));
  });

  test('knows the pages of a folder also where each URL has a template of its own', () => {
    const routes: JobInput['routes'] = [
      { name: 'product', match: '/product/*', fetcher: 'auto' },
      { name: 'listing', fetcher: 'auto' },
    ];
    const setup = new EscalationSetup({ routes }, ({ fetcher }, { url }) =>
      url.includes('/product/') && fetcher !== 'browser' ? 'script-only' : null,
    );
    for (let index = 0; index < 4; index++) setup.finish(setup.tasks(1, `/product/lamp-${'abcd'[index]}-`));
    for (let index = 0; index < 4; index++) setup.finish(setup.tasks(1, `/list/${'abcd'[index]}-`));
    expect(setup.finish(setup.tasks(3, '/product/kite-'))).toEqual(Array(3).fill([1]));
    expect(setup.finish(setup.tasks(3, '/list/kites-'))).toEqual(Array(3).fill([0]));
  });

  test('pages of other templates are asked for plainly, whatever some script pages needed', () => {
    const setup = new EscalationSetup(auto, ({ fetcher }, { url }) =>
      /\/(app\/|spa-)/.test(url) && fetcher !== 'browser' ? 'script-only' : null,
    );
    setup.finish(setup.tasks(2, '/app/'));
    setup.finish([...setup.tasks(1, '/spa-one-'), ...setup.tasks(1, '/spa-two-')]);
    const plain = [
      ...setup.tasks(75, '/page/'),
      ...'abcdefghijklmnopqrstuvwxyz'.split('').flatMap((name) => setup.tasks(3, `/${name}-`)),
    ];
    expect(setup.finish(plain)).toEqual(plain.map(() => [0]));
    expect(setup.finish(setup.tasks(5, '/app/'))).toEqual(Array(5).fill([1]));
  });

  test('where all pages of a host needed scripts, one page of each new folder is asked for plainly', () => {
    let isPlain = false;
    const setup = new EscalationSetup(auto, (method) => (isPlain ? null : shells(method)));
    setup.finish(setup.tasks(6, '/a/'));
    expect(setup.finish(setup.tasks(5, '/b/'))).toEqual([[0, 1], [1], [1], [1], [1]]);
    isPlain = true;
    expect(setup.finish(setup.tasks(3, '/c/'))).toEqual([[0], [1], [1]]);
    expect(setup.finish(setup.tasks(50, '/c/'))).toEqual(Array(50).fill([0]));
  });

  test('keeps what it learned of a bounded number of templates', () => {
    const setup = new EscalationSetup(auto, shells);
    for (let index = 0; index < 300; index++) setup.finish(setup.tasks(1, `/folder-${'x'.repeat(index)}/`));
    const rows = setup.policy.takeChanges();
    expect(rows.filter(({ stats, template }) => stats !== null && template !== '')).toHaveLength(100);
  });

  test('tries a page that lacks required elements in the browser, once', () => {
    const setup = new EscalationSetup(auto, () => 'validation');
    const [levels] = setup.finish(setup.tasks(1));
    expect(levels).toEqual([0, 1]);
  });

  test('does not count on the browser where it lacks the same', () => {
    const setup = new EscalationSetup(auto, () => 'validation');
    for (let index = 0; index < 5; index++) setup.finish(setup.tasks(1));
    // Both fail: the cheap one is as good.
    expect(setup.finish(setup.tasks(1))[0]!.length).toBe(1);
  });

  test('is no way around a refusal', () => {
    for (const code of ['blocked', 'forbidden', 'captcha'] as const) {
      const setup = new EscalationSetup(auto, () => code);
      expect(setup.finish(setup.tasks(3))).toEqual(Array(3).fill([0]));
      expect(setup.finish(setup.tasks(3))).toEqual(Array(3).fill([0]));
    }
  });

  test('looks from time to time whether plain HTTP does by now', () => {
    let isStatic = false;
    const setup = new EscalationSetup(auto, (fetchMethod) => (isStatic ? null : shells(fetchMethod)));
    setup.finish(setup.tasks(8));
    isStatic = true;
    expect(setup.finish(setup.tasks(4))).toEqual(Array(4).fill([1]));
    setup.now += STALE_MS + 1;
    expect(setup.finish(setup.tasks(4))[0]).toEqual([0]);
    setup.chance = RETRY_SHARE / 2;
    for (let round = 0; round < 6; round++) setup.finish(setup.tasks(4));
    setup.chance = 0.9;
    expect(setup.finish(setup.tasks(3))).toEqual(Array(3).fill([0]));
  });

  test('is remembered over a restart', () => {
    const setup = new EscalationSetup(auto, shells);
    setup.finish(setup.tasks(4));
    setup.restart();
    expect(setup.finish(setup.tasks(4))).toEqual(Array(4).fill([1]));
  });
});

test('a task that goes on to the browser has lost no attempt and no time, and nothing has failed', () => {
  const [task] = new EscalationSetup(auto, () => null).tasks(1);
  const settled = (code: 'script-only' | 'validation', escalates: boolean) =>
    changeOf(
      { ...task!, attempt: 4 },
      { kind: 'failed', taskId: 1, code, detail: 'x', page: null, retryAfterMs: null, trace: traceOf() },
      { spec: specOf(), follow: [], now: T0, random: () => 0.5, escalating: new Set(escalates ? [1] : []) },
    );
  for (const code of ['script-only', 'validation'] as const) {
    expect(settled(code, true)).toMatchObject({
      to: 'pending',
      outcome: 'deferred',
      countsAsAttempt: false,
      dueAt: null,
      code,
    });
    expect(settled(code, false)).toMatchObject({ to: 'dead', outcome: 'failed', countsAsAttempt: true });
  }
});
