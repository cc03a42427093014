import type { S3ClientConfig } from '@aws-sdk/client-s3';

/**
 * How often a request is sent again. The SDK's own way gives a client 35 retries in advance and then none until
 * requests succeed, so that during an outage of seconds most requests would fail at once; here each has its own.
 */

type Strategy = Extract<S3ClientConfig['retryStrategy'], { recordSuccess: unknown }>;
type Token = Awaited<ReturnType<Strategy['acquireInitialRetryToken']>>;

/** With the waits below: 6 to 11 s of refused connections, 11 to 21 s of "slow down". */
export const ATTEMPTS_MAX = 8;

/** Waits double from the first of them to the longest. */
export interface S3Waits {
  firstMs: number;
  throttledMs: number;
  longestMs: number;
}

const S3_WAITS: S3Waits = { firstMs: 100, throttledMs: 400, longestMs: 5_000 };

export function patience(random: () => number = Math.random, waits: S3Waits = S3_WAITS): Strategy {
  return {
    acquireInitialRetryToken: async () => tokenOf(0, 0),
    async refreshRetryTokenForRetry(token, { errorType, retryAfterHint }) {
      const retries = token.getRetryCount();
      const passing = errorType === 'TRANSIENT' || errorType === 'THROTTLING';
      if (!passing || retries + 1 >= ATTEMPTS_MAX) throw new Error('no more attempts');
      const base = errorType === 'THROTTLING' ? waits.throttledMs : waits.firstMs;
      const longest = Math.min(waits.longestMs, base * 2 ** retries);
      const asked = retryAfterHint ? retryAfterHint.getTime() - Date.now() : 0;
      // Between half and all of it, so that those who failed together do not come back together.
      return tokenOf(retries + 1, Math.max(longest * (1 + random()) * 0.5, Math.min(asked, waits.longestMs)));
    },
    recordSuccess() {},
  };
}

function tokenOf(retries: number, delayMs: number): Token {
  return { getRetryCount: () => retries, getRetryDelay: () => delayMs };
}
