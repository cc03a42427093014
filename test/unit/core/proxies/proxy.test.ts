import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  fillProxy,
  isLocalName,
  parseCredentials,
  parseProxy,
  parseProxyList,
  proxyUrl,
} from '../../../../src/core/proxies/proxy.ts';
import {
  batchProxyOf,
  type ProxyPool,
  preferenceOf,
  stayOf,
} from '../../../../src/core/proxies/proxy-pool.ts';
import { hideCredentials, makeRedact } from '../../../../src/core/text/redact.ts';
import { cpuNow } from '../../../support/cpu-time.ts';

const none = { username: '', password: '' };

describe('a proxy in a list', () => {
  test.each([
    ['http://192.0.2.1:8080', { scheme: 'http', host: '192.0.2.1', port: 8080, ...none }],
    ['https://Gate.Example:443/', { scheme: 'https', host: 'gate.example', port: 443, ...none }],
    [
      'socks5://u:p@gate.example:1080',
      { scheme: 'socks5', host: 'gate.example', port: 1080, username: 'u', password: 'p' },
    ],
    [
      'SOCKS5H://u@[2001:db8::1]:1',
      { scheme: 'socks5h', host: '2001:db8::1', port: 1, username: 'u', password: '' },
    ],
    ['http://a%40b:c%3A%2F@h:1', { scheme: 'http', host: 'h', port: 1, username: 'a@b', password: 'c:/' }],
    ['http://a:b@c:d@h:1', { scheme: 'http', host: 'h', port: 1, username: 'a', password: 'b@c:d' }],
    ['http://a:100%@h:1', { scheme: 'http', host: 'h', port: 1, username: 'a', password: '100%' }],
    ['192.0.2.1:3128', { scheme: 'http', host: '192.0.2.1', port: 3128, ...none }],
    [
      '192.0.2.1:3128:u:p:q',
      { scheme: 'http', host: '192.0.2.1', port: 3128, username: 'u', password: 'p:q' },
    ],
  ])('%s', (text, address) => {
    expect(parseProxy(text)).toEqual(address);
  });

  test.each([
    'http://h',
    'ftp://h:1',
    'http://h:0',
    'http://h:70000',
    'h',
    '',
    'http://:80',
    'http://h:1/path',
    'http://a b:1',
  ])('is not %s', (text) => {
    expect(parseProxy(text)).toBeNull();
  });

  test('is read back as it was, whatever the credentials', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.string({ unit: 'grapheme' }), (username, password) => {
        const address = { scheme: 'socks5h' as const, host: 'h', port: 1, username, password };
        expect(parseProxy(proxyUrl(address))).toEqual(address);
      }),
    );
  });
});

