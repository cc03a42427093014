import { describe, expect, test } from 'vitest';
import { openMessageSeal, SealError } from '../../../src/transport/message-seal.ts';

const OLD = 'o'.repeat(43);
const NEW = 'n'.repeat(43);
const CONTEXT = ['batch', 'bull', 'seine-http', 'abcdef012345-1'] as const;
const BODY = Buffer.from('{"apiKey":"very-secret"}');

describe('a sealed message', () => {
  const seal = openMessageSeal([NEW]);

  test('is opened with the same key and context, and shows nothing of its body', () => {
    const message = seal.seal(CONTEXT, BODY);
    expect(message.includes('secret')).toBe(false);
    expect(seal.open(CONTEXT, message).equals(BODY)).toBe(true);
    expect(seal.open(CONTEXT, seal.seal(CONTEXT, Buffer.alloc(0)))).toHaveLength(0);
  });

  test('is another each time', () => {
    expect(seal.seal(CONTEXT, BODY).equals(seal.seal(CONTEXT, BODY))).toBe(false);
  });

  test.each([
    ['another kind', ['reply taken', ...CONTEXT.slice(1)]],
    ['another fleet', ['batch', 'shop', 'seine-http', 'abcdef012345-1']],
    ['another queue', ['batch', 'bull', 'seine-browser', 'abcdef012345-1']],
    ['another batch', ['batch', 'bull', 'seine-http', 'abcdef012345-2']],
    ['more words', [...CONTEXT, 'x']],
    ['the same words, divided elsewhere', ['batch', 'bull', 'seine-http","abcdef012345-1']],
  ] as [string, [string, ...string[]]][])('is of no use as %s', (_, context) => {
    expect(() => seal.open(context, seal.seal(CONTEXT, BODY))).toThrow(SealError);
  });

  test('is refused when any of its bytes was changed, or some are missing', () => {
    const message = seal.seal(CONTEXT, BODY);
    for (let at = 0; at < message.length; at++) {
      const changed = Buffer.from(message);
      changed[at]! ^= 1;
      expect(() => seal.open(CONTEXT, changed), `byte ${at}`).toThrow(SealError);
      expect(() => seal.open(CONTEXT, message.subarray(0, at)), `${at} bytes`).toThrow(SealError);
    }
  });
});

test('a key is replaced in three steps, and at each all understand each other', () => {
  const steps = [[OLD], [OLD, NEW], [NEW, OLD], [NEW]].map((keys) => openMessageSeal(keys));
  for (const [at, one] of steps.entries())
    for (const other of steps.slice(Math.max(0, at - 1), at + 2))
      expect(other.open(CONTEXT, one.seal(CONTEXT, BODY)).equals(BODY)).toBe(true);
  expect(() => steps[0]!.open(CONTEXT, steps[3]!.seal(CONTEXT, BODY))).toThrow('another fleet key');
});

test('without a key nothing is signed, and with one nothing else is taken', () => {
  const [plain, signed] = [openMessageSeal([]), openMessageSeal([NEW])];
  expect([plain.isSigned, signed.isSigned]).toEqual([false, true]);
  expect(plain.open(CONTEXT, plain.seal(CONTEXT, BODY)).equals(BODY)).toBe(true);
  expect(() => signed.open(CONTEXT, plain.seal(CONTEXT, BODY))).toThrow('not signed with the fleet key');
  expect(() => plain.open(CONTEXT, signed.seal(CONTEXT, BODY))).toThrow('there is none here');
  expect(() => plain.open(CONTEXT, Buffer.alloc(0))).toThrow('it is no message');
});
