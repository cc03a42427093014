import { describe, expect, test } from 'vitest';
import { withBrowser } from '../../../src/cli/commands/run/job-from-flags.ts';
import { loadJobAccess } from '../../../src/coordinator/proxies/job-access.ts';
import type { JobInput } from '../../../src/core/job-schema/job.ts';
import { parseLoginState } from '../../../src/core/job-schema/login-state.ts';
import { makeRedact } from '../../../src/core/text/redact.ts';
import { compilePatterns } from '../../../src/core/url/pattern.ts';
import { parseJob } from '../../../src/job-file/parse-job.ts';
import { specOf } from '../../support/fixtures.ts';

type Route = NonNullable<JobInput['routes']>[number];
const parse = (route: Partial<Route>, more: Partial<JobInput> = {}) =>
  parseJob(
    { sources: 'https://a.example/', routes: [{ name: 'page', ...route }], ...more },
    'the job',
    'job',
  );

describe('a route with a browser', () => {
  test('has its settings filled in, and passes a second time', async () => {
    const { spec } = await parse({ browser: { screenshot: true } });
    expect(spec.routes[0]!.browser).toEqual({
      actions: [],
      block: [],
      pdf: false,
      capture: [],
      screenshot: { of: 'page', format: 'png', quality: 80, packing: 'fast' },
    });
    expect((await parseJob(spec, 'again', 'job')).spec).toEqual(spec);
  });

  test.each<[string, Partial<Route>, RegExp]>([
    [
      'settings without a browser',
      { fetcher: 'http', browser: {} },
      /has `browser`, but its fetcher is http/,
    ],
    [
      'pictures of some pages',
      { fetcher: 'auto', browser: { screenshot: true } },
      /has screenshot, but only some/,
    ],
    [
      'data of some pages',
      { escalate: ['browser'], browser: { pdf: true, capture: [{ name: 'a', url: '*' }] } },
      /has pdf and capture, but only some/,
    ],
    [
      'objects in a browser',
      { kind: 'media', fetcher: 'browser' },
      /has kind media, which does not use a browser/,
    ],
    [
      'an unknown fetcher',
      { fetcher: 'chrome' as 'auto' },
      /route 'page': fetcher: expected "http", .* got "chrome"/,
    ],
    [
      'an unknown packing',
      { browser: { screenshot: { packing: 'tiny' as 'small' } } },
      /route 'page': browser\.screenshot\.packing: expected "fast" or "small", got "tiny"/,
    ],
    [
      'a screenshot that is neither true nor settings',
      { browser: { screenshot: 7 as never } },
      /route 'page': browser\.screenshot: expected true, false or an object, got 7$/,
    ],
    [
      'a key that no field has',
      { browser: { capture: [{ name: 'a', url: '*' }] }, key: 'b' },
      /uses the unknown field 'b'/,
    ],
    [
      'a capture of responses from a WebSocket',
      { browser: { capture: [{ name: 'a', url: 'wss://*/ticker' }] } },
      /capture\.0\.url: the pattern "wss:\/\/\*\/ticker" has a scheme other than http or https/,
    ],
    [
      'a capture of frames from what is no WebSocket',
      { browser: { capture: [{ name: 'a', url: 'ftp://*/ticker', of: 'frames' }] } },
      /"ftp:\/\/\*\/ticker" has a scheme other than http, https, ws or wss/,
    ],
  ])('%s is refused', async (_, route, message) => {
    await expect(parse(route)).rejects.toThrow(message);
  });

  test('frames are captured from WebSockets by their scheme', async () => {
    const capture = [{ name: 'ticker', url: 'wss://*/ticker', of: 'frames' as const }];
    const { spec } = await parse({ browser: { capture } });
    expect(spec.routes[0]!.browser!.capture).toMatchObject(capture);
    const matches = compilePatterns(['wss://*/ticker'], { sockets: true });
    expect([matches('wss://a.example/ticker'), matches('ws://a.example/ticker')]).toEqual([true, false]);
  });

  test('captured data makes records, and may name their key', async () => {
    const { spec } = await parse({ browser: { capture: [{ name: 'id', url: '*' }] }, key: 'id' });
    expect(spec.routes[0]!.browser!.capture).toEqual([{ name: 'id', url: '*', of: 'json', max: 100 }]);
  });
});

