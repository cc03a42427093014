import { once } from 'node:events';
import { createServer, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { Connections, networkOf } from '../../../src/server/connections.ts';

const MAX = 3;
let server: Server;
let connections: Connections;
/** Calls of `/wait` that are not answered yet. */
let waiting: ServerResponse[];

beforeEach(async () => {
  waiting = [];
  server = createServer(({ url }, response) => {
    response.once('close', () => server.emit('answered'));
    if (url === '/wait') waiting.push(response);
    else response.end('answer');
  });
  connections = new Connections(MAX);
  connections.watch(server);
  await once(server.listen(0, '127.0.0.1'), 'listening');
});

afterEach(() => {
  server.closeAllConnections();
  server.close();
});

async function open(): Promise<Socket> {
  const accepted = once(server, 'connection');
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1');
  await accepted;
  return socket;
}

function ask(socket: Socket, path = '/'): void {
  socket.write(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`);
}

/** Until the server has answered, and knows that the connection is idle. */
async function askAndRead(socket: Socket): Promise<void> {
  const answered = Promise.all([once(server, 'answered'), once(socket, 'data')]);
  ask(socket);
  await answered;
}

test('one that comes when there are too many gets the place of the longest idle', async () => {
  const silent = await open();
  const used = await open();
  await askAndRead(used);
  await open();
  const silentClosed = once(silent, 'close');
  const late = await open();
  await askAndRead(late);
  // No error: a clean end.
  expect(await silentClosed).toEqual([false]);
  const usedClosed = once(used, 'close');
  await askAndRead(await open());
  expect(await usedClosed).toEqual([false]);
  await askAndRead(late);
});

test('none with a request under way is closed for another', async () => {
  const busy = [await open(), await open(), await open()];
  for (const socket of busy) {
    const asked = once(server, 'request');
    ask(socket, '/wait');
    await asked;
  }
  expect(connections.isCrowded).toBe(true);
  const refused = await open();
  await once(refused.resume(), 'close');
  for (const [index, socket] of busy.entries()) {
    waiting[index]!.end('late');
    expect(String(await once(socket, 'data'))).toContain('late');
  }
  await askAndRead(await open());
});

test.each([
  ['192.0.2.7', '192.0.2.7'],
  ['::ffff:192.0.2.7', '192.0.2.7'],
  ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2'],
  ['2001:db8:1:2::9', '2001:db8:1:2'],
  ['2001:DB8::1', '2001:db8:0:0'],
  ['fe80::1%eth0', 'fe80:0:0:0'],
  ['::1', '0:0:0:0'],
])('%s is counted as %s', (address, network) => {
  expect(networkOf(address)).toBe(network);
});
