import type { S3ClientConfig } from '@aws-sdk/client-s3';

/**
 * How often a request is sent again. The SDK's own way gives a client 35 retries in advance and then none until
 * requests succeed, so that during an outage of seconds most requests would fail at once; here each has its own.
 */

type Strategy = Extract<S3ClientConfig['retryStrategy'], { recordSuccess: unknown }>;
type Token = Awaited<ReturnType<Strategy['acquireInitialRetryToken']>>;

/** With the waits below: 6 to 11 s of refused connections, 11 to 21 s of "slow down". */
export const ATTEMPTS_MAX = 8;
const WAIT_MS = 100;
const THROTTLED_WAIT_MS = 400;
const WAIT_MS_MAX = 5_000;

export function patience(random: () => number = Math.random): Strategy {
  return {
    acquireInitialRetryToken: async () => tokenOf(0, 0),
    async refreshRetryTokenForRetry(token, { errorType, retryAfterHint }) {
      const retries = token.getRetryCount();
      const passing = errorType === 'TRANSIENT' || errorType === 'THROTTLING';
      if (!passing || retries + 1 >= ATTEMPTS_MAX) throw new Error('no more attempts');
      const base = errorType === 'THROTTLING' ? THROTTLED_WAIT_MS : WAIT_MS;
      const longest = Math.min(WAIT_MS_MAX, base * 2 ** retries);
      const asked = retryAfterHint ? retryAfterHint.getTime() - Date.now() : 0;
      // Between half and all of it, so that those who failed together do not come back together.
      return tokenOf(retries + 1, Math.max(longest * (1 + random()) * 0.5, Math.min(asked, WAIT_MS_MAX)));
    },
    recordSuccess() {},
  };
}

function tokenOf(retries: number, delayMs: number): Token {
  return { getRetryCount: () => retries, getRetryDelay: () => delayMs };
}
