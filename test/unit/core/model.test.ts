import { describe, expect, test } from 'vitest';
import { balance, COUNTER_NAMES, JOB_STATES, TASK_STATES, zeroCounters } from '../../../src/core/model.ts';

describe('counters', () => {
  test('start at zero, and balance', () => {
    const zero = zeroCounters();
    expect(Object.keys(zero).sort()).toEqual([...COUNTER_NAMES].sort());
    expect(Object.values(zero).every((value) => value === 0)).toBe(true);
    expect(balance(zero)).toBe(0);
    expect(zeroCounters()).not.toBe(zero);
  });

  test('every state of a task is a counter of its own, and each weighs in the balance', () => {
    for (const state of TASK_STATES) {
      expect(COUNTER_NAMES).toContain(state);
      expect(balance({ ...zeroCounters(), accepted: 5, [state]: 5 })).toBe(0);
      expect(balance({ ...zeroCounters(), [state]: 1 })).toBe(-1);
    }
    expect(balance({ ...zeroCounters(), accepted: 1 })).toBe(1);
    const other = COUNTER_NAMES.filter(
      (name) => name !== 'accepted' && !(TASK_STATES as readonly string[]).includes(name),
    );
    for (const name of other) expect(balance({ ...zeroCounters(), [name]: 9 })).toBe(0);
  });

  test('states have distinct names', () => {
    expect(new Set(TASK_STATES).size).toBe(TASK_STATES.length);
    expect(new Set(JOB_STATES).size).toBe(JOB_STATES.length);
    expect(new Set(COUNTER_NAMES).size).toBe(COUNTER_NAMES.length);
  });
});
