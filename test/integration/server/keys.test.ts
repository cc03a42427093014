import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { keysCommand } from '../../../src/cli/commands/server/keys.ts';
import { makeContext } from '../../../src/cli/context.ts';
import { parseCommandLine } from '../../../src/cli/parse-args.ts';
import { isApiKey } from '../../../src/core/keys/api-key.ts';
import type { Store } from '../../../src/ports/store.ts';
import { KeyAccess } from '../../../src/server/api/keys/key-access.ts';
import { claimOf } from '../../../src/server/job-runner.ts';
import { createKey, keepAdminKey } from '../../../src/server/keys/manage-keys.ts';
import { openSqliteStore } from '../../../src/store/sqlite/sqlite-store.ts';
import {
  change,
  codeOf,
  enqueue,
  leaseOne,
  settlementOf,
  specOf,
  tasksOf,
  temporaryFolder,
} from '../../support/fixtures.ts';

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
beforeAll(async () => {
  folder = await temporaryFolder();
});
afterAll(() => folder.remove());

/** What a command prints, in this very process. */
async function seine(...args: string[]): Promise<{ out: string; err: string }> {
  const printed = { out: '', err: '' };
  const stream = (name: 'out' | 'err') =>
    ({
      write: (more: string) => {
        printed[name] += more;
        return true;
      },
    }) as NodeJS.WriteStream;
  const context = await makeContext(parseCommandLine([...args, '--dir', folder.dir]), process);
  await keysCommand({ ...context, stdout: stream('out'), stderr: stream('err') });
  return printed;
}

describe('seine keys', () => {
  test('shows a key once, lists keys without it, and revokes them', async () => {
    const made = JSON.parse(
      (await seine('keys', 'create', '--name', 'ci', '--scope', 'write', '--json')).out,
    );
    expect(isApiKey(made.key)).toBe(true);
    expect(made).toMatchObject({ name: 'ci', scope: 'write', limits: { requestsPerMinute: 600 } });
    const plain = await seine(
      'keys',
      'create',
      '--name',
      'plain',
      '--pages-per-day',
      '10',
      '--weight',
      '3',
      '--requests-per-day',
      '500',
      '--browser-seconds-per-day',
      '1.5',
    );
    expect(isApiKey(plain.out.trim())).toBe(true);
    expect(plain.err).not.toContain(plain.out.trim());
    const listed = (await seine('keys', 'list', '--json')).out;
    expect(listed).not.toContain(made.key);
    expect(
      listed
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line).name),
    ).toEqual(['plain', 'ci']);
    expect(JSON.parse(listed.split('\n')[0]!).limits).toMatchObject({
      pagesPerDay: 10,
      weight: 3,
      requestsPerDay: 500,
      browserSecondsPerDay: 1.5,
    });
    expect((await seine('keys', 'revoke', 'ci')).out).toBe(`${made.id} (ci) is revoked\n`);
    expect((await seine('keys', 'list')).out).toMatch(/ci revoked 20/);
  });

  test.each([
    [['keys'], 'seine keys needs create, list or revoke'],
    [['keys', 'creat'], "got 'creat' instead of create, list or revoke; did you mean create?"],
    [['keys', 'create'], 'seine keys create needs --name'],
    [['keys', 'create', '--name', 'plain'], "there is a key named 'plain' already"],
    [
      ['keys', 'create', '--name', 'x', '--scope', 'all'],
      "--scope must be one of read, write, admin, got 'all'",
    ],
    [['keys', 'create', '--name', 'x', '--pages-per-day', '1.5'], '--pages-per-day is not a whole number'],
    [
      ['keys', 'create', '--name', 'x', '--requests-per-day', '1.5'],
      '--requests-per-day is not a whole number',
    ],
    [
      ['keys', 'create', '--name', 'x', '--browser-seconds-per-day', '0'],
      '--browser-seconds-per-day is not a number',
    ],
    [['keys', 'create', '--name', 'x', '--weight', '0'], "--weight is not a number from 0.01 to 100: '0'"],
    [['keys', 'list', 'ci'], 'seine keys list takes no further argument'],
    [['keys', 'revoke'], 'seine keys revoke needs the id or the name of a key'],
    [['keys', 'revoke', 'other'], "no key in use has the id or name 'other'"],
  ])('%j is refused with a sentence', async (args, message) => {
    await expect(seine(...args)).rejects.toThrow(message);
  });
});

