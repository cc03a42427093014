import { timingSafeEqual } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import type { IncomingHttpHeaders } from 'node:http';
import { Socket } from 'node:net';

const LOOPBACK = /^(::ffff:)?127\.|^::1$/;
const LOCAL_HOST = /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d{1,5})?$/i;

export function isLoopback(address: string | undefined): boolean {
  return LOOPBACK.test(address ?? '');
}

/**
 * Whether a request without a key can be of the machine's user: a page in a browser could send one too, under a name that
 * leads here (`Host`) or across origins (`Origin`, `Sec-Fetch-Site`).
 */
export function isOwnPage({ host, origin, ...headers }: IncomingHttpHeaders): boolean {
  if (host === undefined || !LOCAL_HOST.test(host)) return false;
  const site = headers['sec-fetch-site'];
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return false;
  return origin === undefined || origin.toLowerCase() === `http://${host.toLowerCase()}`;
}

/** The key of a person who logged in to the dashboard. */
export const KEY_COOKIE = 'seine_key';

export function keyInCookie({ cookie = '' }: IncomingHttpHeaders): string | null {
  const [, value] = new RegExp(`(?:^|; *)${KEY_COOKIE}=([^;]*)`).exec(cookie) ?? [];
  try {
    return value === undefined || value === '' ? null : decodeURIComponent(value);
  } catch {
    return null;
  }
}

/** Whether a request with a cookie can be of a page of this server. A proxy before it may speak TLS. */
export function isSameOrigin({ host, origin, ...headers }: IncomingHttpHeaders): boolean {
  const site = headers['sec-fetch-site'];
  if (site !== undefined && site !== 'same-origin' && site !== 'none') return false;
  return origin === undefined || URL.parse(origin)?.host === host?.toLowerCase();
}

export function hasToken({ authorization }: IncomingHttpHeaders, token: string): boolean {
  const given = Buffer.from(authorization ?? '');
  const wanted = Buffer.from(`Bearer ${token}`);
  return given.length === wanted.length && timingSafeEqual(given, wanted);
}

/** A proxy before the server makes everyone look like this machine. */
export function isForwarded(headers: IncomingHttpHeaders): boolean {
  return ['forwarded', 'x-forwarded-for', 'x-real-ip', 'via'].some((name) => headers[name] !== undefined);
}

const ROOT = 0;
/** The table may change while it is read, so that a row is missed. */
const LOOKS = 3;
const known = new WeakMap<Socket, Promise<boolean>>();

/**
 * Whether a connection over loopback is of another user of this machine. Linux says whose each connection is; elsewhere,
 * and where it does not say so, every program on the machine counts as the user's own.
 */
export function isOfAnotherUser(socket: unknown): Promise<boolean> {
  // What is answered without a connection was authenticated before.
  if (!(socket instanceof Socket)) return Promise.resolve(false);
  const asked = known.get(socket) ?? lookUpUser(socket);
  known.set(socket, asked);
  return asked;
}

async function lookUpUser({ remotePort, localPort }: Socket): Promise<boolean> {
  const own = process.getuid?.();
  if (own === undefined || remotePort === undefined || localPort === undefined) return false;
  for (let look = 0; look < LOOKS; look++) {
    const owners = await nextLook(localPort);
    if (owners === null) return false;
    const users = owners.get(remotePort) ?? [];
    if (users.length > 0) return users.some((user) => user !== own && user !== ROOT);
  }
  return true;
}

type Owners = ReadonlyMap<number, number[]> | null;
interface Looks {
  running: Promise<Owners> | null;
  next: Promise<Owners> | null;
}
const looksByPort = new Map<number, Looks>();

/**
 * Whose the connections to a port are, read after this was called. All that wait share one look: with ten thousand connections
 * the table has megabytes, and each connection would read all of it.
 */
function nextLook(toPort: number): Promise<Owners> {
  const looks = looksByPort.get(toPort) ?? { running: null, next: null };
  looksByPort.set(toPort, looks);
  looks.next ??= (async () => {
    await looks.running;
    const look = lookUpOwners(toPort);
    looks.running = look;
    looks.next = null;
    return look;
  })();
  return looks.next;
}

/** Null where there are no such tables. */
async function lookUpOwners(toPort: number): Promise<Owners> {
  const tables = await Promise.all(
    ['tcp', 'tcp6'].map((name) => readFile(`/proc/net/${name}`, 'latin1').catch(() => null)),
  );
  if (tables.every((table) => table === null)) return null;
  return ownersOf(tables.join('\n'), toPort);
}

const ESTABLISHED = '01';

/**
 * Users of connections from ports of this machine to one of its ports, by the former. The addresses need not be compared: both
 * ends are here. What its program has closed belongs to root in this table, whoever it was: it is nobody's.
 */
export function ownersOf(table: string, toPort: number): Map<number, number[]> {
  const portOf = (address: string | undefined) => Number.parseInt(address?.split(':')[1] ?? '', 16);
  const to = `:${toPort.toString(16).toUpperCase().padStart(4, '0')} ${ESTABLISHED} `;
  const owners = new Map<number, number[]>();
  for (const line of table.split('\n')) {
    if (!line.includes(to)) continue;
    const [, from, , , , , , user] = line.trim().split(/\s+/);
    const port = portOf(from);
    owners.set(port, [...(owners.get(port) ?? []), Number(user)]);
  }
  return owners;
}
