import { beforeEach, describe, expect, test } from 'vitest';
import { codeOfRobotsFailure, RobotsBook } from '../../src/coordinator/robots-book.ts';
import { FAILURES, type FailureCode } from '../../src/core/failures.ts';
import { LIMITS } from '../../src/core/limits.ts';
import type { HostStore, RobotsEntry } from '../../src/ports/store.ts';
import { robotsEntry, T0, traceOf } from '../support/fixtures.ts';

const ORIGIN = 'https://a.example';
const HOST = 'a.example';
const DAY = LIMITS.robotsAgeMsMax;

describe('robots book', () => {
  let stored: Map<string, RobotsEntry>;
  let looks: number;
  let book: RobotsBook;
  const hosts: Pick<HostStore, 'robots'> = {
    async robots(origin) {
      looks++;
      return stored.get(origin) ?? null;
    },
  };
  beforeEach(() => {
    stored = new Map();
    looks = 0;
    book = new RobotsBook(hosts, 'seine');
  });

  const answer = async (text: string, now = T0, origin = ORIGIN) => {
    const entry = await book.entryOf({ kind: 'text', origin, text, trace: traceOf() }, HOST, now);
    if (entry) stored.set(origin, entry);
    return entry;
  };

  test('nothing is known before it was asked, and what was answered holds for a day', async () => {
    expect(await book.rulesOf(ORIGIN, HOST, T0)).toBeNull();
    const entry = await answer('User-agent: *\nDisallow: /private\nCrawl-delay: 2');
    expect(entry).toMatchObject({
      origin: ORIGIN,
      host: HOST,
      fetchedAt: T0,
      failures: 0,
      crawlDelayMs: 2_000,
    });
    const rules = await book.rulesOf(ORIGIN, HOST, T0 + DAY - 1);
    expect(rules?.allows(`${ORIGIN}/private/1`)).toBe(false);
    expect(rules?.allows(`${ORIGIN}/public`)).toBe(true);
    expect(await book.rulesOf(ORIGIN, HOST, T0 + DAY)).toBeNull();
    expect(await book.rulesOf('http://a.example', HOST, T0)).toBeNull();
  });

  test('what another run stored is used, as long as it is young', async () => {
    stored.set(ORIGIN, robotsEntry(ORIGIN, { text: 'User-agent: *\nDisallow: /' }));
    expect((await book.rulesOf(ORIGIN, HOST, T0 + 5))?.allows(`${ORIGIN}/x`)).toBe(false);
    await book.rulesOf(ORIGIN, HOST, T0 + 6);
    expect(looks).toBe(1);
    expect(await new RobotsBook(hosts, 'seine').rulesOf(ORIGIN, HOST, T0 + DAY)).toBeNull();
  });

  test('what a job with other groups stored is asked for again, so that its delay is noted here', async () => {
    stored.set(ORIGIN, robotsEntry(ORIGIN, { text: '', host: '*.a.example' }));
    expect(await book.rulesOf(ORIGIN, HOST, T0)).toBeNull();
    expect(await book.rulesOf(ORIGIN, '*.a.example', T0)).not.toBeNull();
  });

  test('rules for our own product win', async () => {
    await answer('User-agent: *\nDisallow: /\n\nUser-agent: Seine\nDisallow: /no');
    const rules = await book.rulesOf(ORIGIN, HOST, T0);
    expect(rules?.allows(`${ORIGIN}/yes`)).toBe(true);
    expect(rules?.allows(`${ORIGIN}/no`)).toBe(false);
  });

  test('no robots.txt allows everything', async () => {
    const entry = await book.entryOf({ kind: 'absent', origin: ORIGIN, trace: traceOf() }, HOST, T0);
    expect(entry).toMatchObject({ text: '', failures: 0, crawlDelayMs: null });
    expect((await book.rulesOf(ORIGIN, HOST, T0))?.allows(`${ORIGIN}/any`)).toBe(true);
  });

  test('a failure is counted, allows nothing, and a success after it starts anew', async () => {
    const fail = () =>
      book.entryOf(
        { kind: 'failed', origin: ORIGIN, code: 'unavailable', detail: 'status 503', trace: null },
        HOST,
        T0,
      );
    for (const failures of [1, 2, 3]) {
      const entry = await fail();
      expect(entry).toMatchObject({ text: null, failures, detail: 'unavailable: status 503' });
      stored.set(ORIGIN, entry!);
      expect(await book.rulesOf(ORIGIN, HOST, T0)).toBeNull();
    }
    expect(await answer('')).toMatchObject({ text: '', failures: 0 });
    stored.set(ORIGIN, robotsEntry(ORIGIN, { text: 'x', failures: 0 }));
    expect(await fail()).toMatchObject({ failures: 1 });
  });

  test('a deferred answer is none', async () => {
    expect(await book.entryOf({ kind: 'deferred', origin: ORIGIN }, HOST, T0)).toBeNull();
  });

  test('while a host is asked nobody else is, until the asking is over', () => {
    expect(book.isAsking(HOST)).toBe(false);
    expect(book.ask(ORIGIN, HOST, 3)).toEqual({ origin: ORIGIN, url: `${ORIGIN}/robots.txt`, permit: 3 });
    expect(book.isAsking(HOST)).toBe(true);
    expect(book.isAsking('b.example')).toBe(false);
    book.doneAsking(HOST);
    expect(book.isAsking(HOST)).toBe(false);
  });

  describe('redirects', () => {
    const redirect = (to: string) =>
      book.entryOf({ kind: 'redirected', origin: ORIGIN, to, trace: traceOf() }, HOST, T0);

    test('on the same host are followed with the next question', async () => {
      expect(await redirect(`${ORIGIN}/real-robots.txt`)).toBeNull();
      expect(book.ask(ORIGIN, HOST, 0)).toEqual({
        origin: ORIGIN,
        url: `${ORIGIN}/real-robots.txt`,
        permit: 0,
      });
      await answer('User-agent: *\nDisallow: /no');
      expect((await book.rulesOf(ORIGIN, HOST, T0))?.allows(`${ORIGIN}/no`)).toBe(false);
      expect(book.ask(ORIGIN, HOST, 0).url).toBe(`${ORIGIN}/robots.txt`);
    });

    test('to another host mean its robots.txt, once that is known', async () => {
      const entry = await redirect('https://b.example/robots.txt');
      expect(entry).toMatchObject({ text: '', failures: 0, host: HOST });
      expect(entry?.detail).toContain('https://b.example/robots.txt');
      stored.set(ORIGIN, entry!);
      // Not for a day, as it may be known soon.
      expect(await book.rulesOf(ORIGIN, HOST, T0 + 60_000)).not.toBeNull();
      expect(await new RobotsBook(hosts, 'seine').rulesOf(ORIGIN, HOST, T0 + 3_600_000)).toBeNull();
      const text = 'User-agent: *\nDisallow: /no\nCrawl-delay: 3';
      stored.set('https://b.example', robotsEntry('https://b.example', { text }));
      expect(await redirect('https://b.example/robots.txt')).toMatchObject({ text, crawlDelayMs: 3_000 });
      expect((await book.rulesOf(ORIGIN, HOST, T0))?.allows(`${ORIGIN}/no`)).toBe(false);
    });

    test('end after five, and the next day begins at the beginning', async () => {
      for (let hop = 1; hop <= LIMITS.robotsRedirectsMax; hop++)
        expect(await redirect(`${ORIGIN}/r${hop}`)).toBeNull();
      expect(await redirect(`${ORIGIN}/r6`)).toMatchObject({ text: '' });
      expect(book.ask(ORIGIN, HOST, 0).url).toBe(`${ORIGIN}/robots.txt`);
    });
  });

  test('thousands of origins do not pile up', async () => {
    for (let number = 0; number < 12_000; number++) await answer('', T0, `https://h${number}.example`);
    expect(await book.rulesOf('https://h11999.example', HOST, T0)).not.toBeNull();
    expect(await book.rulesOf('https://h1.example', HOST, T0)).not.toBeNull();
    expect(looks).toBeGreaterThan(0);
  });

  test('tasks get a code that says what is the matter with robots.txt', () => {
    const codes = (Object.keys(FAILURES) as FailureCode[]).filter(
      (code) => codeOfRobotsFailure(code) === 'robots-unreachable',
    );
    expect(codes).toEqual(['throttled', 'unavailable', 'server-error', 'robots-unreachable']);
    expect(codeOfRobotsFailure('dns')).toBe('dns');
  });
});
