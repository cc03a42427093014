import { expect, test } from 'vitest';
import { addAnswer, refusedShare, verdictOf } from '../../../../src/core/calibration/sequential-test.ts';

const scoreOf = (answers: string) =>
  [...answers].reduce((score, answer) => addAnswer(score, answer === 'x'), 0);

test('162 clean answers accept a rate, and 161 do not', () => {
  expect(verdictOf(scoreOf('.'.repeat(161)))).toBe('open');
  expect(verdictOf(scoreOf('.'.repeat(162)))).toBe('accepted');
});

test('two refusals within 91 answers reject a rate, one does not', () => {
  expect(verdictOf(scoreOf(`x${'.'.repeat(89)}x`))).toBe('rejected');
  expect(verdictOf(scoreOf(`x${'.'.repeat(95)}x`))).toBe('open');
  expect(verdictOf(scoreOf('x'))).toBe('open');
});

test('an hour of clean answers does not outweigh a limit that begins then', () => {
  expect(verdictOf(scoreOf(`${'.'.repeat(5_000)}xxx`))).toBe('rejected');
});

test('the interval of a share holds also where nothing was refused', () => {
  expect(refusedShare(0, 0)).toEqual({ share: 0, low: 0, high: 1 });
  const none = refusedShare(0, 162);
  expect(none.low).toBe(0);
  expect(none.high).toBeGreaterThan(0.015);
  expect(none.high).toBeLessThan(0.03);
  const some = refusedShare(10, 100);
  expect(some.low).toBeLessThan(0.1);
  expect(some.high).toBeGreaterThan(0.1);
});
