import { isIPv4, isIPv6, type Socket } from 'node:net';
import type { ProxyAddress } from '../../core/proxies/proxy.ts';
import { DialError } from './dial.ts';
import { readReply, type Take } from './proxy-connect.ts';

/** SOCKS5 by RFC 1928, with the passwords of RFC 1929. */

const VERSION = 5;
const NO_PASSWORD = 0;
const PASSWORD = 2;
const CONNECT = 1;

const FAILURES: Record<number, string> = {
  1: 'general failure',
  2: 'not allowed',
  3: 'network unreachable',
  4: 'host unreachable',
  5: 'connection refused',
  6: 'timeout',
  7: 'unknown command',
  8: 'unknown address type',
};

/** `host` is a name, which the proxy then looks up, or an address. */
export function openSocksTunnel(
  socket: Socket,
  proxy: ProxyAddress,
  { host, port }: { host: string; port: number },
  done: (error: DialError | null) => void,
): void {
  const withPassword = proxy.username !== '' || proxy.password !== '';
  const [username, password] = [Buffer.from(proxy.username), Buffer.from(proxy.password)];
  const place = addressBytes(host);
  if (place === null || username.length > 255 || password.length > 255) {
    process.nextTick(done, new DialError('proxy-tunnel', 'the user name or password is too long for SOCKS'));
    return;
  }
  const ask = () => {
    readReply(socket, takeAnswer, done);
    socket.write(Buffer.concat([Buffer.from([VERSION, CONNECT, 0]), place, portBytes(port)]));
  };
  let method = NO_PASSWORD;
  const takeMethod: Take = (bytes) => {
    if (bytes[0] !== VERSION) return new DialError('proxy', 'the proxy does not speak SOCKS5');
    if (bytes.length < 2) return null;
    method = bytes[1]!;
    const known = method === NO_PASSWORD || (withPassword && method === PASSWORD);
    return known ? 2 : new DialError('proxy', 'the proxy requires an unsupported authentication method');
  };
  readReply(socket, takeMethod, (error) => {
    if (error) return done(error);
    if (method === NO_PASSWORD) return ask();
    readReply(socket, takeAccess, (refused) => (refused ? done(refused) : ask()));
    socket.write(
      Buffer.concat([Buffer.from([1, username.length]), username, Buffer.from([password.length]), password]),
    );
  });
  socket.write(Buffer.from(withPassword ? [VERSION, 2, NO_PASSWORD, PASSWORD] : [VERSION, 1, NO_PASSWORD]));
}

function takeAccess(bytes: Buffer): number | DialError | null {
  if (bytes.length < 2) return null;
  return bytes[1] === 0 ? 2 : new DialError('proxy', 'the proxy rejected the credentials');
}

function takeAnswer(bytes: Buffer): number | DialError | null {
  if (bytes[0] !== VERSION) return new DialError('proxy', 'the proxy does not speak SOCKS5');
  if (bytes.length < 2) return null;
  const failure = bytes[1]!;
  if (failure !== 0) {
    const why = FAILURES[failure] ?? `code ${failure}`;
    return new DialError('proxy-tunnel', `the proxy did not connect to the host (${why})`);
  }
  if (bytes.length < 5) return null;
  const kind = bytes[3]!;
  const addressLength = kind === 1 ? 4 : kind === 4 ? 16 : kind === 3 ? 1 + bytes[4]! : 0;
  if (addressLength === 0) return new DialError('proxy', 'the proxy does not speak SOCKS5');
  const length = 4 + addressLength + 2;
  return bytes.length < length ? null : length;
}

function portBytes(port: number): Buffer {
  return Buffer.from([port >> 8, port & 255]);
}

function addressBytes(host: string): Buffer | null {
  if (isIPv4(host)) return Buffer.from([1, ...host.split('.').map(Number)]);
  if (isIPv6(host)) return Buffer.from([4, ...ipv6Bytes(host)]);
  const name = Buffer.from(host, 'latin1');
  return name.length > 255 ? null : Buffer.concat([Buffer.from([3, name.length]), name]);
}

/** The URL parser writes the last two groups in hexadecimal, so there are only groups. */
function ipv6Bytes(host: string): number[] {
  const canonical = new URL(`http://[${host}]/`).hostname.slice(1, -1);
  const [left = '', right] = canonical.split('::');
  const groupsOf = (text: string) =>
    text === '' ? [] : text.split(':').map((group) => Number.parseInt(group, 16));
  const head = groupsOf(left);
  const tail = right === undefined ? [] : groupsOf(right);
  const groups = [...head, ...new Array<number>(8 - head.length - tail.length).fill(0), ...tail];
  return groups.flatMap((group) => [group >> 8, group & 255]);
}
