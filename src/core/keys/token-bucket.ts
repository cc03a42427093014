/**
 * A token bucket: a caller may send `limit` requests at once and `limit` in a minute. Its values are those of the RateLimit
 * header fields: how many requests are left, and in how many seconds the bucket is full again.
 */
export interface TokenBucket {
  tokens: number;
  /** When `tokens` was right. */
  at: number;
}

export interface RateDecision {
  allowed: boolean;
  limit: number;
  remaining: number;
  /** Until the bucket is full; for a refused request, until the next one is allowed. */
  resetSeconds: number;
}

const RATE_WINDOW_MS = 60_000;

export function fullBucket(limit: number, now: number): TokenBucket {
  return { tokens: limit, at: now };
}

/** Changes the bucket. A clock that goes backwards adds nothing. */
export function takeToken(bucket: TokenBucket, limit: number, now: number): RateDecision {
  const perMs = limit / RATE_WINDOW_MS;
  bucket.tokens = Math.min(limit, bucket.tokens + Math.max(0, now - bucket.at) * perMs);
  bucket.at = now;
  const allowed = bucket.tokens >= 1;
  if (allowed) bucket.tokens -= 1;
  const missing = allowed ? limit - bucket.tokens : 1 - bucket.tokens;
  return {
    allowed,
    limit,
    remaining: Math.floor(bucket.tokens),
    resetSeconds: Math.max(1, Math.ceil(missing / perMs / 1_000)),
  };
}
