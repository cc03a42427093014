import { getOwn } from '../values/own-property.ts';

/**
 * A browser that exists: what it is, and the User-Agent it is known by. Only whole, current ones are read from a
 * User-Agent; everything else that such a browser sends follows from these few facts (`identity-headers.ts`), so that no
 * two headers of an identity can contradict each other.
 */

type BrowserName = 'chrome' | 'edge' | 'firefox' | 'safari';
type PlatformName = 'Windows' | 'macOS' | 'Linux' | 'Android' | 'iOS';

export interface BrowserProfile {
  browser: BrowserName;
  platform: PlatformName;
  mobile: boolean;
  major: number;
  userAgent: string;
}

/** Older ones are hardly seen any more, and more often forged than real. To be raised with `header-generator`. */
const OLDEST: Record<BrowserName, number> = { chrome: 143, edge: 143, firefox: 146, safari: 18 };

/**
 * The main version of Chrome and Edge that every identity names: over HTTP, impersonated, and in a real Chromium that is
 * at least as new. It is the newest one whose TLS is spoken. Browsers update themselves within weeks, while the data that
 * identities are drawn from is months old.
 */
export const CHROMIUM_MAJOR = 151;

const CHROMIUM =
  /^Mozilla\/5\.0 \(([^)]+)\) AppleWebKit\/537\.36 \(KHTML, like Gecko\) Chrome\/(\d{3})\.0\.0\.0( Mobile)? Safari\/537\.36(?: (Edg|EdgA)\/(\d{3})\.0\.0\.0)?$/;
const FIREFOX = /^Mozilla\/5\.0 \(([^)]+); rv:(\d{3})\.0\) Gecko\/(20100101|\d{3}\.0) Firefox\/(\d{3})\.0$/;
const SAFARI =
  /^Mozilla\/5\.0 \(([^)]+)\) AppleWebKit\/605\.1\.15 \(KHTML, like Gecko\) Version\/(\d\d)\.(\d)(?:\.\d)?( Mobile\/15E148)? Safari\/(605\.1\.15|604\.1)$/;

const PLATFORMS: Record<string, PlatformName> = {
  'Windows NT 10.0; Win64; x64': 'Windows',
  'Macintosh; Intel Mac OS X 10_15_7': 'macOS',
  'Macintosh; Intel Mac OS X 10.15': 'macOS',
  'X11; Linux x86_64': 'Linux',
  'X11; Ubuntu; Linux x86_64': 'Linux',
  'Linux; Android 10; K': 'Android',
};

/** Null for whatever is not a current browser as it names itself. */
export function parseProfile(userAgent: string): BrowserProfile | null {
  const profile = chromiumOf(userAgent) ?? firefoxOf(userAgent) ?? safariOf(userAgent);
  if (profile === null || profile.major < OLDEST[profile.browser]) return null;
  return isChromium(profile) ? withMajor(profile, CHROMIUM_MAJOR) : profile;
}

/** The same browser beside a real Chromium, which does other pages of the job and may be older: both name one version. */
export function besideChromium(profile: BrowserProfile, major: number | null): BrowserProfile {
  return isChromium(profile) && major !== null && major < profile.major ? withMajor(profile, major) : profile;
}

function isChromium({ browser }: BrowserProfile): boolean {
  return browser === 'chrome' || browser === 'edge';
}

function withMajor(profile: BrowserProfile, major: number): BrowserProfile {
  const userAgent = profile.userAgent.replace(/\b(Chrome|EdgA?)\/\d+/g, `$1/${major}`);
  return { ...profile, major, userAgent };
}

function chromiumOf(userAgent: string): BrowserProfile | null {
  const found = CHROMIUM.exec(userAgent);
  if (!found) return null;
  const [, place, version, mobileWord, edge, edgeVersion] = found;
  const platform = getOwn(PLATFORMS, place!);
  const mobile = mobileWord !== undefined;
  if (platform === undefined || place!.includes('10.15') || mobile !== (platform === 'Android')) return null;
  if (edge !== undefined && (edgeVersion !== version || (edge === 'EdgA') !== mobile)) return null;
  return { browser: edge ? 'edge' : 'chrome', platform, mobile, major: Number(version), userAgent };
}

