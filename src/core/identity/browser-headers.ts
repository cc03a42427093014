import type { HeaderStyle } from '../escalation/escalation.ts';
import { fetchSite } from '../url/referrer.ts';
import type { BrowserProfile } from './browser-profile.ts';

/** What a browser sends with one request, in its own order and spelling. */

export interface PageRequest {
  url: string;
  /** Where the browser came from; null when the address was typed in. */
  referer: string | null;
  languages: readonly string[];
  /** `image` stands for everything that a page shows. */
  destination: 'document' | 'image';
  /** HTTP/2 has a header of its own for what comes first. */
  http2: boolean;
}

export const DEFAULT_LANGUAGES: readonly string[] = ['en-US', 'en'];

/** Cookies and conditions are put where the browser puts them: see `placeHeaders`. */
export function browserHeaders(
  profile: BrowserProfile,
  style: HeaderStyle,
  request: PageRequest,
): Record<string, string> {
  if (style === 'minimal')
    return { 'User-Agent': profile.userAgent, Accept: '*/*', 'Accept-Encoding': 'gzip, deflate' };
  const all = fullHeaders(profile, request);
  if (style === 'full') return all;
  const kept = ['User-Agent', 'Accept', 'Referer', 'Accept-Encoding', 'Accept-Language'];
  return Object.fromEntries(Object.entries(all).filter(([name]) => kept.includes(name)));
}

function fullHeaders(profile: BrowserProfile, request: PageRequest): Record<string, string> {
  const trusted = isTrusted(request.url);
  const isDocument = request.destination === 'document';
  const values: Record<string, string | null> = {
    ...(trusted ? clientHints(profile) : {}),
    'Upgrade-Insecure-Requests': isDocument ? '1' : null,
    'User-Agent': profile.userAgent,
    Accept: ACCEPT[familyOf(profile)][request.destination],
    'Sec-Fetch-Site': trusted ? fetchSite(request.referer, request.url) : null,
    'Sec-Fetch-Mode': trusted ? (isDocument ? 'navigate' : 'no-cors') : null,
    'Sec-Fetch-User': trusted && isDocument && profile.browser !== 'safari' ? '?1' : null,
    'Sec-Fetch-Dest': trusted ? request.destination : null,
    Referer: request.referer,
    'Accept-Encoding': encodingsOf(profile, request.url),
    'Accept-Language': acceptLanguage(request.languages, profile.browser === 'firefox'),
    Priority: request.http2 || familyOf(profile) !== 'chromium' ? (isDocument ? 'u=0, i' : 'i') : null,
  };
  const headers: Record<string, string> = {};
  for (const name of ORDER[familyOf(profile)]) {
    const value = values[name];
    if (value !== null && value !== undefined) headers[name] = value;
  }
  return headers;
}

type Family = 'chromium' | 'firefox' | 'safari';

function familyOf({ browser }: BrowserProfile): Family {
  return browser === 'chrome' || browser === 'edge' ? 'chromium' : browser;
}

const ORDER: Record<Family, readonly string[]> = {
  chromium: [
    'sec-ch-ua',
    'sec-ch-ua-mobile',
    'sec-ch-ua-platform',
    'Upgrade-Insecure-Requests',
    'User-Agent',
    'Accept',
    'Sec-Fetch-Site',
    'Sec-Fetch-Mode',
    'Sec-Fetch-User',
    'Sec-Fetch-Dest',
    'Referer',
    'Accept-Encoding',
    'Accept-Language',
    'Cookie',
    'Priority',
  ],
  firefox: [
    'User-Agent',
    'Accept',
    'Accept-Language',
    'Accept-Encoding',
    'Referer',
    'Cookie',
    'Upgrade-Insecure-Requests',
    'Sec-Fetch-Dest',
    'Sec-Fetch-Mode',
    'Sec-Fetch-Site',
    'Sec-Fetch-User',
    'Priority',
  ],
  safari: [
    'Sec-Fetch-Dest',
    'User-Agent',
    'Upgrade-Insecure-Requests',
    'Accept',
    'Referer',
    'Sec-Fetch-Site',
    'Sec-Fetch-Mode',
    'Accept-Language',
    'Priority',
    'Accept-Encoding',
    'Cookie',
  ],
};

