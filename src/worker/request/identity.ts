import { hash } from 'node:crypto';
import type { BatchTask } from '../../core/batch/batch.ts';
import { type FetchMethod, mayRender } from '../../core/escalation/escalation.ts';
import {
  acceptLanguage,
  browserHeaders,
  DEFAULT_LANGUAGES,
  type PageRequest,
  placeHeaders,
} from '../../core/identity/browser-headers.ts';
import {
  type BrowserProfile,
  besideChromium,
  type EmulatedBrowser,
  emulatedProfile,
  KNOWN_USER_AGENTS,
  parseProfile,
} from '../../core/identity/browser-profile.ts';
import { LruMap } from '../../core/lru.ts';
import { refererFor } from '../../core/url/referrer.ts';
import type { FetchRequest } from '../../ports/fetcher.ts';
import type { UserAgents } from '../../ports/user-agents.ts';
import type { CompiledJob } from '../job/compiled-job.ts';

type Device = 'desktop' | 'mobile';
type OpenUserAgents = () => Promise<UserAgents>;

/** What identities over HTTP are made of. */
export interface IdentitySources {
  /** What they are drawn from; the known browsers when absent. */
  openUserAgents?: OpenUserAgents;
  /** The main version of the Chromium that renders pages here; null where there is none. */
  chromiumMajor?: () => Promise<number | null>;
}

/** The data of generators has forged and outdated browsers in it: one in ten is not taken. */
const DRAWS_MAX = 20;
const PROFILES_MAX = 1_000;

const profiles = new LruMap<BrowserProfile>(PROFILES_MAX);

/** The browser that an identity stands for: the same in every worker, and after a restart. */
async function profileOf(
  identity: string,
  device: Device,
  open: OpenUserAgents | undefined,
): Promise<BrowserProfile> {
  const key = `${device} ${identity}`;
  const known = profiles.get(key);
  if (known) return known;
  const profile = drawProfile(open ? await open().catch(() => null) : null, identity, device);
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
function seedOf(identity: string): number {
  return Number.parseInt(hash('sha256', identity).slice(0, 8), 16);
}

interface RequestHeaders {
  headers: Record<string, string>;
  emulate?: EmulatedBrowser;
  poses?: FetchRequest['poses'];
}

/** What a request looks like under its fetch method. `further` are cookies and conditions. */
export async function requestHeaders(
  task: BatchTask,
  fetchMethod: FetchMethod,
  job: CompiledJob,
  further: Record<string, string>,
  destination: PageRequest['destination'],
  sources: IdentitySources,
): Promise<RequestHeaders> {
  const { identity } = job.spec;
  if (fetchMethod.identity === null) return { headers: { ...job.headers, ...further } };
  if (fetchMethod.fetcher === 'api') return { headers: placeHeaders(null, identity.headers, further) };
  // A real browser has headers of its own; its languages are those of the identity, in headers and for scripts alike.
  if (fetchMethod.fetcher === 'browser') {
    const languages = { 'Accept-Language': acceptLanguage(identity.languages ?? DEFAULT_LANGUAGES) };
    const poses = { device: identity.device } as const;
    return { headers: placeHeaders(null, { ...languages, ...identity.headers }, further), poses };
  }
  const impersonates = fetchMethod.fetcher === 'impersonate';
  const { profile, ...identified } = impersonates
    ? emulatedProfile(seedOf(fetchMethod.identity), identity.device)
    : { profile: await httpProfile(fetchMethod.identity, job, sources) };
  const headers = browserHeaders(profile, fetchMethod.headers, {
    url: task.url,
    referer: refererOf(task),
    languages: identity.languages ?? DEFAULT_LANGUAGES,
    destination,
    http2: impersonates && task.url.startsWith('https:'),
  });
  return { ...identified, headers: placeHeaders(profile, headers, { ...identity.headers, ...further }) };
}

async function httpProfile(
  identity: string,
  { spec }: CompiledJob,
  { openUserAgents, chromiumMajor }: IdentitySources,
): Promise<BrowserProfile> {
  const profile = await profileOf(identity, spec.identity.device, openUserAgents);
  if (!chromiumMajor || !spec.routes.some(mayRender)) return profile;
  return besideChromium(profile, await chromiumMajor());
}

/**
 * The page that links here. Where it is not known, a followed link is one of the site's own, and its front page is the
 * likeliest to lead there; what a source names was typed in.
 */
function refererOf({ url, depth, referrer }: BatchTask): string | null {
  if (referrer !== undefined) return refererFor(referrer, url);
  if (depth === 0) return null;
  const front = url.slice(0, url.indexOf('/', url.indexOf('://') + 3) + 1);
  return front === url || front === '' ? null : front;
}
