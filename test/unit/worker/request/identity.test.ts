import { describe, expect, test } from 'vitest';
import {
  acceptLanguage,
  browserHeaders,
  type PageRequest,
  placeHeaders,
} from '../../../../src/core/identity/browser-headers.ts';
import {
  type BrowserProfile,
  besideChromium,
  CHROMIUM_MAJOR,
  emulatedProfile,
  KNOWN_USER_AGENTS,
  parseProfile,
} from '../../../../src/core/identity/browser-profile.ts';
import { openGeneratedUserAgents } from '../../../../src/fetch/impersonate/generated-user-agents.ts';
import { compileJob } from '../../../../src/worker/compile-job.ts';
import { drawProfile, requestHeaders } from '../../../../src/worker/request/identity.ts';
import { batchTaskOf } from '../../../support/coordinator/batches.ts';
import { specOf } from '../../../support/fixtures.ts';

const page: PageRequest = {
  url: 'https://shop.example/p/1',
  referer: null,
  languages: ['en-US', 'en'],
  destination: 'document',
  http2: false,
};

/** What cannot be true of one browser, as a site would check it from the headers alone. */
function contradictions(headers: Record<string, string>): string[] {
  const found: string[] = [];
  const check = (holds: boolean, what: string) =>
    void (holds || found.push(`${what}: ${headers['User-Agent']}`));
  const userAgent = headers['User-Agent'] ?? '';
  const hints = headers['sec-ch-ua'];
  const chromium = userAgent.includes('Chrome/');
  const names = Object.keys(headers).map((name) => name.toLowerCase());
  check(new Set(names).size === names.length, 'a header twice');
  check((hints !== undefined) === chromium, 'client hints of another browser');
  check((headers['sec-ch-ua-mobile'] !== undefined) === chromium, 'half of the client hints');
  if (hints !== undefined) {
    const version = /Chrome\/(\d+)/.exec(userAgent)![1];
    check(hints.includes(`"Chromium";v="${version}"`), 'another Chromium version');
    check(hints.includes('"Microsoft Edge"') === /Edg/.test(userAgent), 'Edge and not Edge');
    check(hints.includes('"Google Chrome"') !== /Edg/.test(userAgent), 'Chrome and not Chrome');
    const mobile = userAgent.includes(' Mobile ');
    check(headers['sec-ch-ua-mobile'] === (mobile ? '?1' : '?0'), 'mobile and not mobile');
    const platform = headers['sec-ch-ua-platform'];
    check((platform === '"Windows"') === userAgent.includes('Windows'), 'Windows and not Windows');
    check((platform === '"macOS"') === userAgent.includes('Macintosh'), 'macOS and not macOS');
    check((platform === '"Android"') === userAgent.includes('Android'), 'Android and not Android');
    check((platform === '"Linux"') === userAgent.includes('X11'), 'Linux and not Linux');
    check((platform === '"Android"') === mobile, 'Android on a desktop');
    check(headers.Accept!.includes('signed-exchange'), 'what Chromium accepts');
  } else {
    check(!headers.Accept!.includes('signed-exchange'), 'what only Chromium accepts');
  }
  check(headers['Sec-Fetch-Mode'] === 'navigate', 'no navigation');
  check(/\d/.test(userAgent) && !/Headless|bot|Brave/i.test(userAgent), 'no browser of people');
  const [, rv, firefox] = /rv:(\d+).*Firefox\/(\d+)/.exec(userAgent) ?? [];
  check(rv === firefox, 'two versions of Firefox');
  check(userAgent.includes('iPhone') === /604\.1$/.test(userAgent), 'two versions of Safari');
  return found;
}