describe('options of run', () => {
  const sources = 'https://a.example/';

  test('make a route for every page', () => {
    expect(withBrowser({ sources }, {})).toEqual({ sources });
    expect(withBrowser({ sources }, { browser: 'always' }).routes).toEqual([
      { name: 'page', fetcher: 'browser', browser: { waitUntil: 'idle', actions: [] } },
    ]);
    expect(withBrowser({ sources }, { browser: 'auto' }).routes![0]!.fetcher).toBe('auto');
    expect(
      withBrowser({ sources }, { screenshot: 'screen', pdf: 'true', 'wait-for': '.price' }).routes,
    ).toEqual([
      {
        name: 'page',
        fetcher: 'browser',
        browser: { screenshot: { of: 'screen' }, pdf: true, actions: [{ waitFor: '.price' }] },
      },
    ]);
  });

  test('change the routes of a job, but for its objects', () => {
    const routes: JobInput['routes'] = [
      { name: 'page', match: '/a', browser: { block: ['ads'], actions: [{ click: '.more' }] } },
      { name: 'pictures', match: '/b', kind: 'media' },
    ];
    expect(withBrowser({ sources, routes }, { 'wait-for': 'h1' }).routes).toEqual([
      {
        name: 'page',
        match: '/a',
        fetcher: 'browser',
        browser: { block: ['ads'], actions: [{ waitFor: 'h1' }, { click: '.more' }] },
      },
      routes[1],
      { name: 'page-2', fetcher: 'browser', browser: { actions: [{ waitFor: 'h1' }] } },
    ]);
  });

  test('are refused where they make no sense', () => {
    expect(() => withBrowser({ sources }, { screenshot: 'huge' })).toThrow("one of full, screen, got 'huge'");
    expect(() => withBrowser({ sources }, { browser: 'auto', screenshot: 'full' })).toThrow(
      '--screenshot needs a browser for every page',
    );
  });
});

describe('a saved login', () => {
  const state = {
    cookies: [
      { name: 'sid', value: 'k9/Qz-secret-77', domain: 'a.example', path: '/' },
      { name: 'theme', value: 'dark', domain: 'a.example', path: '/' },
      { name: 'pin', value: 'a1b2c3d4', domain: 'a.example', path: '/' },
    ],
    origins: [
      { origin: 'https://a.example', localStorage: [{ name: 'token', value: 'eyJhbGciOiJub25lIn0' }] },
    ],
  };

  test('goes to those who need it and is hidden from all others', async () => {
    const text = JSON.stringify(state, null, 2);
    const spec = specOf({ routes: [{ name: 'page', fetcher: 'auto' }], login: { state: { env: 'LOGIN' } } });
    const { loginState, secrets } = await loadJobAccess(spec, async () => text);
    expect(JSON.parse(loginState!)).toEqual(state);
    const redact = makeRedact(secrets);
    expect(redact('Cookie: sid=k9/Qz-secret-77; theme=dark; pin=a1b2c3d4, eyJhbGciOiJub25lIn0')).toBe(
      'Cookie: sid=***; theme=dark; pin=***, ***',
    );
  });

  test.each(['', 'not json k9', '[]', '{"cookies":{}}', '{"cookies":[{"name":"x"}]}', 'null'])(
    'that is none is refused without quoting it: %s',
    (text) => {
      expect(() => parseLoginState(text)).toThrow("the login state is not a file of Playwright's");
    },
  );

  test('without a browser is an error', async () => {
    const login = { state: { file: 'state.json' } };
    await expect(parse({}, { login })).rejects.toThrow('no route uses a browser');
    expect((await parse({ fetcher: 'browser' }, { login })).spec.login).toEqual(login);
  });
});
