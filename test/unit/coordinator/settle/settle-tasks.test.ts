import { describe, expect, test } from 'vitest';
import { changeOf, type SettleContext } from '../../../../src/coordinator/settle/settle-tasks.ts';
import type { BatchTask } from '../../../../src/core/batch/batch.ts';
import type { Outcome } from '../../../../src/core/batch/outcome.ts';
import { FAILURES, type FailureCode } from '../../../../src/core/failures.ts';
import type { JobInput } from '../../../../src/core/job-schema/job.ts';
import { inheritanceOf } from '../../../../src/core/row-meta/row-meta.ts';
import { compileFollow } from '../../../../src/core/url/scope.ts';
import { templateOf } from '../../../../src/core/url/url.ts';
import { pageOf, recordOf, specOf, T0, traceOf } from '../../../support/fixtures.ts';

function contextOf(input: Partial<JobInput> = {}, random = 0.5): SettleContext {
  const spec = specOf(input);
  return { spec, follow: spec.follow.map(compileFollow), now: T0, random: () => random };
}

function taskOf(change: Partial<BatchTask> = {}): BatchTask {
  return {
    id: 7,
    url: 'https://a.example/1',
    permit: 0,
    depth: 2,
    route: null,
    attempt: 1,
    hops: 0,
    meta: null,
    lastVisit: null,
    ...change,
  };
}

const failed = (code: FailureCode, retryAfterMs: number | null = null): Outcome => ({
  kind: 'failed',
  taskId: 7,
  code,
  detail: 'why',
  page: null,
  retryAfterMs,
  trace: traceOf(),
});
const redirected = (to: string): Outcome => ({
  kind: 'redirected',
  taskId: 7,
  to,
  page: pageOf({ httpStatus: 301 }),
  trace: traceOf(),
});