describe('identities', () => {
  test('thousands of them contradict themselves in nothing, and are of the device asked for', async () => {
    const browsers = new Map<string, number>();
    const found: string[] = [];
    const userAgents = await openGeneratedUserAgents();
    for (const device of ['desktop', 'mobile'] as const) {
      for (let number = 0; number < 2_000; number++) {
        const profile = drawProfile(userAgents, `test-${number}`, device);
        const headers = browserHeaders(profile, 'full', page);
        found.push(...contradictions(headers));
        if (/Chrome/.test(profile.userAgent) && profile.major !== CHROMIUM_MAJOR)
          found.push(profile.userAgent);
        if (profile.mobile !== (device === 'mobile')) found.push(`not ${device}: ${profile.userAgent}`);
        const name = `${device} ${profile.browser}`;
        browsers.set(name, (browsers.get(name) ?? 0) + 1);
      }
    }
    expect(found).toEqual([]);
    // As often as they are met: Chrome leads on desktops, Safari on phones in the data of the generator.
    expect(browsers.get('desktop chrome')).toBeGreaterThan(1_000);
    expect(browsers.get('desktop safari')).toBeGreaterThan(20);
    expect(browsers.get('mobile safari')).toBeGreaterThan(browsers.get('mobile chrome')!);
  });

  test('are the same for the same id, and leave chance as it was', async () => {
    const random = Math.random;
    const ids = Array.from({ length: 50 }, (_, number) => `id-${number}`);
    const drawn: string[][] = [];
    for (let round = 0; round < 2; round++) {
      const userAgents = await openGeneratedUserAgents();
      drawn.push(ids.map((id) => drawProfile(userAgents, id, 'desktop').userAgent));
    }
    expect(drawn[1]).toEqual(drawn[0]);
    expect(new Set(drawn[0]).size).toBeGreaterThan(3);
    expect(Math.random).toBe(random);
  });

  test.each<[string, (() => string) | null]>([
    ['are not to be had', null],
    [
      'cannot be read',
      () => {
        throw new Error('no data');
      },
    ],
    ['are nonsense', () => 'curl/8.0'],
    ['are of phones for desktops', () => KNOWN_USER_AGENTS.mobile[0]!],
  ])('when User-Agents %s, are of the known ones', (_what, draw) => {
    const userAgents = draw && {
      *drawn() {
        while (true) yield draw();
      },
    };
    const profiles = Array.from({ length: 20 }, (_, id) => drawProfile(userAgents, `${id}`, 'desktop'));
    for (const { userAgent } of profiles) expect(KNOWN_USER_AGENTS.desktop).toContain(userAgent);
    expect(new Set(profiles.map(({ userAgent }) => userAgent)).size).toBeGreaterThan(1);
  });

  test('of the known ones are all sound', () => {
    for (const device of ['desktop', 'mobile'] as const) {
      expect(KNOWN_USER_AGENTS[device].length).toBeGreaterThan(1);
      for (const userAgent of KNOWN_USER_AGENTS[device]) {
        const profile = parseProfile(userAgent)!;
        expect(contradictions(browserHeaders(profile, 'full', page))).toEqual([]);
      }
    }
  });

  test.each([
    'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/90.0.4430.212 Safari/537.36',
    'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/147.0.0.0 Mobile Safari/537.36',
    'Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/147.0.0.0 Safari/537.36',
    'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/147.0.0.0 Safari/537.36 Edg/146.0.0.0',
    'Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:149.0) Gecko/20100101 Firefox/150.0',
    'Mozilla/5.0 (iPhone; CPU iPhone OS 15_8 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.4 Mobile/15E148 Safari/604.1',
    'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/147.0.0.0 Safari/537.36',
    'Seine/0.1.0',
  ])('are never %s', (userAgent) => {
    expect(parseProfile(userAgent)).toBeNull();
  });
});

