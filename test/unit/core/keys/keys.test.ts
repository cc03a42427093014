import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { hashOfKey, hideApiKeys, isApiKey, makeApiKey, scopesOf } from '../../../../src/core/keys/api-key.ts';
import { fullBucket, takeToken } from '../../../../src/core/keys/token-bucket.ts';

const BYTES = fc.uint8Array({ minLength: 32, maxLength: 32 });

describe('a key', () => {
  test('is told from one with a typing error', () => {
    fc.assert(
      fc.property(BYTES, fc.nat({ max: 54 }), (bytes, place) => {
        const key = makeApiKey(bytes);
        expect(key).toMatch(/^seine_[\w-]{49}$/);
        expect(isApiKey(key)).toBe(true);
        const at = Math.max(6, place);
        const other = key[at] === 'x' ? 'y' : 'x';
        expect(isApiKey(key.slice(0, at) + other + key.slice(at + 1))).toBe(false);
      }),
    );
    const key = makeApiKey(new Uint8Array(32));
    for (const wrong of [`${key}A`, key.slice(0, -1), 'seine_', '', 'short', 'two words '.repeat(5)])
      expect(isApiKey(wrong)).toBe(false);
  });

  test('may come from another tool when it is long enough', () => {
    expect(isApiKey('0123456789abcdef0123456789abcdef')).toBe(true);
    expect(isApiKey('0123456789abcdef0123456789abcde')).toBe(false);
  });

  test('is stored as a hash, and never shown', () => {
    const key = makeApiKey(new Uint8Array(32));
    expect(hashOfKey(key)).toMatch(/^[0-9a-f]{64}$/);
    expect(hideApiKeys(`x-api-key: ${key}, again ${key}.`)).toBe('x-api-key: seine_***, again seine_***.');
    expect(hideApiKeys('seine_serve runs')).toBe('seine_serve runs');
  });

  test('has all scopes below its own', () => {
    expect([...scopesOf('read')]).toEqual(['read']);
    expect([...scopesOf('admin')]).toEqual(['read', 'write', 'admin']);
  });
});

describe('a token bucket', () => {
  test('gives its limit at once, then one for each part of a minute', () => {
    const bucket = fullBucket(3, 0);
    expect(takeToken(bucket, 3, 0)).toEqual({ allowed: true, limit: 3, remaining: 2, resetSeconds: 20 });
    takeToken(bucket, 3, 0);
    expect(takeToken(bucket, 3, 0)).toMatchObject({ allowed: true, remaining: 0, resetSeconds: 60 });
    expect(takeToken(bucket, 3, 0)).toMatchObject({ allowed: false, remaining: 0, resetSeconds: 20 });
    expect(takeToken(bucket, 3, 19_000)).toMatchObject({ allowed: false, resetSeconds: 1 });
    expect(takeToken(bucket, 3, 20_000)).toMatchObject({ allowed: true, remaining: 0 });
    // The clock went back.
    expect(takeToken(bucket, 3, 1_000)).toMatchObject({ allowed: false });
  });

  test('never gives more than its limit and what came in since, and says when the next is allowed', () => {
    const steps = fc.array(fc.nat({ max: 20_000 }), { maxLength: 60 });
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 50 }), steps, (limit, gaps) => {
        const bucket = fullBucket(limit, 0);
        let now = 0;
        let taken = 0;
        for (const gap of gaps) {
          now += gap;
          const { allowed, remaining, resetSeconds } = takeToken(bucket, limit, now);
          if (allowed) taken++;
          expect(taken).toBeLessThanOrEqual(limit + (now / 60_000) * limit + 1e-6);
          expect(remaining).toBeLessThanOrEqual(limit);
          if (!allowed)
            expect(takeToken({ ...bucket }, limit, now + resetSeconds * 1_000).allowed).toBe(true);
        }
      }),
    );
  });
});
