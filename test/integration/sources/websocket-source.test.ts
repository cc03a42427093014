import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { jobSchema } from '../../../src/core/job-schema/job-schema.ts';
import { unpackMessages } from '../../../src/core/messages/messages.ts';
import { isPublicAddress } from '../../../src/core/url/address.ts';
import type { SourceRow } from '../../../src/ports/source.ts';
import { websocketSource } from '../../../src/sources/websocket-source.ts';
import { seine } from '../../support/seine-in-process.ts';
import { jsonLines, lastJson, temporaryFolder } from '../../support/seine-process.ts';
import {
  type SocketClient,
  startWebSocketServer,
  type WebSocketServer,
} from '../../support/servers/websocket-server.ts';

const open: WebSocketServer[] = [];
afterEach(async () => {
  for (const server of open.splice(0)) await server.close();
});

async function serve(onClient: (client: SocketClient, number: number) => void): Promise<WebSocketServer> {
  let clients = 0;
  const server = await startWebSocketServer((client) => onClient(client, clients++));
  open.push(server);
  return server;
}

type Input = {
  websocket: string;
  limit?: number;
  idleSeconds?: number;
  send?: (string | object)[];
  cursor?: string;
  key?: string;
};

function sourceOf(input: Input, isAllowed: ((ip: string) => boolean) | null = null, waitingMax = 1_000) {
  const [spec] = jobSchema.parse({ sources: input }).sources;
  if (typeof spec !== 'object' || !('websocket' in spec)) throw new Error('not a WebSocket');
  return websocketSource(spec, { isAllowed, pausesMs: [1, 1, 1], waitingMax });
}

async function read(input: Input, from: string | null = null) {
  const rows: SourceRow[] = [];
  for await (const row of sourceOf(input).rows(from)) rows.push(row);
  const messages = rows.flatMap(({ row }) => ('url' in row ? unpackMessages(row.meta) : []));
  return { rows, texts: messages.map(([, json]) => json), keys: messages.map(([key]) => key) };
}

test('messages come in order, up to the limit, and what is none is told', async () => {
  const { url } = await serve((client) => {
    client.send('{"n":1}');
    client.send('plain text');
    client.sendBinary(Buffer.from([1, 2]));
    client.send('[1,2]');
    for (let n = 5; n < 20; n++) client.send(`{"n":${n}}`);
  });
  const { rows, texts } = await read({ websocket: `${url}/ticker?token=secret`, limit: 6 });
  expect(texts).toEqual(['{"n":1}', '{"message":"plain text"}', '{"message":[1,2]}', '{"n":5}', '{"n":6}']);
  expect(rows.map(({ row }) => ('reason' in row ? row.reason : null)).filter(Boolean)).toEqual([
    'a message is binary',
  ]);
  expect(JSON.stringify(rows)).not.toContain('secret');
});

test('after a break it connects again, and goes on from the last cursor', async () => {
  const sent: Promise<string>[] = [];
  const { url, paths } = await serve((client, number) => {
    sent.push(client.received);
    const from = number * 2;
    client.send(`{"at":{"id":${from + 1}}}`);
    client.send(`{"at":{"id":${from + 2}}}`);
    if (number < 2) void client.received.then(() => client.break());
    else client.end(1000);
  });
  const { texts, rows } = await read({
    ...{
      websocket: `${url}/feed?since={last}`,
      cursor: 'at.id',
      key: 'at.id',
      send: [{ subscribe: 'all', after: '{last}' }],
    },
  });
  expect(texts).toEqual([1, 2, 3, 4, 5, 6].map((id) => `{"at":{"id":${id}}}`));
  expect(paths).toEqual(['/feed?since=', '/feed?since=2', '/feed?since=4']);
  expect(await Promise.all(sent.slice(0, 2))).toEqual([
    '{"subscribe":"all","after":""}',
    '{"subscribe":"all","after":"2"}',
  ]);
  expect(JSON.parse(rows.at(-1)!.position)).toEqual({ count: 6, last: '6' });
});

test('more than may wait is fetched by the next connections', async () => {
  const ids = Array.from({ length: 30 }, (_, index) => index + 1);
  const { url, paths } = await serve((client) => {
    const last = Number(new URL(paths.at(-1)!, 'ws://x').searchParams.get('since'));
    for (const id of ids.slice(last)) client.send(`{"id":${id}}`);
    client.end(1000);
  });
  const input = { websocket: `${url}/?since={last}`, cursor: 'id', key: 'id' };
  const keys: (string | null)[] = [];
  for await (const { row } of sourceOf(input, null, 10).rows(null))
    if ('url' in row) keys.push(...unpackMessages(row.meta).map(([key]) => key));
  expect(keys).toEqual(ids.map(String));
});

test('a run that was interrupted goes on from its position', async () => {
  const { url, paths } = await serve((client) => {
    client.send('{"id":8}');
    client.end(1000);
  });
  const { keys, rows } = await read(
    { websocket: `${url}/?since={last}`, cursor: 'id', key: 'id' },
    '{"count":7,"last":"7"}',
  );
  expect([paths, keys]).toEqual([['/?since=7'], ['8']]);
  expect(rows[0]!.place).toBe('messages 8 to 8');
});

test('a server that never says anything is given up, with the reason; silence ends the source', async () => {
  const { url } = await serve((client) => client.end(1011));
  await expect(read({ websocket: url })).rejects.toThrow(
    /cannot read ws:\/\/127.0.0.1:\d+\/: the connection closed with code 1011/,
  );
  const silent = await serve(() => {});
  expect((await read({ websocket: silent.url, idleSeconds: 1 })).rows).toEqual([]);
});

test('private addresses are not dialled where the guard forbids them', async () => {
  const { url, paths } = await serve((client) => client.send('{}'));
  const rows = async () => {
    for await (const _ of sourceOf({ websocket: url }, isPublicAddress).rows(null)) return;
  };
  await expect(rows()).rejects.toThrow('the WebSocket is at a private address: 127.0.0.1');
  expect(paths).toEqual([]);
});

test('each message becomes a record, and one with a known key replaces it', async () => {
  const { url } = await serve((client) => {
    for (const [id, price] of [
      [1, 10],
      [2, 20],
      [1, 11],
    ])
      client.send(JSON.stringify({ id, price }));
    client.end(1000);
  });
  const folder = temporaryFolder();
  try {
    const job = join(folder.path, 'ticker.json');
    writeFileSync(
      job,
      JSON.stringify({ name: 'ticker', sources: [{ websocket: url, key: 'id' }], allowPrivate: true }),
    );
    const dir = ['--dir', join(folder.path, 'data')];
    expect(lastJson(await seine(['run', job, '--json', ...dir]))).toMatchObject({
      state: 'done',
      records: 2,
    });
    const rows = jsonLines<{ key: string; data: object; meta: unknown }>(
      (await seine(['export', 'ticker', ...dir])).stdout,
    );
    expect(rows.map(({ key, data, meta }) => ({ key, data, meta }))).toEqual([
      { key: '1', data: { id: 1, price: 11 }, meta: null },
      { key: '2', data: { id: 2, price: 20 }, meta: null },
    ]);
  } finally {
    folder.remove();
  }
});