function firefoxOf(userAgent: string): BrowserProfile | null {
  const found = FIREFOX.exec(userAgent);
  if (!found) return null;
  const [, place, revision, gecko, version] = found;
  const mobile = /^Android 1\d; Mobile$/.test(place!);
  const platform = mobile ? 'Android' : getOwn(PLATFORMS, place!);
  if (platform === undefined || place!.includes('10_15') || revision !== version) return null;
  if (gecko !== (mobile ? `${version}.0` : '20100101')) return null;
  return { browser: 'firefox', platform, mobile, major: Number(version), userAgent };
}

function safariOf(userAgent: string): BrowserProfile | null {
  const found = SAFARI.exec(userAgent);
  if (!found) return null;
  const [, place, major, minor, mobileWord, engine] = found;
  const mobile = mobileWord !== undefined;
  if (engine !== (mobile ? '604.1' : '605.1.15')) return null;
  const profile = { browser: 'safari', mobile, major: Number(major), userAgent } as const;
  if (!mobile) return getOwn(PLATFORMS, place!) === 'macOS' ? { ...profile, platform: 'macOS' } : null;
  // Since version 26 the system is frozen at what came before it.
  const system = /^iPhone; CPU iPhone OS (\d\d)_(\d)(?:_\d)? like Mac OS X$/.exec(place!);
  if (!system) return null;
  const fits =
    Number(major) >= 26
      ? system[1] === '18' && Number(system[2]) >= 6
      : system[1] === major && system[2] === minor;
  return fits ? { ...profile, platform: 'iOS' } : null;
}

/** A fallback: the most common ones. */
export const KNOWN_USER_AGENTS: Record<'desktop' | 'mobile', readonly string[]> = {
  desktop: [
    `Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/${CHROMIUM_MAJOR}.0.0.0 Safari/537.36`,
    `Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/${CHROMIUM_MAJOR}.0.0.0 Safari/537.36`,
    `Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/${CHROMIUM_MAJOR}.0.0.0 Safari/537.36 Edg/${CHROMIUM_MAJOR}.0.0.0`,
    'Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:150.0) Gecko/20100101 Firefox/150.0',
  ],
  mobile: [
    `Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/${CHROMIUM_MAJOR}.0.0.0 Mobile Safari/537.36`,
    'Mozilla/5.0 (iPhone; CPU iPhone OS 18_7 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.4 Mobile/15E148 Safari/604.1',
  ],
};

/** Browsers that the impersonating fetcher speaks TLS and HTTP/2 like, by its own names. */
export type EmulatedBrowser = 'chrome151' | 'firefox144' | 'ios18';

const EMULATED: readonly { emulate: EmulatedBrowser; device: 'desktop' | 'mobile'; userAgent: string }[] = [
  {
    emulate: 'chrome151',
    device: 'desktop',
    userAgent: `Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/${CHROMIUM_MAJOR}.0.0.0 Safari/537.36`,
  },
  {
    emulate: 'chrome151',
    device: 'desktop',
    userAgent: `Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/${CHROMIUM_MAJOR}.0.0.0 Safari/537.36`,
  },
  {
    emulate: 'firefox144',
    device: 'desktop',
    userAgent: 'Mozilla/5.0 (Macintosh; Intel Mac OS X 10.15; rv:144.0) Gecko/20100101 Firefox/144.0',
  },
  {
    emulate: 'ios18',
    device: 'mobile',
    userAgent:
      'Mozilla/5.0 (iPhone; CPU iPhone OS 18_7 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.5 Mobile/15E148 Safari/604.1',
  },
];

/** The headers of an impersonated browser are those of the very version whose TLS is spoken. `seed` is any number. */
export function emulatedProfile(
  seed: number,
  device: 'desktop' | 'mobile',
): { emulate: EmulatedBrowser; profile: BrowserProfile } {
  const fitting = EMULATED.filter((each) => each.device === device);
  const { emulate, userAgent } = fitting[seed % fitting.length]!;
  const profile = chromiumOf(userAgent) ?? firefoxOf(userAgent) ?? safariOf(userAgent);
  return { emulate, profile: profile! };
}
