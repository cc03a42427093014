import { describe, expect, test } from 'vitest';
import { FAILURES } from '../../../../../src/core/failures.ts';
import { chromiumBrands } from '../../../../../src/core/identity/browser-headers.ts';
import { CHROMIUM_MAJOR } from '../../../../../src/core/identity/browser-profile.ts';
import { browser as browserSchema } from '../../../../../src/core/job-schema/browser.ts';
import { makeAddressGuard } from '../../../../../src/core/url/address-guard.ts';
import { isAdHost, planTab, type TabPlan } from '../../../../../src/fetch/browser/page/plan-tab.ts';
import { failureOfNavigation } from '../../../../../src/fetch/browser/page/visit-page.ts';
import { type RequestDraft, requestOf } from '../../../../contract/fetcher-contract.ts';

const OWN = {
  userAgent:
    'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/153.0.0.0 Safari/537.36',
  guard: makeAddressGuard(() => true, false),
};
const DEVICES = {
  Phone: { userAgent: 'a telephone', viewport: { width: 300, height: 600 }, isMobile: true },
};
const plan = (draft: RequestDraft): TabPlan | string =>
  planTab(requestOf('http://a.example/', draft), DEVICES, OWN);
const planned = (draft: RequestDraft): TabPlan => {
  const made = plan(draft);
  if (typeof made === 'string') throw new Error(made);
  return made;
};

describe('tabs', () => {
  test('are shared by requests that look the same and may reach the same', () => {
    const { key } = planned({});
    expect(planned({ headers: { 'user-agent': 'Seine-Test/1.0', cookie: 'a=1' } }).key).toBe(key);
    const others: RequestDraft[] = [
      { headers: {} },
      { headers: { 'user-agent': 'Seine-Test/1.0', 'accept-language': 'de' } },
      { allowPrivate: false },
      { proxy: { id: 'p', url: 'http://proxy.example:1' } },
      { loginState: '{"cookies":[],"origins":[]}' },
      ...[{ device: 'Phone' }, { timezone: 'Europe/Zurich' }, { locale: 'fr' }, { block: ['ads'] }].map(
        (spec) => ({
          render: browserSchema.parse(spec),
        }),
      ),
      { render: browserSchema.parse({ viewport: { width: 100, height: 100 } }) },
    ];
    const keys = new Set(others.map((draft) => planned(draft).key));
    expect(keys.size).toBe(others.length);
    expect(keys).not.toContain(key);
  });

  test('name themselves as the request does, else as the device, else as the browser with a window', () => {
    const render = browserSchema.parse({ device: 'Phone' });
    expect(planned({ render }).userAgentOverride.userAgent).toBe('Seine-Test/1.0');
    expect(planned({ headers: {}, render }).userAgentOverride.userAgent).toBe('a telephone');
    const { userAgentOverride } = planned({ headers: { 'Accept-Language': 'de-CH, de;q=0.9, *;q=0.5' } });
    expect(userAgentOverride).toMatchObject({ userAgent: OWN.userAgent, acceptLanguage: 'de-CH,de' });
    expect(userAgentOverride.userAgentMetadata?.brands).toContainEqual({ brand: 'Chromium', version: '153' });
  });

  test('that pose as a browser name the version that all identities name, unless theirs is older', () => {
    const { userAgent, userAgentMetadata } = planned({
      headers: {},
      poses: { device: 'desktop' },
    }).userAgentOverride;
    expect(userAgent).toContain(`Chrome/${CHROMIUM_MAJOR}.0.0.0`);
    expect(userAgentMetadata?.brands).toEqual(chromiumBrands(CHROMIUM_MAJOR, 'Google Chrome'));
    const old = { ...OWN, userAgent: OWN.userAgent.replace('153', '140') };
    const made = planTab(
      requestOf('http://a.example/', { headers: {}, poses: { device: 'desktop' } }),
      DEVICES,
      old,
    );
    expect(made).toMatchObject({ userAgentOverride: { userAgent: old.userAgent } });
  });

  test('are refused where the request asks for what there is not', () => {
    expect(plan({ render: browserSchema.parse({ device: 'Toaster' }) })).toMatch(/no device/);
    expect(plan({ loginState: '[]]' })).toMatch(/login state/);
    expect(plan({ loginState: '{"cookies":1}' })).toMatch(/login state/);
    expect(plan({ proxy: { id: 'p', url: 'nonsense' } })).toMatch(/proxy/);
  });
});

test('advertisers are known by their names and those below', () => {
  for (const host of ['doubleclick.net', 'ad.DoubleClick.net', 'www.google-analytics.com', 'bat.bing.com'])
    expect(isAdHost(host)).toBe(true);
  for (const host of ['bing.com', 'notdoubleclick.net', 'example.com', 'net', ''])
    expect(isAdHost(host)).toBe(false);
});

test.each([
  ['NAME_NOT_RESOLVED', 'dns'],
  ['CERT_AUTHORITY_INVALID', 'tls'],
  ['SSL_PROTOCOL_ERROR', 'tls'],
  ['CONNECTION_REFUSED', 'connect'],
  ['CONNECTION_TIMED_OUT', 'connect-timeout'],
  ['CONNECTION_RESET', 'reset'],
  ['EMPTY_RESPONSE', 'reset'],
  ['CONTENT_LENGTH_MISMATCH', 'truncated'],
  ['INCOMPLETE_CHUNKED_ENCODING', 'truncated'],
  ['CONTENT_DECODING_FAILED', 'bad-encoding'],
  ['INVALID_HTTP_RESPONSE', 'protocol'],
  ['HTTP2_PROTOCOL_ERROR', 'protocol'],
  ['UNSAFE_PORT', 'connect'],
  ['ABORTED', 'browser'],
  ['SOMETHING_NEW', 'protocol'],
])('net::ERR_%s is %s', (name, code) => {
  const failure = failureOfNavigation(new Error(`page.goto: net::ERR_${name} at http://secret.example/`));
  expect(failure?.code).toBe(code);
  expect(FAILURES).toHaveProperty(code);
  expect(failure?.detail).toMatch(/^[a-z][^:]+\)$/);
  expect(failureOfNavigation(new Error('something else'))).toBeNull();
});