describe('a list', () => {
  test('has remarks, empty lines and countries, and names nothing twice', () => {
    const text = '# ours\n\nhttp://u:old@h:1 de\r\nhttp://u:new@h:1 DE # changed\nhttp://v:x@h:1\n';
    const proxies = parseProxyList(text, 'the list');
    expect(proxies.map(({ country, password }) => [country, password])).toEqual([
      ['DE', 'new'],
      [null, 'x'],
    ]);
    expect(new Set(proxies.map(({ id }) => id)).size).toBe(2);
  });

  test.each([
    'http://a:1,http://b:2',
    'http://a:1 http://b:2',
    'http://a:1;\nhttp://b:2',
    ' http://a:1\nhttp://b:2 ',
  ])('may be on one line: %j', (text) => {
    expect(parseProxyList(text, 'it').map(({ host }) => host)).toEqual(['a', 'b']);
  });

  test('is told of by its line, and never quoted', () => {
    expect(() => parseProxyList('http://a:1\nhttp://user:hunter2@nowhere\n', 'the list')).toThrow(
      /^the list: line 2 is not a proxy$/,
    );
  });

  test('may have one user for all', () => {
    const [one, two] = parseProxyList('http://a:1\nhttp://x:y@b:1', 'it', parseCredentials(' u:p:q\n'));
    expect([one!.username, one!.password, two!.username]).toEqual(['u', 'p:q', 'x']);
  });

  test('has ids without anything secret, that a new password does not change', () => {
    const [one] = parseProxyList('http://alice:hunter2@gate.example:8080', 'it');
    const [two] = parseProxyList('http://alice:hunter3@gate.example:8080', 'it');
    expect(one!.id).toMatch(/^gate\.example:8080#[a-z0-9]{6}$/);
    expect(one!.id).toBe(two!.id);
    expect(one!.id).not.toMatch(/alice|hunter/);
  });
});

describe('who stays with a proxy', () => {
  const pool = (spec: Partial<ProxyPool['spec']>): ProxyPool => ({
    name: 'p',
    spec: {
      type: 'datacenter',
      from: { env: 'X' },
      sticky: false,
      perWorker: false,
      cooldownSeconds: 30,
      ...spec,
    },
    proxies: parseProxyList(Array.from({ length: 20 }, (_, index) => `http://h${index}:1`).join('\n'), 'it'),
  });
  const asker = { host: 'a.example', identity: null };

  test('datacenter proxies change with each request, residential ones much slower', () => {
    expect(stayOf(pool({}), asker, 0)).toBeNull();
    const residential = pool({ type: 'residential' });
    const stays = new Set(
      Array.from({ length: 60 }, (_, minute) => stayOf(residential, asker, minute * 60_000)),
    );
    expect(stays.size).toBeGreaterThanOrEqual(6);
    expect(stays.size).toBeLessThanOrEqual(7);
  });

  test('hosts do not all change at the same time', () => {
    const residential = pool({ rotate: 100 });
    const changes = new Set<number>();
    for (let host = 0; host < 50; host++) {
      const at = (second: number) =>
        stayOf(residential, { host: `h${host}`, identity: null }, second * 1_000);
      changes.add(
        Array.from({ length: 100 }, (_, second) => second).findIndex(
          (second) => at(second) !== at(second + 1),
        ),
      );
    }
    expect(changes.size).toBeGreaterThan(20);
  });

  test('sticky means by identity, too', () => {
    const sticky = pool({ sticky: true });
    const stay = (identity: string, now: number) => stayOf(sticky, { host: 'a.example', identity }, now);
    expect(stay('one', 0)).toBe(stay('one', 1e12));
    expect(stay('one', 0)).not.toBe(stay('two', 0));
  });

  test('keys are spread evenly, and only those of a proxy that goes move', () => {
    const { proxies } = pool({});
    const first = (key: string, list: ProxyPool['proxies']) => preferenceOf(key, list)[0]!.id;
    const keys = Array.from({ length: 2_000 }, (_, index) => `host-${index}.example`);
    const counts = Map.groupBy(keys, (key) => first(key, proxies));
    for (const group of counts.values()) expect(group.length).toBeGreaterThan(50);
    const without = proxies.slice(1);
    const moved = keys.filter((key) => first(key, proxies) !== first(key, without));
    expect(moved.every((key) => first(key, proxies) === proxies[0]!.id)).toBe(true);
  });

  test('gateways get the country and the name of the connection in the user name', () => {
    const gate = pool({ country: 'DE', sticky: true });
    const [proxy] = parseProxyList('http://cust-cc-{country}-sid-{sticky}:pw@gate.example:1', 'it');
    const one = batchProxyOf(gate, proxy!, 'a');
    const again = batchProxyOf(gate, proxy!, 'a');
    const other = batchProxyOf(gate, proxy!, 'b');
    expect(decodeURIComponent(one.url)).toMatch(/^http:\/\/cust-cc-de-sid-[a-z0-9]+:pw@gate\.example:1$/);
    expect(one).toEqual(again);
    expect(other.url).not.toBe(one.url);
    expect(other.id).toBe(one.id);
    expect(fillProxy({ ...proxy!, country: 'FR' }, { country: 'DE', connection: 'x' }).username).toBe(
      'cust-cc-fr-sid-x',
    );
  });
});

test.each([
  ['localhost', true],
  ['a.localhost.', true],
  ['printer', true],
  ['nas.local', true],
  ['metadata.google.internal', true],
  ['router.home.arpa', true],
  ['local.example', false],
  ['internal.example.com', false],
])('%s is a name of a local network: %s', (name, isLocal) => {
  expect(isLocalName(name)).toBe(isLocal);
});

describe('hiding', () => {
  test('takes credentials out of URLs, wherever they are', () => {
    const text = 'cannot reach http://user:p%40ss@gate:1/x?a=b@c and socks5h://u@h:2, ok http://h/@me';
    expect(hideCredentials(text)).toBe(
      'cannot reach http://***@gate:1/x?a=b@c and socks5h://***@h:2, ok http://h/@me',
    );
  });

  test('knows secrets in every form in which they travel', () => {
    const secret = 'p@ss/w"rd';
    const redact = makeRedact([secret, 'abc', `user:${secret}`]);
    const forms = [
      secret,
      encodeURIComponent(secret),
      JSON.stringify(secret),
      Buffer.from(`user:${secret}`).toString('base64'),
    ];
    for (const form of forms) expect(redact(`x ${form} y`)).not.toContain(form);
    expect(redact('abcdef')).toBe('abcdef');
    // Whichever comes first, nothing is left of one that begins like another.
    for (const secrets of [
      ['abcd', 'abcdefgh'],
      ['abcdefgh', 'abcd'],
    ])
      expect(makeRedact(secrets)('x abcdefgh abcd y')).toBe('x *** *** y');
  });

  test('is linear on hostile text', () => {
    const started = cpuNow();
    hideCredentials('a.'.repeat(500_000).concat('@'));
    hideCredentials('http://'.repeat(100_000).concat('@'));
    expect(cpuNow() - started).toBeLessThan(2_000);
  });
});
