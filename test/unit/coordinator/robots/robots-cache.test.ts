import { beforeEach, describe, expect, test } from 'vitest';
import { PARSED_ROBOTS_BYTES_MAX, ParsedRobots } from '../../../../src/coordinator/robots/parsed-robots.ts';
import { ROBOTS_AGE_MS_MAX, RobotsCache } from '../../../../src/coordinator/robots/robots-cache.ts';
import type { RobotsOutcome } from '../../../../src/core/batch/outcome.ts';
import type { FailureCode } from '../../../../src/core/failures.ts';
import { LIMITS } from '../../../../src/core/limits.ts';
import { parseRobots } from '../../../../src/core/robots/robots.ts';
import type { HostStore, RobotsEntry } from '../../../../src/ports/store.ts';
import { robotsEntry, T0, traceOf } from '../../../support/fixtures.ts';

const ORIGIN = 'https://a.example';
const HOST = 'a.example';
const OWN = `${ORIGIN}/robots.txt`;
const DAY = ROBOTS_AGE_MS_MAX;
const RETRY = { attempts: 3, baseMs: 100, maxMs: 1_000 };
const RULES = 'User-agent: *\nDisallow: /no\nCrawl-delay: 3';

const failure = (code: FailureCode): RobotsOutcome => ({
  kind: 'failed',
  origin: ORIGIN,
  code,
  detail: 'no',
  trace: null,
});

