import { createHash } from 'node:crypto';
import type { BrowserContextOptions } from 'playwright-core';
import { chromiumBrands } from '../../../core/identity/browser-headers.ts';
import { CHROMIUM_MAJOR } from '../../../core/identity/browser-profile.ts';
import { LIMITS } from '../../../core/limits.ts';
import { parseProxy } from '../../../core/proxies/proxy.ts';
import type { AddressGuard } from '../../../core/url/address-guard.ts';
import { getOwn } from '../../../core/values/own-property.ts';
import type { FetchRequest } from '../../../ports/fetcher.ts';
import { dialProxyOf } from '../../network/proxy-dial.ts';
import type { TicketRoute } from '../proxy/proxy-ticket.ts';

/** What a tab must be like for a request. Tabs with the same key serve each other's requests, one at a time. */
export interface TabPlan {
  key: string;
  options: BrowserContextOptions;
  route: TicketRoute;
  /** How it names itself, in headers and to scripts alike. */
  userAgentOverride: UserAgentOverride;
  locale: string | null;
  /** What `navigator.webdriver` says: true, unless the job chose to look like a browser that people use. */
  saysAutomated: boolean;
  /** Fingers that the screen tells apart; null as Playwright has it. */
  touchPoints: number | null;
  /** Size of the window around the page, where it poses as one on a desktop: without a window it is 0 by 0. */
  window: { width: number; height: number } | null;
  /** Starts logged in, and keeps what it has: other tabs forget everything after each page. */
  keepsState: boolean;
}

interface UserAgentOverride {
  userAgent: string;
  acceptLanguage?: string;
  /** What `navigator.platform` says. */
  platform?: string;
  userAgentMetadata?: {
    brands: { brand: string; version: string }[];
    platform: string;
    platformVersion: string;
    architecture: string;
    model: string;
    mobile: boolean;
    fullVersionList?: { brand: string; version: string }[];
    /** The same, as scripts asked for it before there was the list. */
    fullVersion?: string;
  };
}

export type Devices = Record<string, BrowserContextOptions & { defaultBrowserType?: string }>;

const LANGUAGES_MAX = 20;
const VIEWPORT = { width: 1_280, height: 800 };
/** The commonest one, where the browser is one that people use. */
const SCREEN = { width: 1_920, height: 1_080 };
/** Of Playwright's list, for an identity on a mobile device. */
const PHONE = 'Pixel 7';
/** What Chrome on every phone with Android says since 2023, and how many fingers such a phone tells apart. */
const PHONE_SYSTEM = '(Linux; Android 10; K)';
const PHONE_PLATFORM = 'Linux armv81';
const PHONE_TOUCH_POINTS = 5;