describe('access by keys', () => {
  let store: Store;
  let now = Date.UTC(2026, 0, 1);
  beforeAll(() => {
    store = openSqliteStore(':memory:');
  });
  afterAll(() => store.close());
  const HERE = '127.0.0.1';
  const ELSEWHERE = '192.0.2.1';
  const open = () => new KeyAccess({ keys: store.keys, token: 'the-token', now: () => now });

  test('this machine needs none while there are none, and a token of the folder always works here', async () => {
    const access = open();
    expect(await access.authenticate({}, HERE)).toMatchObject({ keyId: null });
    expect(await access.authenticate({}, '::ffff:127.0.0.1')).toMatchObject({ keyId: null });
    expect(await access.authenticate({}, ELSEWHERE)).toBeNull();
    expect(await access.authenticate({ authorization: 'Bearer the-token' }, HERE)).toMatchObject({
      keyId: null,
    });
    expect(await access.authenticate({ authorization: 'Bearer the-token' }, ELSEWHERE)).toBeNull();
    expect(await access.authenticate({ 'x-api-key': 'wrong' }, HERE)).toBeNull();
    expect(await access.authenticate({ authorization: 'Basic eDp5' }, HERE)).toBeNull();
  });

  test('a key is known by either header from everywhere, until it is revoked', async () => {
    const access = open();
    const { key, stored } = (await createKey(store.keys, { name: 'a', scope: 'write', limits: {} }, now))!;
    const caller = { keyId: stored.id, scopes: new Set(['read', 'write']) };
    expect(await access.authenticate({ 'x-api-key': key }, ELSEWHERE)).toEqual(caller);
    expect(await access.authenticate({ authorization: `bearer ${key}` }, HERE)).toEqual(caller);
    expect(await access.authenticate({}, HERE)).toBeNull();
    await store.keys.revoke(stored.id, now);
    // Another process revoked it: noticed when what is remembered is old.
    now += 2_000;
    expect(await access.authenticate({ 'x-api-key': key }, ELSEWHERE)).toBeNull();
  });

  test('the limits of a key hold', async () => {
    const access = open();
    const limits = { requestsPerMinute: 2, pagesPerDay: 10, costPerDay: 1 };
    const { key } = (await createKey(store.keys, { name: 'b', scope: 'read', limits }, now))!;
    const caller = (await access.authenticate({ 'x-api-key': key }, ELSEWHERE))!;
    expect(access.take(caller, now)).toMatchObject({ allowed: true, limit: 2, remaining: 1 });
    expect(access.take(caller, now)).toMatchObject({ allowed: true, remaining: 0 });
    expect(access.take(caller, now)).toEqual({ allowed: false, limit: 2, remaining: 0, resetSeconds: 30 });
    expect(await access.admit(caller, { pages: 8 })).toBeNull();
    const refused = await access.admit(caller, { pages: 3 });
    expect(refused?.detail).toBe('the key may use 10 pages and 1 USD per day, which this would exceed');
    now += refused!.retryAfterSeconds! * 1_000;
    expect(await access.admit(caller, { pages: 3 })).toBeNull();
    expect(await access.admit({ keyId: null, scopes: new Set() }, { pages: 1e9 })).toBeNull();
  });

  test.each([
    ['requestsPerDay', { requests: 5 }, [], 'the key may use 10 pages and 5 requests per day'],
    [
      'browserSecondsPerDay',
      { requests: 0 },
      [{ item: 'browserSeconds', quantity: 5, dollars: 0 }],
      'the key may use 10 pages and 5 browser seconds per day',
    ],
  ] as const)('pages are refused once %s is used up', async (name, settled, costs, message) => {
    const access = open();
    const limits = { pagesPerDay: 10, [name]: 5 };
    const made = (await createKey(store.keys, { name, scope: 'write', limits }, now))!;
    const owner = made.stored.id;
    const caller = (await access.authenticate({ 'x-api-key': made.key }, ELSEWHERE))!;
    expect(await access.admit(caller, { pages: 1 })).toBeNull();
    const job = await store.jobs.create({ ...codeOf(name), name, now, owner });
    await enqueue(store, job, tasksOf('https://a.example/1'));
    const { id, tasks } = await leaseOne(store, job);
    const settlement = settlementOf(job, id, [change.fetched(tasks[0]!.id)], {
      owner,
      now,
      costs,
      ...settled,
    });
    await store.frontier.settle(settlement);
    for (const pages of [0, 1])
      expect((await access.admit(caller, { pages }))?.detail).toBe(`${message}, which this would exceed`);
    now += 86_400_000;
    expect(await access.admit(caller, { pages: 1 })).toBeNull();
  });

  test('the weight of a key is that of its jobs among the owners', async () => {
    const heavy = await createKey(store.keys, { name: 'heavy', scope: 'write', limits: { weight: 4 } }, 0);
    const spec = specOf({ priority: 2 });
    const owner = heavy!.stored.id;
    expect(await claimOf({ owner, spec }, store.keys)).toEqual({
      owner,
      ownerWeight: 4,
      weight: 4,
      priority: 2,
    });
    expect(await claimOf({ owner: null, spec }, store.keys)).toEqual({
      owner: '',
      ownerWeight: 1,
      weight: 4,
      priority: 2,
    });
  });

  test('the key of the environment is known from the start, and only the newest', async () => {
    const access = open();
    const [first, second] = ['x'.repeat(32), 'y'.repeat(40)];
    await keepAdminKey(store.keys, first, now);
    await keepAdminKey(store.keys, first, now);
    const admin = { keyId: 'environment', scopes: new Set(['read', 'write', 'admin']) };
    expect(await access.authenticate({ 'x-api-key': first }, ELSEWHERE)).toEqual(admin);
    expect(access.take(admin as never, now)).toMatchObject({ allowed: true });
    await keepAdminKey(store.keys, second, now);
    access.forget();
    expect(await access.authenticate({ 'x-api-key': first }, ELSEWHERE)).toBeNull();
    expect(await access.authenticate({ 'x-api-key': second }, ELSEWHERE)).toEqual(admin);
    await keepAdminKey(store.keys, null, now);
    access.forget();
    expect(await access.authenticate({ 'x-api-key': second }, ELSEWHERE)).toBeNull();
  });
});
