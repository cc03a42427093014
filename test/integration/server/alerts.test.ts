import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { THRESHOLDS_DEFAULT } from '../../../src/core/alerts/alerts.ts';
import { parseMailTarget } from '../../../src/core/alerts/mail-target.ts';
import { KEY_LIMITS_DEFAULT } from '../../../src/core/keys/api-key.ts';
import type { Store } from '../../../src/ports/store.ts';
import { AlertWatch } from '../../../src/server/alerts/alert-watch.ts';
import { openSqliteStore } from '../../../src/store/sqlite/sqlite-store.ts';
import {
  change,
  codeOf,
  createJob,
  enqueue,
  leaseOne,
  settlementOf,
  tasksOf,
  temporaryFolder,
} from '../../support/fixtures.ts';
import { openApiServer } from '../../support/servers/api-server.ts';

const MINUTE_MS = 60_000;
const START = 1_700_000_040_000;

let chat: Server;
let said: string[] = [];
let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let store: Store;
let now = START;
let log: string[] = [];

beforeAll(async () => {
  folder = await temporaryFolder();
  chat = createServer(async (request, response) => {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    said.push(JSON.parse(Buffer.concat(parts).toString()).text);
    response.end();
  });
  chat.listen(0, '127.0.0.1');
  await once(chat, 'listening');
});
afterAll(async () => {
  chat.closeAllConnections();
  chat.close();
  await folder.remove();
});
beforeEach(() => {
  store = openSqliteStore(':memory:');
  said = [];
  log = [];
  now = START;
});
afterEach(() => store.close());

/** The command writes what it gets into this file. */
const told = () => join(folder.dir, 'told.json');
const WRITE = "process.stdin.pipe(require('node:fs').createWriteStream(process.argv[1]))";

function watch(
  thresholds: Partial<Record<keyof typeof THRESHOLDS_DEFAULT, number>> = {},
  withTargets = true,
) {
  const note = (message: string) => void log.push(message);
  const slackUrl = `http://127.0.0.1:${(chat.address() as AddressInfo).port}/`;
  return new AlertWatch({
    store,
    dir: folder.dir,
    thresholds: { ...THRESHOLDS_DEFAULT, diskGb: 0.000_001, ...thresholds },
    targets: withTargets
      ? { slackUrl, command: [process.execPath, '-e', WRITE, told()], mail: null }
      : { slackUrl: null, command: null, mail: null },
    slots: () => ({ slots: 8 }),
    logger: { info: note, warn: note, error: note },
    now: () => now,
  });
}

test('what a settle wrote makes an alert fire, everyone is told once, and again when it is over', async () => {
  const job = await createJob(store);
  const endpoint = {
    id: 'e',
    owner: null,
    jobId: null,
    url: 'http://hook.example/',
    metadata: null,
    createdAt: now,
  };
  await store.webhooks.create({ ...endpoint, events: ['alert.firing', 'alert.resolved'] }, 'whsec_x');
  await enqueue(store, job, tasksOf(...Array.from({ length: 40 }, (_, n) => `https://a.example/${n}`)));
  const { id, tasks } = await leaseOne(store, job, { now });
  const half = tasks.map((task, index) => (index % 2 ? change.fetched(task.id) : change.dead(task.id)));
  await store.frontier.settle(settlementOf(job, id, half, { now }));
  const alerts = watch();
  await alerts.look();
  const line = 'alert success-low firing for test: 50 % of 40 pages succeeded within 10 minutes';
  expect(said).toEqual([line]);
  expect(log).toEqual([line]);
  expect(JSON.parse(readFileSync(told(), 'utf8'))).toMatchObject({
    kind: 'success-low',
    job: 'test',
    state: 'firing',
  });
  // A server that begins again says nothing new.
  await watch().look();
  expect(said).toEqual([line]);
  for (let minute = 0; minute < 20; minute++) {
    now += MINUTE_MS;
    await alerts.look();
  }
  expect(said.slice(1)).toEqual([expect.stringContaining('alert success-low resolved for test')]);
  expect(await store.alerts.firing()).toEqual([]);
  const deliveries = await store.webhooks.deliveries('e', { before: null, limit: 10 });
  expect(deliveries.map(({ type }) => type)).toEqual(['alert.resolved', 'alert.firing']);
  expect(JSON.parse(deliveries[1]!.body).data).toMatchObject({ kind: 'success-low', job: 'test' });
});

