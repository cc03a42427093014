import { describe, expect, test } from 'vitest';
import { EXIT_CODES, messageOf, SeineError } from '../../../src/core/errors.ts';
import { FAILURES, failureKind, failureOfStatus, SKIPS } from '../../../src/core/failures.ts';

describe('failure codes', () => {
  test('each is one lower-case word or more, and explains itself in a sentence', () => {
    for (const [code, { doc }] of Object.entries(FAILURES)) {
      expect(code).toMatch(/^[a-z]+(-[a-z]+)*$/);
      expect(doc).toMatch(/^[A-Zr].{8,}\.$/);
    }
    for (const doc of Object.values(SKIPS)) expect(doc).toMatch(/\.$/);
    expect(Object.keys(FAILURES).filter((code) => code in SKIPS)).toEqual([]);
  });

  test('what trying again cannot change is permanent', () => {
    const permanent = [
      'not-found',
      'forbidden',
      'unauthorized',
      'tls',
      'too-large',
      'private-address',
      'worker-lost',
    ] as const;
    for (const code of permanent) expect(failureKind(code).retry).toBe('permanent');
    for (const code of ['dns', 'connect', 'reset', 'server-error'] as const)
      expect(failureKind(code).retry).toBe('transient');
    for (const code of ['throttled', 'unavailable'] as const)
      expect(failureKind(code).retry).toBe('throttled');
  });

  test.each([
    [200, null],
    [204, null],
    [299, null],
    [400, 'client-error'],
    [401, 'unauthorized'],
    [403, 'forbidden'],
    [404, 'not-found'],
    [407, 'unauthorized'],
    [410, 'not-found'],
    [418, 'client-error'],
    [429, 'throttled'],
    [451, 'forbidden'],
    [499, 'client-error'],
    [500, 'server-error'],
    [502, 'server-error'],
    [503, 'unavailable'],
    [599, 'server-error'],
    [300, 'bad-status'],
    [304, 'bad-status'],
    [199, 'bad-status'],
    [99, 'bad-status'],
    [600, 'bad-status'],
    [999, 'bad-status'],
  ])('status %i is %s', (status, code) => {
    expect(failureOfStatus(status)).toBe(code);
  });
});

describe('exit codes', () => {
  test('differ, and fit into a process', () => {
    const codes = Object.values(EXIT_CODES).map((each) => each.code);
    expect(new Set(codes).size).toBe(codes.length);
    for (const code of codes) expect(code >= 0 && code < 256).toBe(true);
    expect(EXIT_CODES.success.code).toBe(0);
  });

  test('an operator error is bad input unless it says otherwise', () => {
    const cause = new Error('inner');
    expect(new SeineError('m')).toMatchObject({
      name: 'SeineError',
      exit: 'bad-input',
      hint: null,
      message: 'm',
    });
    expect(new SeineError('m', { exit: 'locked', hint: 'h', cause })).toMatchObject({
      exit: 'locked',
      hint: 'h',
      cause,
    });
    expect(messageOf(cause)).toBe('inner');
    expect(messageOf('text')).toBe('text');
    expect(messageOf(undefined)).toBe('undefined');
  });
});