describe('robots cache', () => {
  let stored: Map<string, RobotsEntry>;
  let looks: number;
  let cache: RobotsCache;
  const hosts: Pick<HostStore, 'robots'> = {
    async robots(origin) {
      looks++;
      return stored.get(origin) ?? null;
    },
  };
  beforeEach(() => {
    stored = new Map();
    looks = 0;
    cache = new RobotsCache(hosts, 'seine', RETRY);
  });

  const answer = async (text: string, now = T0, origin = ORIGIN) => {
    const [entry] = await settle(
      { kind: 'text', origin, text, trace: traceOf() },
      `${origin}/robots.txt`,
      now,
    );
    return entry;
  };

  /** An answer to what was asked at a URL, for the origin that the answer is for. */
  const settle = async (outcome: RobotsOutcome, url: string, now = T0) => {
    const question = { url, host: HOST, at: new URL(url).host };
    const entries = await cache.entriesOf(
      outcome,
      outcome.origin === ORIGIN ? question : { ...question, at: HOST },
      now,
    );
    for (const entry of entries) stored.set(entry.origin, entry);
    return entries;
  };

  test('nothing is known before it was asked, and what was answered holds for a day', async () => {
    expect(await cache.rulesOf(ORIGIN, HOST, T0)).toBeNull();
    const entry = await answer('User-agent: *\nDisallow: /private\nCrawl-delay: 2');
    expect(entry).toMatchObject({
      origin: ORIGIN,
      host: HOST,
      fetchedAt: T0,
      failures: 0,
      crawlDelayMs: 2_000,
    });
    const rules = await cache.rulesOf(ORIGIN, HOST, T0 + DAY - 1);
    expect(rules?.allows(`${ORIGIN}/private/1`)).toBe(false);
    expect(rules?.allows(`${ORIGIN}/public`)).toBe(true);
    expect(await cache.rulesOf(ORIGIN, HOST, T0 + DAY)).toBeNull();
    expect(await cache.rulesOf('http://a.example', HOST, T0)).toBeNull();
  });

  test('what another run stored is used, as long as it is young', async () => {
    stored.set(ORIGIN, robotsEntry(ORIGIN, { text: 'User-agent: *\nDisallow: /' }));
    expect((await cache.rulesOf(ORIGIN, HOST, T0 + 5))?.allows(`${ORIGIN}/x`)).toBe(false);
    await cache.rulesOf(ORIGIN, HOST, T0 + 6);
    expect(looks).toBe(1);
    expect(await new RobotsCache(hosts, 'seine', RETRY).rulesOf(ORIGIN, HOST, T0 + DAY)).toBeNull();
  });

  test('what a job with other groups stored is asked for again, so that its delay is noted here', async () => {
    stored.set(ORIGIN, robotsEntry(ORIGIN, { text: '', host: '*.a.example' }));
    expect(await cache.rulesOf(ORIGIN, HOST, T0)).toBeNull();
    expect(await cache.rulesOf(ORIGIN, '*.a.example', T0)).not.toBeNull();
  });

  test('rules in memory are bounded by their size: the oldest are read from the store again', async () => {
    const text = `user-agent: *\n${Array.from({ length: 25_000 }, (_, i) => `allow:*a${i}`).join('\n')}`;
    const { bytes } = parseRobots(text, 'seine');
    const fits = Math.floor(PARSED_ROBOTS_BYTES_MAX / bytes);
    expect(fits).toBeLessThan(12);
    const origins = Array.from({ length: fits + 1 }, (_, i) => `https://h${i}.example`);
    for (const origin of origins) stored.set(origin, robotsEntry(origin, { text, host: HOST }));
    for (const origin of origins) await cache.rulesOf(origin, HOST, T0);
    const before = looks;
    for (const origin of origins.slice(1)) await cache.rulesOf(origin, HOST, T0);
    expect(looks - before).toBe(0);
    await cache.rulesOf(origins[0]!, HOST, T0);
    expect(looks - before).toBe(1);
  });

  test('jobs of one process share what they parsed, and its bound', async () => {
    const text = `user-agent: *\n${Array.from({ length: 100 }, (_, i) => `disallow: /no${i}`).join('\n')}`;
    const { bytes } = parseRobots(text, 'seine');
    const parsed = new ParsedRobots(2.5 * bytes);
    const [first, second] = [1, 2].map(() => new RobotsCache(hosts, 'seine', RETRY, parsed)) as [
      RobotsCache,
      RobotsCache,
    ];
    const other = new RobotsCache(hosts, 'other', RETRY, parsed);
    const origins = ['https://h0.example', 'https://h1.example', 'https://h2.example'] as const;
    for (const origin of origins) stored.set(origin, robotsEntry(origin, { text, host: HOST }));
    await first.rulesOf(origins[0], HOST, T0);
    expect(second.isKnown(HOST)).toBe(false);
    expect((await second.rulesOf(origins[0], HOST, T0))?.allows(`${origins[0]}/no7`)).toBe(false);
    expect(second.isKnown(HOST)).toBe(true);
    expect(looks).toBe(1);
    await other.rulesOf(origins[0], HOST, T0);
    expect(looks).toBe(2);
    // There is room for two: what the second job reads makes the first one's leave.
    await second.rulesOf(origins[1], HOST, T0);
    await second.rulesOf(origins[2], HOST, T0);
    const before = looks;
    await first.rulesOf(origins[2], HOST, T0);
    expect(looks - before).toBe(0);
    await first.rulesOf(origins[0], HOST, T0);
    expect(looks - before).toBe(1);
  });

  test('rules for our own product win', async () => {
    await answer('User-agent: *\nDisallow: /\n\nUser-agent: Seine\nDisallow: /no');
    const rules = await cache.rulesOf(ORIGIN, HOST, T0);
    expect(rules?.allows(`${ORIGIN}/yes`)).toBe(true);
    expect(rules?.allows(`${ORIGIN}/no`)).toBe(false);
  });

  test('no robots.txt allows everything', async () => {
    const [entry] = await settle({ kind: 'absent', origin: ORIGIN, trace: traceOf() }, OWN);
    expect(entry).toMatchObject({ text: '', failures: 0, crawlDelayMs: null });
    expect((await cache.rulesOf(ORIGIN, HOST, T0))?.allows(`${ORIGIN}/any`)).toBe(true);
  });

  test('a failure is counted, allows nothing, and a success after it starts anew', async () => {
    const fail = async () => (await settle(failure('unavailable'), OWN))[0];
    for (const failures of [1, 2, 3]) {
      expect(await fail()).toMatchObject({ text: null, failures, detail: 'unavailable: no' });
      expect(await cache.rulesOf(ORIGIN, HOST, T0)).toBeNull();
    }
    expect(await answer('')).toMatchObject({ text: '', failures: 0 });
    stored.set(ORIGIN, robotsEntry(ORIGIN, { text: 'x', failures: 0 }));
    expect(await fail()).toMatchObject({ failures: 1 });
  });

  test('a deferred answer is none', async () => {
    expect(await settle({ kind: 'deferred', origin: ORIGIN }, OWN)).toEqual([]);
  });

  test('while a host is asked nobody else is, until the asking is over', () => {
    expect(cache.isAsking(HOST)).toBe(false);
    const question = { url: OWN, host: HOST, at: HOST };
    expect(cache.ask(ORIGIN, question, { permit: 3 })).toEqual({ origin: ORIGIN, url: OWN, permit: 3 });
    expect(cache.isAsking(HOST)).toBe(true);
    expect(cache.isAsking('b.example')).toBe(false);
    cache.doneAsking(ORIGIN);
    expect(cache.isAsking(HOST)).toBe(false);
  });

  describe('redirects', () => {
    const next = (now = T0) => cache.nextStep(ORIGIN, HOST, now);
    const redirect = (from: string, to: string) =>
      settle({ kind: 'redirected', origin: ORIGIN, to, trace: traceOf() }, from);
    const follow = async (...urls: string[]) => {
      for (const [index, url] of urls.entries()) await redirect(urls[index - 1] ?? OWN, url);
    };
    const text = (url: string, now = T0) =>
      settle({ kind: 'text', origin: ORIGIN, text: RULES, trace: traceOf() }, url, now);

    test('are followed one after the other, on the same host and elsewhere, also after a restart', async () => {
      expect(await next()).toEqual({ kind: 'ask', url: OWN });
      await follow(`${ORIGIN}/real-robots.txt`);
      expect(await cache.rulesOf(ORIGIN, HOST, T0)).toBeNull();
      expect(await next()).toEqual({ kind: 'ask', url: `${ORIGIN}/real-robots.txt` });
      await redirect(`${ORIGIN}/real-robots.txt`, 'https://cdn.example/r?v=1');
      cache = new RobotsCache(hosts, 'seine', RETRY);
      expect(await next()).toEqual({ kind: 'ask', url: 'https://cdn.example/r?v=1' });
      const [file, own] = await text('https://cdn.example/r?v=1');
      // What it says is not about the host that has it.
      expect(file).toMatchObject({ host: 'cdn.example', text: RULES, crawlDelayMs: null });
      expect(own).toMatchObject({
        origin: ORIGIN,
        host: HOST,
        text: RULES,
        crawlDelayMs: 3_000,
        redirectTo: null,
      });
      expect(own?.detail).toContain('https://cdn.example/r?v=1');
      expect((await cache.rulesOf(ORIGIN, HOST, T0))?.allows(`${ORIGIN}/no`)).toBe(false);
    });

    test('to the robots.txt of another host make that known, too', async () => {
      await follow('https://b.example/robots.txt');
      await text('https://b.example/robots.txt');
      expect(stored.get('https://b.example')).toMatchObject({ host: 'b.example', crawlDelayMs: 3_000 });
      const rules = await cache.rulesOf('https://b.example', 'b.example', T0);
      expect(rules?.allows('https://b.example/no')).toBe(false);
    });

    test('to what was asked before ask for nothing, and it gets no younger by that', async () => {
      stored.set(
        'https://b.example',
        robotsEntry('https://b.example', { text: RULES, fetchedAt: T0 - DAY / 2 }),
      );
      await follow('https://b.example/robots.txt');
      const entry = {
        text: RULES,
        crawlDelayMs: 3_000,
        fetchedAt: T0 - DAY / 2,
        host: HOST,
        redirectTo: null,
      };
      expect(await next()).toMatchObject({ kind: 'found', entry });
      expect(await cache.rulesOf(ORIGIN, HOST, T0 + DAY / 2 - 1)).not.toBeNull();
      expect(await next(T0 + DAY / 2)).toEqual({ kind: 'ask', url: 'https://b.example/robots.txt' });
      expect(await next(T0 + DAY)).toEqual({ kind: 'ask', url: OWN });
    });

    test('to what another coordinator asked for, whose clock is ahead, have a time in whole milliseconds', async () => {
      stored.set('https://b.example', robotsEntry('https://b.example', { text: RULES, fetchedAt: T0 + 1 }));
      await follow('https://b.example/robots.txt');
      stored.set(ORIGIN, { ...stored.get(ORIGIN)!, fetchedAt: T0 + 1 });
      expect(await next(T0 + 0.25)).toMatchObject({ kind: 'found', entry: { fetchedAt: T0 } });
    });

    test('end after five, and in a loop: then everything is allowed', async () => {
      const urls = Array.from({ length: 6 }, (_, n) => `https://h${n % 2}.example/${n}`);
      await follow(...urls.slice(0, 5));
      expect(await next()).toEqual({ kind: 'ask', url: urls[4] });
      await redirect(urls[4]!, urls[5]!);
      expect(await next()).toMatchObject({ kind: 'found', entry: { text: '', origin: ORIGIN } });
      expect((await cache.rulesOf(ORIGIN, HOST, T0))?.allows(`${ORIGIN}/no`)).toBe(true);
      for (const loop of [[OWN], [`${ORIGIN}/x`, `${ORIGIN}/x`], ['https://b.example/robots.txt', OWN]]) {
        stored.clear();
        await follow(...loop);
        expect(await next()).toMatchObject({ kind: 'found', entry: { text: '' } });
      }
    });

    test('to what fails wait longer each time, whoever asks, until nothing is allowed', async () => {
      const url = 'https://b.example/r';
      await follow(url);
      for (const waitMs of [100, 200]) {
        const [entry] = await settle(failure('unavailable'), url);
        expect(entry).toMatchObject({ origin: url, host: 'b.example', text: null });
        expect(await next()).toEqual({ kind: 'wait', until: T0 + waitMs });
        expect(await next(T0 + waitMs)).toEqual({ kind: 'ask', url });
      }
      await settle(failure('headers-timeout'), url);
      expect(await next()).toMatchObject({ kind: 'unreachable' });
      const other = 'https://c.example';
      stored.set(other, robotsEntry(other, { text: null, redirectTo: url }));
      expect(await cache.nextStep(other, 'c.example', T0)).toMatchObject({ kind: 'unreachable' });
      expect(await next(T0 + LIMITS.hostRestMsMax)).toEqual({ kind: 'ask', url });
      expect(await cache.rulesOf(ORIGIN, HOST, T0)).toBeNull();
    });

    test('to a private address, or where TLS fails, are not tried again', async () => {
      for (const code of ['private-address', 'tls'] as const) {
        stored.clear();
        await follow('https://b.example/r');
        await settle(failure(code), 'https://b.example/r');
        const detail = `robots.txt redirects to https://b.example/r: ${code}: no`;
        expect(await next()).toEqual({ kind: 'unreachable', detail });
      }
    });

    test('keep both hosts waiting while one is asked, and others look again once there is an answer', () => {
      const url = 'https://b.example/r';
      for (const host of [HOST, 'c.example']) cache.want(host, { url, at: 'b.example', dueAt: T0 });
      cache.want('d.example', { url: `${url}2`, at: 'b.example', dueAt: T0 });
      const fetch = cache.ask(ORIGIN, { url, host: HOST, at: 'b.example' }, { permit: 1, for: 0 });
      expect(fetch).toEqual({ origin: ORIGIN, url, permit: 1, for: 0 });
      expect(cache.isAsking(HOST) && cache.isAsking('b.example')).toBe(true);
      cache.doneAsking(ORIGIN);
      expect(cache.isAsking(HOST) || cache.isAsking('b.example')).toBe(false);
      expect([HOST, 'c.example', 'd.example'].map((host) => cache.wantedBy(host) !== null)).toEqual([
        false,
        false,
        true,
      ]);
    });
  });

  test('thousands of origins do not pile up', async () => {
    for (let number = 0; number < 12_000; number++) await answer('', T0, `https://h${number}.example`);
    expect(await cache.rulesOf('https://h11999.example', HOST, T0)).not.toBeNull();
    expect(await cache.rulesOf('https://h1.example', HOST, T0)).not.toBeNull();
    expect(looks).toBeGreaterThan(0);
  });
});
