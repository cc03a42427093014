import { describe, expect, test } from 'vitest';
import {
  ESCALATIONS,
  type Escalation,
  type EscalationRoute,
  escalationLevels,
  type FetcherKind,
  isPlain,
} from '../../../../src/core/escalation/escalation.ts';

const honest = { identity: { mode: 'honest' as const } };
const browser = { identity: { mode: 'browser' as const } };
const pooled = { ...honest, proxies: { default: 'cheap' } };

function words(route: EscalationRoute | null, job: Parameters<typeof escalationLevels>[1]): string[] {
  return escalationLevels(route, job).map(({ methodName: way }) => way);
}

describe('ladders', () => {
  test('have one level, the plain way, when nothing is asked for', () => {
    expect(words(null, honest)).toEqual(['http honest']);
    expect(words({ fetcher: 'http', escalate: [] }, honest)).toEqual(['http honest']);
    expect(isPlain(escalationLevels(null, honest))).toBe(true);
    expect(isPlain(escalationLevels(null, pooled))).toBe(false);
    expect(isPlain(escalationLevels(null, browser))).toBe(false);
    expect(isPlain(escalationLevels({ escalate: ['proxy'] }, honest))).toBe(true);
  });

  test('in browser mode go from all headers to few', () => {
    expect(words(null, browser)).toEqual(['http full', 'http simple', 'http minimal']);
  });

  test('grow by what a route allows, cheap before dear, whatever the order it is written in', () => {
    const escalate: Escalation[] = ['api', 'browser', 'impersonate', 'proxy', 'identity'];
    expect(words({ escalate, proxy: 'good' }, honest)).toEqual([
      'http honest',
      'http full',
      'http simple',
      'http minimal',
      'impersonate full',
      'impersonate full via good',
      'browser full via good',
      'api full',
    ]);
    expect(words({ escalate: ['identity'] }, browser).at(-1)).toBe('http full other');
  });

  test('do not look like a browser unless told: proxies, browsers and APIs do not need it', () => {
    expect(words({ escalate: ['proxy', 'browser', 'api'] }, pooled)).toEqual([
      'http honest',
      'http honest via cheap',
      'browser honest via cheap',
      'api honest',
    ]);
  });

  test('use the pool from the start, unless it is for later', () => {
    expect(words(null, pooled)).toEqual(['http honest via cheap']);
    expect(words({ proxy: 'good' }, pooled)).toEqual(['http honest via good']);
    expect(words({ escalate: ['proxy'] }, pooled)).toEqual(['http honest', 'http honest via cheap']);
  });

  test('begin with the fetcher of the route', () => {
    expect(words({ fetcher: 'impersonate' }, honest)).toEqual([
      'impersonate full',
      'impersonate simple',
      'impersonate minimal',
    ]);
    expect(words({ fetcher: 'browser', escalate: ['api'] }, honest)).toEqual([
      'browser honest',
      'api honest',
    ]);
    expect(words({ fetcher: 'api', escalate: [...ESCALATIONS] }, honest)).toEqual(['api honest']);
  });

  test('number their levels, and have at least one', () => {
    for (const job of [honest, browser, pooled])
      for (const fetcher of ['http', 'impersonate', 'browser', 'api'] as FetcherKind[])
        for (let mask = 0; mask < 32; mask++) {
          const escalate = ESCALATIONS.filter((_, bit) => mask & (1 << bit));
          const levels = escalationLevels({ fetcher, escalate }, job);
          expect(levels.map(({ level }) => level)).toEqual(levels.map((_, index) => index));
          expect(levels.length).toBeGreaterThan(0);
          const asked = job === browser || fetcher === 'impersonate' || mask & 0b11;
          if (!asked) expect(levels.some(({ browserLike }) => browserLike)).toBe(false);
        }
  });
});