describe('headers of a browser', () => {
  const chrome = parseProfile(KNOWN_USER_AGENTS.desktop[0]!)!;
  const firefox = parseProfile(KNOWN_USER_AGENTS.desktop[3]!)!;

  test('are those of Chrome, in its order', () => {
    expect(
      Object.entries(browserHeaders(chrome, 'full', { ...page, referer: 'https://shop.example/' })),
    ).toEqual([
      ['sec-ch-ua', '"Not=A?Brand";v="99", "Google Chrome";v="151", "Chromium";v="151"'],
      ['sec-ch-ua-mobile', '?0'],
      ['sec-ch-ua-platform', '"Windows"'],
      ['Upgrade-Insecure-Requests', '1'],
      ['User-Agent', chrome.userAgent],
      ['Accept', expect.stringMatching(/^text\/html,.*signed-exchange/)],
      ['Sec-Fetch-Site', 'same-origin'],
      ['Sec-Fetch-Mode', 'navigate'],
      ['Sec-Fetch-User', '?1'],
      ['Sec-Fetch-Dest', 'document'],
      ['Referer', 'https://shop.example/'],
      ['Accept-Encoding', 'gzip, deflate, br, zstd'],
      ['Accept-Language', 'en-US,en;q=0.9'],
    ]);
  });

  test.each([
    [146, '"Chromium";v="146", "Not-A.Brand";v="24", "Google Chrome";v="146"'],
    [145, '"Not:A-Brand";v="99", "Google Chrome";v="145", "Chromium";v="145"'],
    [144, '"Not(A:Brand";v="8", "Chromium";v="144", "Google Chrome";v="144"'],
    [151, '"Not=A?Brand";v="99", "Google Chrome";v="151", "Chromium";v="151"'],
  ])('of Chrome %i name its brands as that version does', (major, brands) => {
    const userAgent = chrome.userAgent.replace('147', String(major));
    expect(browserHeaders({ ...chrome, major, userAgent }, 'full', page)['sec-ch-ua']).toBe(brands);
  });

  test('are those of Firefox, in its order', () => {
    expect(Object.keys(browserHeaders(firefox, 'full', page))).toEqual([
      'User-Agent',
      'Accept',
      'Accept-Language',
      'Accept-Encoding',
      'Upgrade-Insecure-Requests',
      'Sec-Fetch-Dest',
      'Sec-Fetch-Mode',
      'Sec-Fetch-Site',
      'Sec-Fetch-User',
      'Priority',
    ]);
    expect(browserHeaders(firefox, 'full', page)['Accept-Language']).toBe('en-US,en;q=0.5');
  });

  test('over plain http are fewer, as browsers have it', () => {
    const headers = browserHeaders(chrome, 'full', { ...page, url: 'http://shop.example/' });
    expect(Object.keys(headers).filter((name) => /^sec-/i.test(name))).toEqual([]);
    expect(headers['Accept-Encoding']).toBe('gzip, deflate');
  });

  test('of a picture ask for pictures', () => {
    const headers = browserHeaders(chrome, 'full', { ...page, destination: 'image' });
    expect(headers).toMatchObject({ 'Sec-Fetch-Dest': 'image', 'Sec-Fetch-Mode': 'no-cors' });
    expect(headers.Accept).toMatch(/^image\/avif/);
    expect(headers).not.toHaveProperty('Upgrade-Insecure-Requests');
  });

  test('get fewer with each style', () => {
    expect(Object.keys(browserHeaders(chrome, 'simple', page))).toEqual([
      'User-Agent',
      'Accept',
      'Accept-Encoding',
      'Accept-Language',
    ]);
    expect(browserHeaders(chrome, 'minimal', page)).toEqual({
      'User-Agent': chrome.userAgent,
      Accept: '*/*',
      'Accept-Encoding': 'gzip, deflate',
    });
  });

  test('take further ones where the browser has them, and let the job decide', () => {
    const placed = placeHeaders(firefox, browserHeaders(firefox, 'full', page), {
      Cookie: 'a=1',
      'accept-language': 'fr',
      'X-Own': '1',
    });
    expect(Object.keys(placed).slice(0, 6)).toEqual([
      'User-Agent',
      'Accept',
      'Accept-Language',
      'Accept-Encoding',
      'Cookie',
      'Upgrade-Insecure-Requests',
    ]);
    expect(placed).toMatchObject({ 'Accept-Language': 'fr', 'X-Own': '1' });
    expect(Object.keys(placed).at(-1)).toBe('X-Own');
  });

  test.each([
    [['de-CH'], 'de-CH,de;q=0.9', 'de-CH,de;q=0.5'],
    [['de'], 'de', 'de'],
    [
      ['de-DE', 'de', 'en-US', 'en'],
      'de-DE,de;q=0.9,en-US;q=0.8,en;q=0.7',
      'de-DE,de;q=0.8,en-US;q=0.5,en;q=0.3',
    ],
    [['fr-FR', 'en-GB', 'en-US'], 'fr-FR,fr;q=0.9,en-GB;q=0.8,en-US;q=0.7,en;q=0.6', null],
  ])('name the languages %j', (languages, inChrome, inFirefox) => {
    expect(acceptLanguage(languages)).toBe(inChrome);
    if (inFirefox) expect(acceptLanguage(languages, true)).toBe(inFirefox);
  });

  test('of an impersonated browser are those of the version whose TLS is spoken', () => {
    const seen = new Map<string, BrowserProfile>();
    for (let seed = 0; seed < 6; seed++) {
      const { emulate, profile } = emulatedProfile(seed, 'desktop');
      seen.set(emulate, profile);
      expect(contradictions(browserHeaders(profile, 'full', page))).toEqual([]);
      expect(emulate).toBe(`${profile.browser}${profile.major}`);
    }
    expect([...seen.keys()].sort()).toEqual(['chrome151', 'firefox144']);
    expect(emulatedProfile(3, 'mobile').profile).toMatchObject({ browser: 'safari', platform: 'iOS' });
  });
});

