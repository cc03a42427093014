import { expect, test } from 'vitest';
import { checkMachine, checkNode } from '../../../../src/cli/doctor/check-machine.ts';

const GB = 1024 ** 3;

test('memory is what the cgroup leaves of it', () => {
  expect(checkMachine(16 * GB, 2 * GB).detail).toMatch(
    /^\d+ cores, .* memory \(limited by its cgroup; the machine has .*\)$/,
  );
  for (const none of [0, 16 * GB, 2 ** 63])
    expect(checkMachine(16 * GB, none).detail).not.toContain('cgroup');
});

test('every Node that Seine supports passes', () => {
  for (const version of ['v22.19.0', 'v23.0.0', 'v24.1.0', 'v26.0.0'])
    expect(checkNode(version).detail).toBe(version);
  for (const version of ['v22.18.9', 'v20.19.0'])
    expect(() => checkNode(version)).toThrow(`${version} is too old`);
});
