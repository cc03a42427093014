import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { SETTINGS } from '../../../../src/config/schema.ts';
import { parseDispatch } from '../../../../src/core/job-schema/dispatch-target.ts';

describe('the setting dispatch', () => {
  test.each([
    ['threads', [{ kind: 'threads', weight: 1 }]],
    [' threads=3 ', [{ kind: 'threads', weight: 3 }]],
    ['bullmq://cache:6379', [{ kind: 'bullmq', url: 'redis://cache:6379', weight: 1 }]],
    ['bullmqs://cache', [{ kind: 'bullmq', url: 'rediss://cache', weight: 1 }]],
    ['redis://cache/2=4', [{ kind: 'bullmq', url: 'redis://cache/2', weight: 4 }]],
    ['rediss://u:p%3D1@cache:1', [{ kind: 'bullmq', url: 'rediss://u:p%3D1@cache:1', weight: 1 }]],
    ['bullmq://[::1]:6379=2', [{ kind: 'bullmq', url: 'redis://[::1]:6379', weight: 2 }]],
    ['lambda://seine', [{ kind: 'lambda', name: 'seine', weight: 1 }]],
    [
      'lambda://arn:aws:lambda:eu-central-1:123456789012:function:seine:live=9',
      [{ kind: 'lambda', name: 'arn:aws:lambda:eu-central-1:123456789012:function:seine:live', weight: 9 }],
    ],
    [
      'threads=1, bullmq://cache=2,lambda://seine=1000',
      [
        { kind: 'threads', weight: 1 },
        { kind: 'bullmq', url: 'redis://cache', weight: 2 },
        { kind: 'lambda', name: 'seine', weight: 1_000 },
      ],
    ],
  ])('%s is understood', (text, targets) => {
    expect(parseDispatch(text)).toEqual(targets);
  });

  test.each([
    '',
    'thread',
    'threads=0',
    'threads=1001',
    'threads=-1',
    'threads=1.5',
    'threads=',
    'threads,',
    'bullmq://',
    'bullmq:cache',
    'bullmq://cache:port',
    'http://cache',
    'lambda://',
    'lambda://a b',
    'lambda://../x',
    `lambda://${'f'.repeat(171)}`,
    Array(17).fill('threads').join(','),
  ])('%j makes no sense', (text) => {
    expect(parseDispatch(text)).toBeNull();
  });

  test('of any text is targets or nothing, and quickly', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 200 }), (text) => {
        const targets = parseDispatch(text);
        if (targets) for (const { weight } of targets) expect(Number.isInteger(weight)).toBe(true);
      }),
    );
    expect(parseDispatch('='.repeat(100_000))).toBeNull();
  });

  test('is shown without passwords, as it was written otherwise', () => {
    const text = 'threads=2,bullmq://user:secret@cache:6379=3,lambda://seine';
    const targets = parseDispatch(text)!;
    expect(SETTINGS.dispatch.show!(targets)).toBe('threads=2,redis://user@cache:6379=3,lambda://seine');
    const [, bullmq] = parseDispatch('threads,bullmq://:secret@cache')!;
    expect(SETTINGS.dispatch.show!([bullmq!])).toBe('redis://cache');
  });
});
