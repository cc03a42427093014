import { join } from 'node:path';

interface FlagOptions {
  folder: string;
  proxyUrl: string;
  sandbox: boolean;
  /** All in one process, where no other can be started. A page that crashes takes the others with it. */
  isAlone: boolean;
  /** What processes share is in memory, and not in files of the folder. */
  sharesInMemory: boolean;
}

/** Features that phone home, ask people something, or get round the proxy. */
const DISABLED_FEATURES = [
  'AcceptCHFrame',
  'AutofillServerCommunication',
  'AvoidCorsURLLoaderRestartOnRedirect',
  'AvoidUnnecessaryBeforeUnloadCheckSync',
  'CertificateTransparencyComponentUpdater',
  'DestroyProfileOnBrowserClose',
  'DialMediaRouteProvider',
  'GlobalMediaControls',
  'HttpsFirstBalancedModeAutoEnable',
  'HttpsUpgrades',
  'InterestFeedContentSuggestions',
  // One renderer for a page with all its frames: half the memory, and each tab has a context of its own anyway.
  'IsolateOrigins',
  'site-per-process',
  'LensOverlay',
  // Which addresses a page may reach is decided by the proxy.
  'LocalNetworkAccessChecks',
  'MediaRouter',
  'NetworkTimeServiceQuerying',
  'OptimizationHints',
  'PaintHolding',
  'PreconnectToSearch',
  // Preloaded pages would be requests that are not counted.
  'Prerender2',
  // A new frame for each page of a tab, even of the same site: a sixth of the CPU of a page, and in one page of six the
  // first scripts saw a window of 0 by 0. A frame that stays keeps the tiles of its last picture, 75 MB with four tabs.
  'RenderDocument',
  'ThirdPartyStoragePartitioning',
  'Translate',
  // The suggestions below the address bar, which are never seen: a renderer of their own for each context, 160 MB.
  'WebUIOmniboxAimPopup',
  'WebUIOmniboxFullPopup',
  'WebUIOmniboxPopup',
];

const ENABLED_FEATURES = [
  'CDPScreenshotNewSurface',
  // A process less, 100 MB; on Linux it has no sandbox of its own there either.
  ...(process.platform === 'linux' ? ['NetworkServiceInProcess2'] : []),
];

/** All that goes over the network goes through the proxy; nothing runs that a page does not need. */
export function flagsOf({ folder, proxyUrl, sandbox, isAlone, sharesInMemory }: FlagOptions): string[] {
  return [
    '--headless',
    '--remote-debugging-pipe',
    '--no-startup-window',
    `--user-data-dir=${join(folder, 'profile')}`,
    `--proxy-server=${proxyUrl}`,
    // Loopback addresses are not excepted.
    '--proxy-bypass-list=<-loopback>',
    '--disable-quic',
    '--force-webrtc-ip-handling-policy=disable_non_proxied_udp',
    '--webrtc-ip-handling-policy=disable_non_proxied_udp',
    '--dns-prefetch-disable',
    '--disable-background-networking',
    '--disable-client-side-phishing-detection',
    '--disable-component-extensions-with-background-pages',
    '--disable-component-update',
    '--disable-default-apps',
    '--disable-domain-reliability',
    '--disable-extensions',
    '--disable-field-trial-config',
    '--disable-sync',
    '--no-pings',
    '--no-service-autorun',
    '--safebrowsing-disable-auto-update',
    '--metrics-recording-only',
    '--disable-breakpad',
    '--disable-crash-reporter',
    '--noerrdialogs',
    '--disable-hang-monitor',
    '--disable-prompt-on-repost',
    '--disable-notifications',
    '--disable-search-engine-choice-screen',
    '--no-first-run',
    '--no-default-browser-check',
    '--password-store=basic',
    '--use-mock-keychain',
    ...(sharesInMemory ? [] : ['--disable-dev-shm-usage']),
    '--disable-gpu',
    '--disable-back-forward-cache',
    '--disable-background-timer-throttling',
    '--disable-backgrounding-occluded-windows',
    '--disable-renderer-backgrounding',
    '--disable-ipc-flooding-protection',
    '--disable-site-isolation-trials',
    '--force-color-profile=srgb',
    '--font-render-hinting=none',
    // Windows that a page opens are not asked for.
    '--block-new-web-contents',
    '--hide-scrollbars',
    '--mute-audio',
    // Not for the whole browser: each tab says of itself whether a program drives it, see `TabPlan`.
    '--disable-blink-features=AutomationControlled',
    '--blink-settings=primaryHoverType=2,availableHoverTypes=2,primaryPointerType=4,availablePointerTypes=4',
    `--disable-features=${DISABLED_FEATURES.join(',')}`,
    `--enable-features=${ENABLED_FEATURES.join(',')}`,
    ...(sandbox ? [] : ['--no-sandbox', '--disable-setuid-sandbox']),
    ...(isAlone ? ['--single-process', '--no-zygote', '--in-process-gpu'] : []),
  ];
}