describe('what an outcome means for its task', () => {
  test('fetched: done, with page, records, and links one deeper', () => {
    const records = [recordOf('k', { a: 1 })];
    const links = [
      { url: 'https://a.example/2026/1', host: 'a.example', priority: 5, route: 'p', meta: { x: 1 } },
      { url: 'https://b.example/', host: 'b.example', priority: 0, route: null },
    ];
    const outcome: Outcome = {
      kind: 'fetched',
      taskId: 7,
      page: pageOf(),
      links,
      records,
      shows: ['https://a.example/x.png'],
      trace: traceOf(),
    };
    expect(changeOf(taskOf(), outcome, contextOf())).toEqual({
      id: 7,
      outcome: 'fetched',
      to: 'done',
      code: null,
      detail: null,
      dueAt: null,
      countsAsAttempt: true,
      moveTo: null,
      redirectTo: null,
      page: pageOf(),
      trace: traceOf(),
      records,
      shows: ['https://a.example/x.png'],
      links: [
        {
          ...links[0],
          depth: 3,
          hops: 0,
          template: templateOf('https://a.example/2026/1'),
          modifiedAt: null,
        },
        {
          ...links[1],
          depth: 3,
          hops: 0,
          meta: null,
          template: templateOf('https://b.example/'),
          modifiedAt: null,
        },
      ],
    });
  });

  test('listed links are as deep as their page, have no trap budget, and keep their date', () => {
    const links = [
      {
        url: 'https://a.example/1',
        host: 'a.example',
        priority: 0,
        route: null,
        listed: true as const,
        modifiedAt: 99,
      },
    ];
    const outcome: Outcome = {
      kind: 'fetched',
      taskId: 7,
      page: pageOf(),
      links,
      records: [],
      shows: [],
      trace: traceOf(),
    };
    const [link] = changeOf(taskOf({ depth: 2 }), outcome, contextOf()).links;
    expect(link).toMatchObject({ depth: 2, template: null, modifiedAt: 99 });
  });

  test('links have the columns of the row that led to their page', () => {
    const link = { url: 'https://a.example/1', host: 'a.example', priority: 0, route: null };
    const metaOf = (more: object) => {
      const links = [{ ...link, ...more }];
      const stored = { page: pageOf(), records: [], shows: [], trace: traceOf() };
      const outcome: Outcome = { kind: 'fetched', taskId: 7, links, ...stored };
      const context = { ...contextOf(), inherit: inheritanceOf(specOf({ sources: ['rows.csv'] })) };
      return changeOf(taskOf({ meta: { sku: 1, '@page': 2 } }), outcome, context).links[0]!.meta;
    };
    expect(metaOf({})).toEqual({ sku: 1 });
    expect(metaOf({ meta: { own: 2 } })).toEqual({ own: 2 });
    expect(metaOf({ listed: true, meta: { lastmod: 'x' } })).toEqual({ sku: 1, lastmod: 'x' });
  });

  test('unchanged, skipped and deferred', () => {
    const unchanged: Outcome = { kind: 'unchanged', taskId: 7, page: null, trace: traceOf() };
    expect(changeOf(taskOf(), unchanged, contextOf())).toMatchObject({
      to: 'unchanged',
      countsAsAttempt: true,
    });
    const unasked: Outcome = { kind: 'skipped', taskId: 7, code: 'robots', detail: null, trace: null };
    expect(changeOf(taskOf(), unasked, contextOf())).toMatchObject({
      to: 'skipped',
      code: 'robots',
      countsAsAttempt: false,
    });
    const asked: Outcome = { kind: 'skipped', taskId: 7, code: 'scope', detail: 'd', trace: traceOf() };
    expect(changeOf(taskOf(), asked, contextOf())).toMatchObject({
      to: 'skipped',
      detail: 'd',
      countsAsAttempt: true,
    });
    expect(changeOf(taskOf({ attempt: 99 }), { kind: 'deferred', taskId: 7 }, contextOf())).toMatchObject({
      to: 'pending',
      dueAt: null,
      countsAsAttempt: false,
      trace: null,
    });
  });

  test.each(Object.keys(FAILURES) as FailureCode[])(
    'failed with %s: by its class, and never more often than allowed',
    (code) => {
      const first = changeOf(taskOf({ attempt: 1 }), failed(code), contextOf());
      const permanent = FAILURES[code].retry === 'permanent';
      expect(first).toMatchObject({
        to: permanent ? 'dead' : 'pending',
        code,
        detail: 'why',
        countsAsAttempt: code !== 'throttled',
      });
      if (code === 'throttled') return;
      expect(changeOf(taskOf({ attempt: 3 }), failed(code), contextOf()).to).toBe(
        permanent ? 'dead' : 'pending',
      );
      expect(changeOf(taskOf({ attempt: 4 }), failed(code), contextOf()).to).toBe('dead');
      expect(changeOf(taskOf({ attempt: 9 }), failed(code), contextOf()).to).toBe('dead');
      expect(changeOf(taskOf(), failed(code), contextOf({ retry: { attempts: 1 } })).to).toBe('dead');
    },
  );

  test('a host that asks for fewer requests uses up no attempt of a page, unless it always does', () => {
    for (const [code, retryAfterMs] of [
      ['throttled', null],
      ['throttled', 60_000],
      ['unavailable', 60_000],
    ] as const) {
      const changeAfter = (throttles: number, attempt: number) =>
        changeOf(taskOf({ attempt, throttles }), failed(code, retryAfterMs), contextOf());
      expect(changeAfter(19, 4)).toMatchObject({ to: 'pending', countsAsAttempt: false, throttled: true });
      // From the second time on, other pages come first: this one may always have been the one too many.
      expect(changeAfter(0, 4)).not.toHaveProperty('lowersPriority');
      expect(changeAfter(1, 4)).toHaveProperty('lowersPriority', true);
      expect(changeAfter(0, 1).dueAt! - T0).toBeGreaterThanOrEqual(retryAfterMs ?? 500);
      expect(changeAfter(20, 3)).toMatchObject({ to: 'pending', countsAsAttempt: true });
      expect(changeAfter(20, 3)).not.toHaveProperty('throttled');
      expect(changeAfter(20, 4).to).toBe('dead');
    }
  });

  test('a page that fails by itself is retried after the others: a quarter at once, all from the second time on', () => {
    const isLast = (code: FailureCode, attempt: number, random: number, retryAfterMs: number | null = null) =>
      changeOf(taskOf({ attempt }), failed(code, retryAfterMs), contextOf({}, random)).lowersPriority ??
      false;
    for (const code of ['unavailable', 'server-error', 'reset', 'headers-timeout'] as const) {
      expect([isLast(code, 1, 0.2), isLast(code, 1, 0.3)]).toEqual([false, true]);
      expect([isLast(code, 2, 0.2), isLast(code, 3, 0.9)]).toEqual([true, true]);
    }
    // The host asked for fewer requests: that says nothing about the page.
    expect([isLast('throttled', 2, 0.9), isLast('unavailable', 2, 0.9, 5_000)]).toEqual([false, false]);
  });

  test('pauses double, have jitter, and are as long as the site asks at least', () => {
    const pause = (attempt: number, random: number, retryAfterMs: number | null = null) =>
      changeOf(
        taskOf({ attempt }),
        failed('reset', retryAfterMs),
        contextOf({ retry: { attempts: 50 } }, random),
      ).dueAt! - T0;
    expect([1, 2, 3].map((attempt) => pause(attempt, 0))).toEqual([500, 1_000, 2_000]);
    expect([1, 2, 3].map((attempt) => pause(attempt, 1))).toEqual([1_000, 2_000, 4_000]);
    expect(pause(40, 1)).toBe(300_000);
    expect(pause(1, 1, 60_000)).toBe(60_000);
    expect(pause(1, 1, 0)).toBe(1_000);
    expect(Number.isInteger(pause(1, 0.123_456))).toBe(true);
  });

  test('a page of a failure is kept', () => {
    const outcome = { ...failed('parse-error'), page: pageOf() } as Outcome;
    expect(changeOf(taskOf(), outcome, contextOf())).toMatchObject({ to: 'dead', page: pageOf() });
  });

  describe('redirects', () => {
    const source = { depth: 0 };

    test('without followed links, the task goes on at the new URL and it costs no attempt', () => {
      const change = changeOf(
        taskOf({ ...source, attempt: 4 }),
        redirected('https://b.example:8443/x'),
        contextOf(),
      );
      expect(change).toMatchObject({
        to: 'pending',
        dueAt: null,
        countsAsAttempt: false,
        moveTo: { url: 'https://b.example:8443/x', host: 'b.example:8443' },
        redirectTo: 'https://b.example:8443/x',
        links: [],
      });
    });

    test('with followed links, the new URL is a task of its own', () => {
      const task = taskOf({ depth: 2, hops: 3, route: 'p', meta: { m: 1 } });
      const change = changeOf(task, redirected('https://a.example/new'), contextOf({ follow: 'host' }));
      expect(change).toMatchObject({
        to: 'done',
        moveTo: null,
        redirectTo: 'https://a.example/new',
        countsAsAttempt: true,
      });
      expect(change.links).toEqual([
        {
          url: 'https://a.example/new',
          host: 'a.example',
          depth: 2,
          priority: 0,
          route: 'p',
          meta: { m: 1 },
          hops: 4,
          template: null,
          modifiedAt: null,
        },
      ]);
    });

    test('the job may say which', () => {
      expect(
        changeOf(taskOf(source), redirected('https://b.example/'), contextOf({ redirects: 'discover' })).to,
      ).toBe('done');
      const input: Partial<JobInput> = { redirects: 'follow', follow: 'any' };
      expect(changeOf(taskOf(), redirected('https://b.example/'), contextOf(input)).moveTo).not.toBeNull();
    });

    test('a source may lead anywhere, a followed link only where links may', () => {
      const to = redirected('https://other.example/');
      expect(changeOf(taskOf(source), to, contextOf({ follow: 'host' })).to).toBe('done');
      expect(changeOf(taskOf({ depth: 1 }), to, contextOf({ follow: 'host' }))).toMatchObject({
        to: 'skipped',
        code: 'scope',
        links: [],
        redirectTo: 'https://other.example/',
      });
      expect(changeOf(taskOf({ depth: 1 }), to, contextOf({ follow: 'any' })).to).toBe('done');
      const www = redirected('https://www.a.example/');
      expect(changeOf(taskOf({ depth: 1 }), www, contextOf({ follow: 'host' })).to).toBe('done');
    });
  });
});
