import { hash } from 'node:crypto';
import { type BrowserProfile, KNOWN_USER_AGENTS, parseProfile } from '../core/identity/browser-profile.ts';
import type { UserAgents } from '../ports/user-agents.ts';

type Device = 'desktop' | 'mobile';
export type OpenUserAgents = () => Promise<UserAgents>;

/** The data of generators has forged and outdated browsers in it: one in ten is not taken. */
const DRAWS_MAX = 20;
const PROFILES_MAX = 1_000;

const profiles = new Map<string, BrowserProfile>();

/** The browser that an identity stands for: the same in every worker, and after a restart. */
export async function profileOf(
  identity: string,
  device: Device,
  open: OpenUserAgents | undefined,
): Promise<BrowserProfile> {
  const key = `${device} ${identity}`;
  const known = profiles.get(key);
  if (known) return known;
  const profile = drawProfile(open ? await open().catch(() => null) : null, identity, device);
  if (profiles.size >= PROFILES_MAX) profiles.clear();
  profiles.set(key, profile);
  return profile;
}

/** Without anything to draw from, or anything sound in it, one of the known ones. */
export function drawProfile(userAgents: UserAgents | null, identity: string, device: Device): BrowserProfile {
  const seed = seedOf(identity);
  const known = KNOWN_USER_AGENTS[device];
  return firstSound(userAgents, seed, device) ?? parseProfile(known[seed % known.length]!)!;
}

function firstSound(userAgents: UserAgents | null, seed: number, device: Device): BrowserProfile | null {
  let draws = 0;
  try {
    for (const userAgent of userAgents?.drawn(seed, device) ?? []) {
      const profile = parseProfile(userAgent);
      if (profile?.mobile === (device === 'mobile')) return profile;
      if (++draws === DRAWS_MAX) return null;
    }
  } catch {
    // The data is not ours: when it cannot be read, the known ones will do.
  }
  return null;
}

/** Any number that belongs to an identity. */
export function seedOf(identity: string): number {
  return Number.parseInt(hash('sha256', identity).slice(0, 8), 16);
}
