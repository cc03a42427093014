import { expect, test } from 'vitest';
import { checkMachine, checkNode } from '../../../../src/cli/doctor/check-machine.ts';

const GB = 1024 ** 3;

test('cores and memory are what the cgroup leaves of them', () => {
  const whole = { cores: 8, memoryBytes: 16 * GB };
  expect(checkMachine(whole, whole).detail).toMatch(/^8 cores, [^(]* memory$/);
  for (const own of [
    { cores: 1, memoryBytes: 2 * GB },
    { cores: 1, memoryBytes: 16 * GB },
  ])
    expect(checkMachine(own, whole).detail).toMatch(
      /^1 core, .* memory \(limited by its cgroup; the machine has 8 cores, .* memory\)$/,
    );
  expect(checkMachine().detail).toMatch(/^\d+ cores?, /);
});

test('every Node that Seine supports passes', () => {
  for (const version of ['v22.19.0', 'v23.0.0', 'v24.1.0', 'v26.0.0'])
    expect(checkNode(version).detail).toBe(version);
  for (const version of ['v22.18.9', 'v20.19.0'])
    expect(() => checkNode(version)).toThrow(`${version} is too old`);
});
