import { describe, expect, test } from 'vitest';
import {
  formatAmount,
  formatBytes,
  formatCount,
  formatCountShort,
  formatDuration,
  formatPercent,
  formatRate,
  formatUsd,
} from '../../../src/tui/format.ts';
import { cleanText, cutMiddle } from '../../../src/tui/text.ts';

describe('numbers for people', () => {
  test.each([
    [
      formatDuration,
      [
        [0, '0 ms'],
        [-5, '0 ms'],
        [850, '850 ms'],
        [999.6, '1.0 s'],
        [4_240, '4.2 s'],
        [9_960, '10 s'],
        [59_600, '1m 00s'],
        [187_000, '3m 07s'],
        [7_500_000, '2h 05m'],
        [273_600_000, '3d 04h'],
      ],
    ],
    [
      formatCount,
      [
        [0, '0'],
        [999, '999'],
        [1_234_567, '1,234,567'],
      ],
    ],
    [
      formatCountShort,
      [
        [9_999, '9,999'],
        [12_345, '12.3k'],
        [999_950, '1.00M'],
        [4_560_000, '4.56M'],
      ],
    ],
    [
      formatBytes,
      [
        [0, '0 B'],
        [999, '999 B'],
        [1_500, '1.50 kB'],
        [999_960, '1.00 MB'],
        [12_345_678, '12.3 MB'],
        [5e12, '5.00 TB'],
      ],
    ],
    [
      formatRate,
      [
        [0, '0'],
        [0.25, '0.25'],
        [4.24, '4.2'],
        [99.96, '100'],
        [1_204.4, '1,204'],
      ],
    ],
    [
      formatPercent,
      [
        [0, '0 %'],
        [0.0001, '1 %'],
        [0.5, '50 %'],
        [0.9999, '99 %'],
        [1, '100 %'],
      ],
    ],
  ] as [(value: number) => string, [number, string][]][])('%o', (format, cases) => {
    for (const [value, text] of cases) expect(format(value)).toBe(text);
  });

  test('text is cleaned and cut', () => {
    expect(cleanText('a\u001b[2Jb\nc\u0000d\u202ee\u200b')).toBe('ab c de');
    expect(cutMiddle('abcdefghijklmnop', 9)).toBe('abcd…mnop');
    expect(cutMiddle('abcdefgh', 8)).toBe('abcdefgh');
  });
});

test('amounts have their word in the right number, and money two digits that matter', () => {
  expect([0, 1, 2_000].map((count) => formatAmount(count, 'record'))).toEqual([
    '0 records',
    '1 record',
    '2,000 records',
  ]);
  expect(formatAmount(2, 'retry', 'retries')).toBe('2 retries');
  expect([0, 0.0000017, 0.00996, 0.0421, 0.5, 12.3].map(formatUsd)).toEqual([
    '0 USD',
    '0.0000017 USD',
    '0.010 USD',
    '0.042 USD',
    '0.50 USD',
    '12.30 USD',
  ]);
});
