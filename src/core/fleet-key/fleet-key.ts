/**
 * The fleet key: a secret of coordinators and workers that never goes through Redis. Batches, reports and heartbeats are
 * signed and encrypted with it. The first key of a list signs; all of them are accepted, so that a fleet can change its
 * key without stopping.
 */

/** 32 bytes in base64: a password that a person can remember can be guessed by whoever reads Redis. */
export const FLEET_KEY_LENGTH_MIN = 43;
const FLEET_KEY_LENGTH_MAX = 256;
/** The one that signs, one that is being replaced, and one more. */
const FLEET_KEYS_MAX = 3;

/** Keys in the order in which they were given, separated by commas or lines. Null when one of them is no key. */
export function parseFleetKeys(text: string): string[] | null {
  const keys = text.split(/[\s,]+/).filter((part) => part !== '');
  const areKeys = keys.every(
    (key) =>
      /^[\w+/=-]+$/.test(key) && key.length >= FLEET_KEY_LENGTH_MIN && key.length <= FLEET_KEY_LENGTH_MAX,
  );
  return areKeys && keys.length > 0 && keys.length <= FLEET_KEYS_MAX ? keys : null;
}
