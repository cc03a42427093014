import { describe, expect, test } from 'vitest';
import { ownersOf } from '../../../src/server/api/keys/local-access.ts';

const HEAD =
  '  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode';
const row = (from: number, to: number, state: string, user: number) => {
  const address = (port: number) => `0100007F:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  return `   1: ${address(from)} ${address(to)} ${state} 00000000:00000000 00:00000000 00000000 ${user} 0 4711 1 0000000000000000 20 4 30 10 -1`;
};

describe('users of connections', () => {
  const table = [HEAD, row(7420, 0, '0A', 0), row(50_001, 7420, '01', 1_000), row(7420, 50_001, '01', 0)];

  test('are those of the end that asks', () => {
    expect(ownersOf(table.join('\n'), 7420)).toEqual(new Map([[50_001, [1_000]]]));
    expect(ownersOf(table.join('\n'), 7421)).toEqual(new Map());
  });

  test.each([
    ['FIN_WAIT1', '04'],
    ['FIN_WAIT2', '05'],
    ['TIME_WAIT', '06'],
  ])('of a program that went away (%s) are unknown, though the table says root', (_, state) => {
    expect(ownersOf([HEAD, row(50_001, 7420, state, 0)].join('\n'), 7420)).toEqual(new Map());
  });
});
