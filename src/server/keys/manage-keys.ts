import { randomBytes } from 'node:crypto';
import { SeineError } from '../../core/errors.ts';
import {
  hashOfKey,
  KEY_BYTES,
  KEY_LIMITS_DEFAULT,
  type KeyLimits,
  makeApiKey,
  type Scope,
} from '../../core/keys/api-key.ts';
import type { ApiKey, KeyStore } from '../../ports/store/key-store.ts';

/** Of the key that the environment gives: a new value replaces the old one. */
const ADMIN_KEY_ID = 'environment';

interface NewKey {
  name: string;
  scope: Scope;
  limits: Partial<KeyLimits>;
}

/** The key itself is in the answer, and never again anywhere. Null when the name is taken. */
export async function createKey(
  keys: KeyStore,
  { name, scope, limits }: NewKey,
  now: number,
): Promise<{ key: string; stored: ApiKey } | null> {
  const key = makeApiKey(randomBytes(KEY_BYTES));
  const stored = await keys.create({
    id: `key_${randomBytes(9).toString('base64url')}`,
    name,
    hash: hashOfKey(key),
    scope,
    limits: { ...KEY_LIMITS_DEFAULT, ...limits },
    createdAt: now,
  });
  return stored && { key, stored };
}

/** Makes the key of the environment known, and the one that it had before unknown. */
export async function keepAdminKey(keys: KeyStore, key: string | null, now: number): Promise<void> {
  const stored = (await keys.list()).find(({ id }) => id === ADMIN_KEY_ID);
  if (key === null) {
    if (stored) await keys.revoke(ADMIN_KEY_ID, now);
    return;
  }
  const hash = hashOfKey(key);
  if (stored?.hash === hash && stored.revokedAt === null) return;
  const limits = { ...KEY_LIMITS_DEFAULT, requestsPerMinute: null };
  const made = await keys
    .replace({ id: ADMIN_KEY_ID, name: ADMIN_KEY_ID, hash, scope: 'admin', limits, createdAt: now })
    .catch(() => null);
  if (!made)
    throw new SeineError('SEINE_ADMIN_KEY is a key that has a name of its own already', {
      hint: 'use another key, or revoke that one with `seine keys revoke`',
    });
}
