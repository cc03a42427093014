import { hash } from 'node:crypto';
import { type BrowserProfile, KNOWN_USER_AGENTS, parseProfile } from '../core/identity-profile.ts';

export type Device = 'desktop' | 'mobile';

/** Gives User-Agents as often as they are met in the world, one for each call. */
type DrawUserAgent = (device: Device) => string | undefined;

/** The data of the generator has forged and outdated browsers in it: one in ten is not taken. */
const DRAWS_MAX = 20;
const PROFILES_MAX = 1_000;

let drawing: Promise<DrawUserAgent | null> | null = null;
const profiles = new Map<string, BrowserProfile>();

/** The browser that an identity stands for: the same in every worker, and after a restart. */
export async function profileOf(identity: string, device: Device): Promise<BrowserProfile> {
  const key = `${device} ${identity}`;
  const known = profiles.get(key);
  if (known) return known;
  drawing ??= loadGenerator();
  const profile = drawProfile(await drawing, identity, device);
  if (profiles.size >= PROFILES_MAX) profiles.clear();
  profiles.set(key, profile);
  return profile;
}

/** Exported for tests: what happens without a generator. */
export function drawProfile(draw: DrawUserAgent | null, identity: string, device: Device): BrowserProfile {
  const seed = seedOf(identity);
  const wanted = (profile: BrowserProfile | null) => profile?.mobile === (device === 'mobile');
  const drawn = draw && withRandom(seed, () => firstSound(() => parseProfile(draw(device) ?? ''), wanted));
  if (drawn) return drawn;
  const known = KNOWN_USER_AGENTS[device];
  return parseProfile(known[seed % known.length]!)!;
}

function firstSound(
  draw: () => BrowserProfile | null,
  wanted: (profile: BrowserProfile | null) => boolean,
): BrowserProfile | null {
  for (let count = 0; count < DRAWS_MAX; count++) {
    const profile = draw();
    if (wanted(profile)) return profile;
  }
  return null;
}

/** Loaded with the first identity: 100 ms that jobs under their own name do not spend. */
async function loadGenerator(): Promise<DrawUserAgent | null> {
  try {
    const { HeaderGenerator } = await import('header-generator');
    const generator = new HeaderGenerator({ httpVersion: '2' });
    return (device) => {
      const headers = generator.getHeaders({ devices: [device], strict: true });
      return headers['user-agent'] ?? headers['User-Agent'];
    };
  } catch {
    return null;
  }
}

/** The generator knows only `Math.random`. It runs without a pause, so nobody else meets this one. */
function withRandom<T>(seed: number, work: () => T): T | null {
  const random = Math.random;
  let state = seed;
  Math.random = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 0x1_0000_0000;
  };
  try {
    return work();
  } catch {
    return null;
  } finally {
    Math.random = random;
  }
}

/** Any number that belongs to an identity. */
export function seedOf(identity: string): number {
  return Number.parseInt(hash('sha256', identity).slice(0, 8), 16);
}