/** A sentence when the request asks for what there is not. */
export function planTab(
  request: FetchRequest,
  devices: Devices,
  own: { userAgent: string; guard: AddressGuard },
): TabPlan | string {
  const { render, allowPrivate, privateServices, loginState } = request;
  const { poses } = request;
  const name = render?.device ?? (poses?.device === 'mobile' ? PHONE : undefined);
  const device = name === undefined ? {} : getOwn(devices, name);
  if (!device) return 'Playwright has no device of this name';
  const proxy = request.proxy === undefined ? null : parseProxy(request.proxy.url);
  if (request.proxy !== undefined && proxy === null) return 'the proxy has no usable address';
  const state = loginState === undefined ? undefined : parseState(loginState);
  if (state === null) return "the login state is not a file of Playwright's `storageState`";
  const { defaultBrowserType: _, ...settings } = device;
  const blocksAds = render?.block.includes('ads') ?? false;
  const languages = render?.locale ? [render.locale] : languagesOf(headerOf(request, 'accept-language'));
  const named = headerOf(request, 'user-agent') ?? settings.userAgent ?? own.userAgent;
  const userAgent = poses ? posedUserAgent(named, own.userAgent) : named;
  const isPosedPhone = poses?.device === 'mobile' && !render?.device;
  const options: BrowserContextOptions = {
    viewport: VIEWPORT,
    ...(poses ? { screen: SCREEN } : {}),
    ...settings,
    ...(render?.viewport ? { viewport: render.viewport } : {}),
    userAgent,
    ...(render?.timezone ? { timezoneId: render.timezone } : {}),
    ...(state ? { storageState: state } : {}),
    acceptDownloads: false,
    // They would answer for the site, and out of sight.
    serviceWorkers: 'block',
  };
  const saysAutomated = !poses;
  // A tab serves one site for one visitor: caches and connections are never shared between two.
  const visit = [request.visitor ?? null, new URL(request.url).host];
  const through = request.proxy === undefined ? null : [request.proxy.url, privateServices !== false];
  const key = createHash('sha256')
    .update(JSON.stringify([visit, options, languages, through, allowPrivate, blocksAds, saysAutomated]))
    .digest('hex');
  return {
    key,
    options,
    userAgentOverride: {
      userAgent,
      ...(languages.length === 0 ? {} : { acceptLanguage: languages.join(',') }),
      ...(isPosedPhone ? { platform: PHONE_PLATFORM } : {}),
      // The hints of other devices are Playwright's to make up.
      ...(render?.device ? {} : { userAgentMetadata: hintsOf(own.userAgent, poses?.device ?? null) }),
    },
    locale: languages[0] ?? null,
    saysAutomated,
    touchPoints: isPosedPhone ? PHONE_TOUCH_POINTS : null,
    window: poses && options.viewport && !options.isMobile ? windowAround(options.viewport) : null,
    keepsState: state !== undefined,
    route: {
      isAllowed: own.guard.pages(allowPrivate),
      proxy: proxy === null ? null : dialProxyOf(proxy, own.guard.services(privateServices)),
      isBlocked: blocksAds ? isAdHost : null,
    },
  };
}

/** Tabs and the address bar of Chrome take this much. */
const WINDOW_BARS = 87;

function windowAround(viewport: { width: number; height: number }): { width: number; height: number } {
  return { width: viewport.width, height: viewport.height + WINDOW_BARS };
}

export function headerOf({ headers }: FetchRequest, name: string): string | null {
  for (const each in headers) if (each.toLowerCase() === name) return headers[each]!;
  return null;
}

/** `de-CH` and `de` of `de-CH,de;q=0.9,*;q=0.5`. */
function languagesOf(acceptLanguage: string | null): string[] {
  return (acceptLanguage ?? '')
    .split(',')
    .slice(0, LANGUAGES_MAX)
    .flatMap((part) => /^\s*([a-z]{2,3}(?:-[a-z0-9]{2,8}){0,3})\s*(?:;|$)/i.exec(part)?.[1] ?? []);
}

function mainVersionOf(userAgent: string): number {
  return Number(/Chrome\/(\d+)/.exec(userAgent)?.[1] ?? 0);
}

/** That of all identities, unless this Chromium is older: it would lack what that version has. */
function posedVersion(ownUserAgent: string): number {
  return Math.min(mainVersionOf(ownUserAgent), CHROMIUM_MAJOR);
}

/** Chrome names only its main version since 2022, and no phone; a phone of Playwright's list still does both. */
function posedUserAgent(named: string, ownUserAgent: string): string {
  return named
    .replace(/Chrome\/[\d.]+/, `Chrome/${posedVersion(ownUserAgent)}.0.0.0`)
    .replace(/\(Linux; Android [^)]*\)/, PHONE_SYSTEM);
}