describe('beside a real Chromium', () => {
  const named = (major: number | null) =>
    Object.values(KNOWN_USER_AGENTS)
      .flat()
      .map((userAgent) => besideChromium(parseProfile(userAgent)!, major));

  test('an older one gives its version to what looks like Chrome or Edge, in all headers', () => {
    for (const profile of named(150)) {
      const headers = browserHeaders(profile, 'full', page);
      expect(contradictions(headers)).toEqual([]);
      const [, version] = /Chrome\/(\d+)/.exec(headers['User-Agent']!) ?? [];
      if (version !== undefined) expect(version).toBe('150');
    }
    expect(
      named(150).some(({ browser, userAgent }) => browser === 'edge' && /Edg\/150/.test(userAgent)),
    ).toBe(true);
    expect(named(150).some(({ browser }) => browser === 'firefox')).toBe(true);
  });

  test('which is asked for its version only where the job may render pages', async () => {
    const method = { level: 0, fetcher: 'http', headers: 'full', identity: 'a', pool: null } as const;
    const task = batchTaskOf(1, page.url);
    const sources = { chromiumMajor: async () => 150 };
    const versionOf = async (fetcher: 'http' | 'browser') => {
      const routes = [
        { name: 'page', match: '/p/*' },
        { name: 'other', match: '*', fetcher },
      ];
      const job = await compileJob(specOf({ identity: { mode: 'browser' }, routes }), new Map());
      const { headers } = await requestHeaders(task, method, job, {}, 'document', sources);
      return Number(/Chrome\/(\d+)/.exec(headers['User-Agent']!)?.[1]);
    };
    expect([await versionOf('http'), await versionOf('browser')]).toEqual([CHROMIUM_MAJOR, 150]);
  });

  test('a newer one names that of the identities, as none at all', () => {
    for (const major of [CHROMIUM_MAJOR + 2, null])
      for (const { browser, major: shown } of named(major))
        if (browser === 'chrome') expect(shown).toBe(CHROMIUM_MAJOR);
  });
});
