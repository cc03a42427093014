import { SeineError } from '../errors.ts';
import { fingerprint } from '../url/fingerprint.ts';

/** Proxies of one pool: real lists have hundreds, and a gateway stands for millions of addresses. */
const PROXIES_PER_POOL_MAX = 10_000;

/** Proxies as lists name them. What has credentials in it is never shown: people see the id. */

const PROXY_SCHEMES = ['http', 'https', 'socks5', 'socks5h'] as const;
type ProxyScheme = (typeof PROXY_SCHEMES)[number];

export interface ProxyAddress {
  scheme: ProxyScheme;
  /** A name or an address, that of IPv6 without brackets. */
  host: string;
  port: number;
  /** Empty when there is none. */
  username: string;
  password: string;
}

export interface ListedProxy extends ProxyAddress {
  /** `host:port#` and a few characters that tell users of one gateway apart. The password is no part of it. */
  id: string;
  /** Two capital letters, when the list says so. */
  country: string | null;
}

const FORM = /^(\w{1,10}):\/\/(?:(.{0,1000})@)?(\[[0-9a-fA-F:.]{2,64}\]|[^\s:/@[\]]{1,253}):(\d{1,5})\/?$/s;
const SHORT_FORM = /^([^\s:/@[\]]{1,253}):(\d{1,5})(?::([^\s:]{1,500}):(\S{1,500}))?$/;

/** Null when the text is no proxy. `host:port` and `host:port:user:password` are http proxies. */
export function parseProxy(text: string): ProxyAddress | null {
  const full = FORM.exec(text);
  if (full) {
    const scheme = PROXY_SCHEMES.find((name) => name === full[1]!.toLowerCase());
    const [, , userinfo = '', host, port] = full;
    const colon = userinfo.indexOf(':');
    return addressOf(scheme, host!, port!, [
      decode(colon < 0 ? userinfo : userinfo.slice(0, colon)),
      decode(colon < 0 ? '' : userinfo.slice(colon + 1)),
    ]);
  }
  const short = SHORT_FORM.exec(text);
  return short && addressOf('http', short[1]!, short[2]!, [short[3] ?? '', short[4] ?? '']);
}

function addressOf(
  scheme: ProxyScheme | undefined,
  host: string,
  portText: string,
  [username, password]: [string, string],
): ProxyAddress | null {
  const port = Number(portText);
  if (scheme === undefined || port < 1 || port > 65_535) return null;
  const bare = host.startsWith('[') ? host.slice(1, -1) : host;
  return { scheme, host: bare.toLowerCase(), port, username, password };
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The way that `parseProxy` reads back. With credentials: for workers only. */
export function proxyUrl({ scheme, host, port, username, password }: ProxyAddress): string {
  const place = `${host.includes(':') ? `[${host}]` : host}:${port}`;
  if (username === '' && password === '') return `${scheme}://${place}`;
  return `${scheme}://${encodeURIComponent(username)}:${encodeURIComponent(password)}@${place}`;
}

function proxyId({ scheme, host, port, username }: ProxyAddress): string {
  const place = `${host.includes(':') ? `[${host}]` : host}:${port}`;
  const mark = fingerprint(`${scheme} ${username}`, place, 0x5e1e).toString(36).slice(-6);
  return `${place}#${mark}`;
}

/**
 * One proxy a line, a country after it if there is one, `#` before a remark. Where line ends are not possible, as in an
 * environment variable, spaces, commas and semicolons may stand before a scheme instead. `place` is for messages, which
 * never quote a line.
 */
export function parseProxyList(
  text: string,
  place: string,
  credentials: { username: string; password: string } | null = null,
): ListedProxy[] {
  const lines = text.replace(/[\s,;]+(?=(?:https?|socks5h?):\/\/)/gi, '\n').split(/\r?\n/);
  const proxies = new Map<string, ListedProxy>();
  lines.forEach((line, index) => {
    const [first = '', country, ...rest] = line
      .replace(/(^|\s)#.*$/, '')
      .trim()
      .split(/\s+/);
    if (first === '') return;
    const address = parseProxy(first);
    const sound = country === undefined || (/^[a-z]{2}$/i.test(country) && rest.length === 0);
    if (address === null || !sound) throw notAProxy(place, index + 1);
    const whole = address.username === '' && credentials ? { ...address, ...credentials } : address;
    const id = proxyId(whole);
    // The same user of the same gateway: the password was changed.
    proxies.set(id, { ...whole, id, country: country?.toUpperCase() ?? null });
  });
  if (proxies.size > PROXIES_PER_POOL_MAX)
    throw new SeineError(`${place} has more than ${PROXIES_PER_POOL_MAX} proxies`);
  return [...proxies.values()];
}

function notAProxy(place: string, line: number): SeineError {
  return new SeineError(`${place}: line ${line} is not a proxy`, {
    hint: 'write scheme://user:password@host:port, with http, https, socks5 or socks5h',
  });
}

/** `user:password`, from one secret for a whole list. */
export function parseCredentials(text: string): { username: string; password: string } {
  const line = text.trim();
  const colon = line.indexOf(':');
  return colon < 0
    ? { username: line, password: '' }
    : { username: line.slice(0, colon), password: line.slice(colon + 1) };
}

/** Providers put the country and the name of a lasting connection into the user name. */
export function fillProxy(
  proxy: ListedProxy,
  fill: { country: string | null; connection: string },
): ListedProxy {
  if (!proxy.username.includes('{') && !proxy.password.includes('{')) return proxy;
  const put = (text: string) =>
    text
      .replaceAll('{sticky}', fill.connection)
      .replaceAll('{country}', (proxy.country ?? fill.country ?? '').toLowerCase());
  return { ...proxy, username: put(proxy.username), password: put(proxy.password) };
}

/** Every secret that stands in a proxy, for whoever must hide them. */
export function secretsOfProxy({ username, password }: ProxyAddress): string[] {
  return [password, username === '' ? '' : `${username}:${password}`].filter((text) => text !== '');
}

const LOCAL_NAMES = /(^|\.)(localhost|local|internal|intranet|lan|home|corp|private|home\.arpa)\.?$/i;

/**
 * Names that mean something inside a network only. Through a proxy they would be looked up in its network, where
 * nothing here can check the address.
 */
export function isLocalName(hostname: string): boolean {
  return LOCAL_NAMES.test(hostname) || !hostname.replace(/\.$/, '').includes('.');
}