/** What Chromium says of itself with a window; as Chrome, where it poses as a browser that people use. */
function hintsOf(
  ownUserAgent: string,
  poses: 'desktop' | 'mobile' | null,
): NonNullable<UserAgentOverride['userAgentMetadata']> {
  const version = mainVersionOf(ownUserAgent);
  const brands = poses
    ? chromiumBrands(posedVersion(ownUserAgent), 'Google Chrome')
    : [
        { brand: 'Not_A Brand', version: '8' },
        { brand: 'Chromium', version: `${version}` },
      ];
  const isPhone = poses === 'mobile';
  const platform = /Macintosh/.test(ownUserAgent) ? 'macOS' : 'Linux';
  return {
    brands,
    // Without these, Chromium names itself headless in one, and its own version in the other.
    fullVersion: `${poses ? posedVersion(ownUserAgent) : version}.0.0.0`,
    fullVersionList: brands.map(({ brand, version: main }) => ({ brand, version: `${main}.0.0.0` })),
    platform: isPhone ? 'Android' : platform,
    platformVersion: isPhone ? '14.0.0' : '',
    architecture: isPhone ? '' : 'x86',
    model: isPhone ? PHONE : '',
    mobile: isPhone,
  };
}

function parseState(text: string): BrowserContextOptions['storageState'] | null {
  if (text.length > LIMITS.loginStateBytesMax) return null;
  try {
    const state = JSON.parse(text) as { cookies?: unknown; origins?: unknown };
    const cookies = state.cookies ?? [];
    const origins = state.origins ?? [];
    if (!Array.isArray(cookies) || !Array.isArray(origins)) return null;
    return { cookies, origins };
  } catch {
    return null;
  }
}

/** Advertisers and trackers that are met most; a host below one of them counts, too. Short on purpose: no blocklist. */
const AD_HOSTS = new Set(
  `2mdn.net 33across.com 3lift.com a-mo.net adcolony.com adform.net adition.com adkernel.com adnxs.com adroll.com
adsafeprotected.com adsrvr.org adtechus.com advertising.com agkn.com amazon-adsystem.com amplitude.com app-measurement.com
appsflyer.com atdmt.com bat.bing.com bidswitch.net bing-ads.com bluekai.com branch.io casalemedia.com chartbeat.com
chartbeat.net clarity.ms clicktale.net cloudflareinsights.com connect.facebook.net contextweb.com crazyegg.com criteo.com
criteo.net crwdcntrl.net demdex.net dotomi.com doubleclick.net doubleverify.com everesttech.net exelator.com
eyeota.net flashtalking.com fls.doubleclick.net freshmarketer.com fullstory.com google-analytics.com
googleadservices.com googlesyndication.com googletagmanager.com googletagservices.com gumgum.com heapanalytics.com
hotjar.com hotjar.io id5-sync.com imrworldwide.com indexww.com inspectlet.com ipredictive.com kissmetrics.com
krxd.net lijit.com liveintent.com liveramp.com lkqd.net luckyorange.com mathtag.com matomo.cloud media.net
mixpanel.com moatads.com mookie1.com mouseflow.com mxpnl.com newrelic.com nr-data.net omtrdc.net onetag-sys.com
openx.net optimizely.com outbrain.com pardot.com permutive.com pixel.wp.com pubmatic.com quantserve.com
quantcount.com revcontent.com rlcdn.com rubiconproject.com scorecardresearch.com segment.com segment.io
serving-sys.com sharethis.com sharethrough.com simpli.fi smartadserver.com snapads.com sonobi.com sovrn.com
spotxchange.com stackadapt.com stats.wp.com taboola.com tapad.com teads.tv tiqcdn.com tremorhub.com tribalfusion.com
turn.com undertone.com usabilla.com vidazoo.com w55c.net yandex-metrica.com yieldmo.com zedo.com zemanta.com`.split(
    /\s+/,
  ),
);

export function isAdHost(hostname: string): boolean {
  const labels = hostname.toLowerCase().replace(/\.$/, '').split('.');
  for (let at = 0; at < labels.length - 1; at++) if (AD_HOSTS.has(labels.slice(at).join('.'))) return true;
  return false;
}