const ACCEPT: Record<Family, Record<PageRequest['destination'], string>> = {
  chromium: {
    document:
      'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,image/apng,*/*;q=0.8,application/signed-exchange;v=b3;q=0.7',
    image: 'image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8',
  },
  firefox: {
    document: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8',
    image: 'image/avif,image/webp,image/png,image/svg+xml,image/*;q=0.8,*/*;q=0.5',
  },
  safari: {
    document: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8',
    image:
      'image/webp,image/avif,image/jxl,image/heic,image/heic-sequence,video/*;q=0.8,image/png,image/svg+xml,image/*;q=0.8,*/*;q=0.5',
  },
};

/** Hints, fetch metadata and newer codings go to https and to the own machine only. */
function isTrusted(url: string): boolean {
  return url.startsWith('https:') || /^http:\/\/(127\.|localhost[:/]|\[::1\])/.test(url);
}

function encodingsOf({ browser, major }: BrowserProfile, url: string): string {
  if (!url.startsWith('https:')) return 'gzip, deflate';
  return browser === 'safari' && major < 26 ? 'gzip, deflate, br' : 'gzip, deflate, br, zstd';
}

/** Placed where the browser has them, instead of a value that is there already, or at the end. */
export function placeHeaders(
  profile: BrowserProfile | null,
  headers: Record<string, string>,
  further: Record<string, string>,
): Record<string, string> {
  const order = profile ? ORDER[familyOf(profile)].map((name) => name.toLowerCase()) : [];
  const placed = Object.entries(headers);
  for (const [name, value] of Object.entries(further)) {
    const lower = name.toLowerCase();
    const same = placed.findIndex(([each]) => each.toLowerCase() === lower);
    if (same !== -1) {
      placed[same] = [placed[same]![0], value];
      continue;
    }
    const place = order.indexOf(lower);
    const next = place === -1 ? -1 : placed.findIndex(([each]) => order.indexOf(each.toLowerCase()) > place);
    placed.splice(next === -1 ? placed.length : next, 0, [name, value]);
  }
  return Object.fromEntries(placed);
}

/** Chromium's own rule for the made-up brand and the order of the three: by version, so that sites cannot rely on it. */
const GREASE_SIGNS = [' ', '(', ':', '-', '.', '/', ')', ';', '=', '?', '_'];
const GREASE_VERSIONS = ['8', '99', '24'];
const GREASE_ORDERS = [
  [0, 1, 2],
  [0, 2, 1],
  [1, 0, 2],
  [1, 2, 0],
  [2, 0, 1],
  [2, 1, 0],
];

/** The brands that a Chromium of this version names, as it orders them. */
export function chromiumBrands(major: number, name: string): { brand: string; version: string }[] {
  const sign = (place: number) => GREASE_SIGNS[place % GREASE_SIGNS.length]!;
  const madeUp = `Not${sign(major)}A${sign(major + 1)}Brand`;
  const brands: { brand: string; version: string }[] = [];
  const order = GREASE_ORDERS[major % GREASE_ORDERS.length]!;
  brands[order[0]!] = { brand: madeUp, version: GREASE_VERSIONS[major % GREASE_VERSIONS.length]! };
  brands[order[1]!] = { brand: 'Chromium', version: `${major}` };
  brands[order[2]!] = { brand: name, version: `${major}` };
  return brands;
}

function clientHints({ browser, major, mobile, platform }: BrowserProfile): Record<string, string> {
  if (browser !== 'chrome' && browser !== 'edge') return {};
  const brands = chromiumBrands(major, browser === 'edge' ? 'Microsoft Edge' : 'Google Chrome');
  return {
    'sec-ch-ua': brands.map(({ brand, version }) => `"${brand}";v="${version}"`).join(', '),
    'sec-ch-ua-mobile': mobile ? '?1' : '?0',
    'sec-ch-ua-platform': `"${platform}"`,
  };
}

/** `de-CH` alone stands for `de-CH,de`; the weights are those that browsers give. */
export function acceptLanguage(languages: readonly string[], likeFirefox = false): string {
  const list: string[] = [];
  languages.forEach((language, index) => {
    const base = language.split('-')[0]!;
    list.push(language);
    const later = languages.slice(index + 1).some((other) => other.split('-')[0] === base);
    if (language !== base && !later && !list.includes(base)) list.push(base);
  });
  const unique = [...new Set(list)];
  return unique
    .map((language, index) => {
      if (index === 0) return language;
      const weight = likeFirefox ? 1 - index / unique.length : Math.max(0.1, 1 - index * 0.1);
      return `${language};q=${Number(weight.toFixed(1))}`;
    })
    .join(',');
}
