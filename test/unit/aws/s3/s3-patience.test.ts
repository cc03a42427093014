import { describe, expect, test } from 'vitest';
import { ATTEMPTS_MAX, patience } from '../../../../src/aws/s3/s3-client.ts';

type ErrorType = 'TRANSIENT' | 'THROTTLING' | 'SERVER_ERROR' | 'CLIENT_ERROR';

/** The waits before each further attempt of a request that never succeeds. */
async function waitsOf(errorType: ErrorType, random: number, retryAfterHint?: Date): Promise<number[]> {
  const strategy = patience(() => random);
  let token = await strategy.acquireInitialRetryToken('');
  const waits: number[] = [];
  for (;;) {
    try {
      token = await strategy.refreshRetryTokenForRetry(token, {
        errorType,
        ...(retryAfterHint && { retryAfterHint }),
      });
    } catch {
      return waits;
    }
    waits.push(token.getRetryDelay());
  }
}

const sum = (values: number[]) => values.reduce((total, value) => total + value, 0);

describe('patience with S3', () => {
  test('waits double up to a limit, and end', async () => {
    expect(await waitsOf('TRANSIENT', 1)).toEqual([100, 200, 400, 800, 1_600, 3_200, 5_000]);
    expect(await waitsOf('THROTTLING', 1)).toEqual([400, 800, 1_600, 3_200, 5_000, 5_000, 5_000]);
    expect(await waitsOf('TRANSIENT', 0)).toHaveLength(ATTEMPTS_MAX - 1);
  });

  test('a restart of some seconds is outlasted, and a batch is not kept for minutes', async () => {
    expect(sum(await waitsOf('TRANSIENT', 0))).toBeGreaterThan(5_000);
    expect(sum(await waitsOf('THROTTLING', 1))).toBeLessThan(25_000);
  });

  test('what cannot get better is not tried again', async () => {
    expect(await waitsOf('CLIENT_ERROR', 1)).toEqual([]);
    expect(await waitsOf('SERVER_ERROR', 1)).toEqual([]);
  });

  test('what the server asks for is respected within the limit', async () => {
    const soon = new Date(Date.now() + 4_900);
    expect((await waitsOf('THROTTLING', 1, soon))[0]).toBeGreaterThan(2_000);
    expect((await waitsOf('THROTTLING', 1, new Date(Date.now() + 3_600_000)))[0]).toBe(5_000);
  });

  test('one request does not use up what another has', async () => {
    const strategy = patience(() => 1);
    for (let request = 0; request < 1_000; request++) {
      const token = await strategy.acquireInitialRetryToken('');
      const next = await strategy.refreshRetryTokenForRetry(token, { errorType: 'TRANSIENT' });
      expect(next.getRetryDelay()).toBe(100);
    }
  });
});
