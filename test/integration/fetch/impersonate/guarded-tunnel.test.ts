import { once } from 'node:events';
import net from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { GuardedTunnel } from '../../../../src/fetch/impersonate/guarded-tunnel.ts';
import { DnsCache } from '../../../../src/fetch/network/dns-cache.ts';
import { systemClock } from '../../../../src/worker/batch/system-clock.ts';
import { openRawOrigin, type RawOrigin } from '../../../support/servers/raw-origin.ts';

const CONNECTED_LENGTH = 10;
let origin: RawOrigin;
let tunnel: GuardedTunnel;
const sockets: net.Socket[] = [];

afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  await tunnel.close();
  await origin.close();
});

/** Asks for a connection to the origin as the library does. Resolves when it is made. */
async function connect(proxy: string): Promise<net.Socket> {
  const { port, username, password } = new URL(proxy);
  const socket = net.connect(Number(port), '127.0.0.1');
  sockets.push(socket);
  const name = (text: string) => [text.length, ...Buffer.from(text)];
  const address = [127, 0, 0, 1, origin.port >> 8, origin.port & 255];
  for (const [question, answerLength] of [
    [[5, 1, 2], 2],
    [[1, ...name(username), ...name(password)], 2],
    [[5, 1, 0, 1, ...address], CONNECTED_LENGTH],
  ] as const) {
    socket.write(Buffer.from(question));
    let length = 0;
    while (length < answerLength) length += ((await once(socket, 'data')) as [Buffer])[0].length;
  }
  return socket;
}

test('a connection above the allowed number is made when another one is closed', async () => {
  origin = await openRawOrigin({});
  tunnel = await GuardedTunnel.open(new DnsCache(systemClock));
  const { ticket, url } = tunnel.ticketFor({ isAllowed: null, proxy: null });
  const other = tunnel.ticketFor({ isAllowed: null, proxy: null });
  tunnel.open(ticket, '127.0.0.1', origin.port, 2);
  const first = await connect(url);
  await connect(url);
  let isMade = false;
  const third = connect(url).then(() => {
    isMade = true;
  });
  // These are asked for later, and are made.
  for (let index = 0; index < 3; index++) await connect(other.url);
  expect(origin.accepted()).toBe(2 + 3);
  expect(isMade).toBe(false);
  first.destroy();
  await third;
  expect(origin.accepted()).toBe(3 + 3);
});