test('what is silenced is written down and told to nobody', async () => {
  await store.alerts.silence({ kind: 'disk-low', subject: null, until: now + MINUTE_MS });
  await watch({ diskGb: 100_000_000 }).look();
  expect(await store.alerts.firing()).toMatchObject([{ kind: 'disk-low', subject: '' }]);
  expect([said, log]).toEqual([[], []]);
});

test('a chat or a command that fails is a warning, and the other is told all the same', async () => {
  const broken = new AlertWatch({
    store,
    dir: folder.dir,
    thresholds: { ...THRESHOLDS_DEFAULT, diskGb: 100_000_000 },
    targets: {
      slackUrl: 'http://127.0.0.1:1/',
      command: ['/no/such/program'],
      mail: parseMailTarget('smtp://127.0.0.1:1?to=a@b.example'),
    },
    slots: () => ({ slots: 8 }),
    logger: { info() {}, warn: (message) => void log.push(message), error() {} },
    now: () => now,
  });
  await broken.look();
  expect(log.map((line) => line.split(':')[0])).toEqual([
    'alert disk-low firing',
    'could not send an alert to Slack',
    'could not send an alert to the mail server',
    'could not send an alert to the command',
  ]);
  expect(existsSync('/no/such/program')).toBe(false);
});

test('the API lists alerts and silences them', async () => {
  const server = await openApiServer();
  const call = async (path: string, body?: object) => {
    const answer = await fetch(`${server.url}/api/v1${path}`, {
      ...(body
        ? { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
        : {}),
    });
    return { status: answer.status, body: JSON.parse(await answer.text()) };
  };
  const own = openSqliteStore(join(server.dir, 'seine.db'));
  try {
    await own.alerts.fire({ kind: 'disk-low', subject: '', text: '1 GB are free', now });
    await own.alerts.fire({ kind: 'success-low', subject: 'shop', text: '50 %', now });
    expect((await call('/alerts/silence', { kind: 'disk-low', seconds: 60 })).status).toBe(200);
    const { body } = await call('/alerts?limit=2');
    const fired = new Date(now).toISOString();
    expect(body.alerts).toMatchObject([
      { kind: 'success-low', job: 'shop', state: 'firing', fired_at: fired, silenced_until: null },
      { kind: 'disk-low', job: null, text: '1 GB are free', silenced_until: expect.any(String) },
    ]);
    expect((await call(`/alerts?cursor=${body.next_cursor}`)).body).toEqual({
      alerts: [],
      next_cursor: null,
    });
    expect((await call('/alerts/silence', { kind: 'noise', seconds: 60 })).status).toBe(400);
  } finally {
    await own.close();
    await server.close();
  }
});

test('alerts go to the operator, to keys with admin scope, and to the key whose job it is', async () => {
  const key = (id: string, scope: 'write' | 'admin') =>
    store.keys.create({ id, name: id, hash: id, scope, limits: KEY_LIMITS_DEFAULT, createdAt: now });
  for (const [id, scope] of [
    ['owner', 'write'],
    ['other', 'write'],
    ['admin', 'admin'],
  ] as const)
    await key(id, scope);
  for (const owner of [null, 'owner', 'other', 'admin'])
    await store.webhooks.create(
      {
        ...{ id: `wh_${owner}`, owner, jobId: null, createdAt: now, metadata: null },
        url: 'https://hooks.example/',
        events: ['alert.firing'],
      },
      'whsec_AAAA',
    );
  const job = await store.jobs.create({ ...codeOf('test'), name: 'test', now, owner: 'owner' });
  await enqueue(store, job, tasksOf(...Array.from({ length: 40 }, (_, n) => `https://a.example/${n}`)));
  const { id, tasks } = await leaseOne(store, job, { now });
  const dead = tasks.map((task) => change.dead(task.id));
  await store.frontier.settle(settlementOf(job, id, dead, { now }));
  await watch({}, false).look();
  await watch({ diskGb: 100_000_000 }, false).look();
  const told = async (owner: string | null) =>
    (await store.webhooks.deliveries(`wh_${owner}`, { before: null, limit: 10 })).length;
  // Of the job, and of the disk.
  expect(await Promise.all(['owner', 'other', 'admin', null].map(told))).toEqual([1, 0, 2, 2]);
});
