import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import type { DueHost, Job, LeasedBatch, Store } from '../../../../src/ports/store.ts';
import { parseStoreUrl } from '../../../../src/store/postgres/connection/store-url.ts';
import {
  openPostgresStore,
  type PostgresStoreOptions,
} from '../../../../src/store/postgres/postgres-store.ts';
import { expectBalance } from '../../../contract/store/store-setup.ts';
import {
  change,
  codeOf,
  createJob,
  enqueue,
  hostChange,
  settlementOf,
  T0,
  tasksOf,
} from '../../../support/fixtures.ts';
import { type PostgresServer, startPostgres } from '../../../support/servers/services.ts';
import { startTcpProxy } from '../../../support/servers/tcp-proxy.ts';

const A = 'https://a.example';
const B = 'https://b.example';

let server: PostgresServer;
let url: string;
let one: Store;
let two: Store;
let job: Job;
const opened: Store[] = [];
const open = async (options: PostgresStoreOptions = {}, place = url) => {
  const store = await openPostgresStore(place, { connections: 3, ...options });
  opened.push(store);
  return store;
};

beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server.stop());
beforeEach(async () => {
  const place = new URL(server.url);
  place.searchParams.set('schema', `f${randomUUID().replaceAll('-', '')}`);
  url = place.href;
  one = await open();
  two = await open();
  job = await createJob(one);
  await enqueue(one, job, tasksOf(`${A}/1`, `${A}/2`, `${B}/1`, `${B}/2`));
});
afterEach(async () => {
  for (const store of opened.splice(0)) await store.close().catch(() => {});
});

const due = (store: Store, of = job, before = T0 + 1_000) =>
  store.frontier.dueHosts(of.id, { now: T0, before, limit: 10 });
const namesOf = (hosts: DueHost[]) => hosts.map(({ host }) => host).sort();
const hostId = async (store: Store, name: string) =>
  (await due(store, job, T0 + 1e9)).find(({ host }) => host === name)!.id;
const lease = async (store: Store, id: number, nextAt: number, more: { startAt?: number; of?: Job } = {}) => {
  const { startAt, of = job } = more;
  const grant = { hostId: id, count: 1, nextAt, ...(startAt === undefined ? {} : { startAt }) };
  const [batch] = await store.frontier.lease(of.id, {
    batches: [{ grants: [grant], leaseMs: 60_000 }],
    now: T0,
  });
  return batch!;
};

describe('hosts are shared out', () => {
  test('a host with a batch out is nobody else’s, and free when the last batch is settled', async () => {
    const a = await hostId(one, 'a.example');
    const first = await lease(one, a, T0);
    const second = await lease(one, a, T0);
    expect(namesOf(await due(two))).toEqual(['b.example']);
    expect((await lease(two, a, T0)).tasks).toEqual([]);
    await enqueue(one, job, tasksOf(`${A}/3`));
    for (const [index, batch] of [first, second].entries()) {
      expect(namesOf(await due(two))).toEqual(['b.example']);
      const changes = [change.fetched(batch.tasks[0]!.id)];
      await one.frontier.settle(settlementOf(job, batch.id, changes, { final: false }));
      expect(namesOf(await due(two))).toEqual(['b.example']);
      if (index === 0) await one.frontier.settle(settlementOf(job, batch.id, []));
      else await one.frontier.release(batch.id, { now: T0, blame: 'none', reason: 'test' });
    }
    expect(namesOf(await due(two))).toEqual(['a.example', 'b.example']);
    expect((await lease(two, a, T0)).tasks).toHaveLength(1);
    expect(namesOf(await due(one))).toEqual(['b.example']);
    await expectBalance(one, job);
  });

  test('whoever plans a host of another does not wait for it, and keeps nobody from it', async () => {
    const [a, b] = [await hostId(one, 'a.example'), await hostId(one, 'b.example')];
    await lease(one, a, T0);
    await lease(two, b, T0);
    // As a report of the first one has both while it is written: its host, and the counters of its connection.
    const writing = new pg.Client({ connectionString: server.url });
    await writing.connect();
    const schema = new URL(url).searchParams.get('schema')!;
    await writing.query(`SET search_path = ${schema}`);
    await writing.query('BEGIN');
    await writing.query('SELECT 1 FROM hosts WHERE id = $1 FOR UPDATE', [a]);
    await writing.query(`SELECT 1 FROM counters WHERE shard = (SELECT min(shard) FROM counters) FOR UPDATE`);
    const grants = [a, b].map((id) => ({ hostId: id, count: 1, nextAt: T0 }));
    const [batch] = await two.frontier.lease(job.id, { batches: [{ grants, leaseMs: 60_000 }], now: T0 });
    expect(batch!.tasks.map(({ url: at }) => at)).toEqual([`${B}/2`]);
    await writing.query('COMMIT');
    await writing.end();
    await expectBalance(one, job);
  });

  test('also between jobs', async () => {
    const other = await createJob(two, 'other');
    await enqueue(two, other, tasksOf(`${A}/9`));
    const a = await hostId(one, 'a.example');
    const { id } = await lease(one, a, T0);
    expect(await due(two, other)).toEqual([]);
    await one.frontier.settle(settlementOf(job, id, []));
    expect((await lease(two, a, T0, { of: other })).tasks).toHaveLength(1);
  });

  test('a plan that others were faster than is not carried out', async () => {
    const a = await hostId(two, 'a.example');
    const batch = await lease(one, a, T0 + 5_000);
    await one.frontier.settle(settlementOf(job, batch.id, [change.fetched(batch.tasks[0]!.id)]));
    // Planned when the host was free at T0; it is taken until T0 + 5,000 by now.
    expect((await lease(two, a, T0 + 900, { startAt: T0 })).tasks).toEqual([]);
    expect((await lease(two, a, T0 + 900, { startAt: T0 + 4_999 })).tasks).toEqual([]);
    expect((await lease(two, a, T0 + 9_000, { startAt: T0 + 5_000 })).tasks).toHaveLength(1);
    await expectBalance(one, job);
  });

  test('a report cannot bring the time of a host forward that was lent again meanwhile', async () => {
    const a = await hostId(one, 'a.example');
    const first = await lease(one, a, T0 + 5_000);
    await lease(one, a, T0 + 10_000, { startAt: T0 + 5_000 });
    const free = hostChange('a.example', { nextAt: T0 + 1_100, takenUntil: T0 + 5_000 });
    await one.frontier.settle(settlementOf(job, first.id, [], { hosts: [free] }));
    expect(await due(one, job, T0 + 9_999)).toMatchObject([{ host: 'b.example' }]);
    const rest = hostChange('a.example', { nextAt: T0 + 60_000, takenUntil: T0 + 5_000 });
    const late = await lease(one, a, T0 + 12_000, { startAt: T0 + 10_000 });
    await one.frontier.settle(settlementOf(job, late.id, [], { hosts: [rest] }));
    expect(await due(one, job, T0 + 59_999)).toMatchObject([{ host: 'b.example' }]);
  });
});

describe('a coordinator that is gone', () => {
  test('one that closes leaves its batches to the others at once', async () => {
    const { id } = await lease(one, await hostId(one, 'a.example'), T0);
    expect(await two.frontier.abandoned(job.id)).toEqual([]);
    expect(await two.frontier.orphans(job.id)).toEqual([]);
    await one.close();
    expect(await two.frontier.abandoned(job.id)).toEqual([id]);
    expect(await two.frontier.release(id, { now: T0, blame: 'none', reason: 'gone' })).toMatchObject({
      returned: 1,
    });
    expect(namesOf(await due(two))).toEqual(['a.example', 'b.example']);
    await expectBalance(two, job);
  });

  test('of those that claim a job at once one gets it, and another one when that is gone', async () => {
    const claims = await Promise.all([one, two, one, two].map((store) => store.jobs.claim(job.id)));
    // Whoever has it may claim it again.
    expect(claims.toSorted()).toEqual([false, false, true, true]);
    const [holder, other] = claims[0] ? [one, two] : [two, one];
    expect(await other.jobs.claim(job.id)).toBe(false);
    // One that joins helps, and does not keep the job when it leaves.
    await other.jobs.join(job.id);
    expect(await holder.jobs.claim(job.id)).toBe(false);
    expect(await other.jobs.leave(job.id)).toBe(1);
    await holder.close();
    expect(await other.jobs.claim(job.id)).toBe(true);
  });

  test('one without a heartbeat is taken for dead; what it says later is refused', async () => {
    const proxy = await startTcpProxy(server);
    const through = new URL(url);
    through.port = String(proxy.port);
    const far = await open({ aliveMs: 800, silenceMs: 60_000 }, through.href);
    const a = await hostId(far, 'a.example');
    const { id, tasks } = await lease(far, a, T0);
    // Long after it would count as dead without heartbeats; a machine that stands still is late with the next.
    const leasedAt = performance.now();
    await expect.poll(() => performance.now() - leasedAt).toBeGreaterThan(1_500);
    await expect.poll(() => two.frontier.abandoned(job.id)).toEqual([]);
    expect(await two.jobs.atWork(job.id)).toBe(0);
    await far.jobs.join(job.id);
    await expect.poll(() => two.jobs.atWork(job.id)).toBe(1);
    const thaw = Promise.withResolvers<void>();
    const thawed = proxy.freeze(thaw.promise);
    await expect.poll(() => two.frontier.abandoned(job.id)).toEqual([id]);
    expect(await two.jobs.atWork(job.id)).toBe(0);
    // Its host can be taken over before its batch is.
    const mine = await lease(two, a, T0 + 7_000);
    expect(mine.tasks).toHaveLength(1);
    const late = far.frontier.settle(
      settlementOf(job, id, [change.fetched(tasks[0]!.id)], {
        hosts: [hostChange('a.example', { nextAt: T0 })],
      }),
    );
    await two.frontier.release(id, { now: T0, blame: 'none', reason: 'gone' });
    thaw.resolve();
    await thawed;
    expect(await late).toEqual({ applied: false, accepted: 0 });
    await two.frontier.settle(settlementOf(job, mine.id, [change.fetched(mine.tasks[0]!.id)]));
    expect((await due(two, job, T0 + 6_999)).map(({ host }) => host)).toEqual(['b.example']);
    await expectBalance(two, job);
    await proxy.close();
  });

  test('one of the others takes over what its workers still have, and keeps the hosts for itself', async () => {
    const three = await open();
    const a = await hostId(one, 'a.example');
    const [first, second] = [await lease(one, a, T0), await lease(one, a, T0)];
    await enqueue(one, job, tasksOf(`${A}/3`));
    for (const { id } of [first, second])
      await one.frontier.noteSent(id, { replyTo: 'there', handover: null });
    expect(await two.frontier.adopt(job.id, first.id)).toBeNull();
    await one.close();
    expect(await two.frontier.adopt(job.id, first.id)).toMatchObject({ id: first.id, replyTo: 'there' });
    expect(await three.frontier.adopt(job.id, first.id)).toBeNull();
    const gone = { now: T0, blame: 'coordinator', reason: 'the coordinator ended' } as const;
    expect(await three.frontier.release(first.id, gone)).toEqual({ returned: 0, dead: 0, isOthers: true });
    expect(await three.frontier.abandoned(job.id)).toEqual([second.id]);
    expect(namesOf(await due(two))).toContain('a.example');
    expect(namesOf(await due(three))).toEqual(['b.example']);
    await two.frontier.release(second.id, { now: T0, blame: 'none', reason: 'gone' });
    await two.frontier.settle(settlementOf(job, first.id, [change.fetched(first.tasks[0]!.id)]));
    expect(namesOf(await due(three))).toEqual(['a.example', 'b.example']);
    await expectBalance(three, job);
  });

  test('a late report of one that lost its host does not shorten the time that the new holder got', async () => {
    const three = await open();
    const a = await hostId(one, 'a.example');
    const { id } = await lease(one, a, T0 + 100);
    await one.close();
    await lease(two, a, T0 + 9_000);
    const early = hostChange('a.example', { nextAt: T0 + 50 });
    await three.frontier.settle(settlementOf(job, id, [], { hosts: [early] }));
    expect((await due(two, job, T0 + 8_999)).map(({ host }) => host)).toEqual(['b.example']);
    // Nor does it let go of a host that is another's now.
    expect((await due(three, job, T0 + 99_000)).map(({ host }) => host)).toEqual(['b.example']);
  });

  test('whoever opens the store for the same place again has ended the one before', async () => {
    const place = randomUUID();
    const former = await open({ place });
    const { id } = await lease(former, await hostId(former, 'a.example'), T0);
    expect(await two.frontier.abandoned(job.id)).toEqual([]);
    const again = await open({ place });
    await again.jobs.join(job.id);
    expect(await again.frontier.orphans(job.id)).toEqual([id]);
    expect(await two.frontier.abandoned(job.id)).toEqual([id]);
  });
});

describe('several coordinators of one job', () => {
  test('start it together, once', async () => {
    const code = { ...codeOf('together'), name: 'together', now: T0, unlessUnfinished: true };
    const jobs = await Promise.all([one, two, one, two].map((store) => store.jobs.create(code)));
    expect(new Set(jobs.map(({ id }) => id)).size).toBe(1);
    expect((await one.jobs.create({ ...code, specHash: 'other' })).run).toBe(2);
    expect((await one.jobs.create({ ...code, specHash: 'other', unlessUnfinished: false })).run).toBe(3);
    const last = await one.jobs.find('together');
    await one.jobs.update(last!.id, { state: 'done' });
    expect((await two.jobs.create({ ...code, specHash: 'other' })).run).toBe(4);
  });

  test('one of them reads the sources, and another when it has left', async () => {
    await one.jobs.join(job.id);
    await two.jobs.join(job.id);
    expect(await one.jobs.takeSources(job.id)).toBe(true);
    expect(await two.jobs.takeSources(job.id)).toBe(false);
    expect(await one.jobs.takeSources(job.id)).toBe(true);
    expect(await one.jobs.leave(job.id)).toBe(1);
    expect(await two.jobs.takeSources(job.id)).toBe(true);
    expect(await one.jobs.takeSources(job.id)).toBe(false);
    expect(await two.jobs.leave(job.id)).toBe(0);
  });

  test('the same URLs from all sides become one task each', async () => {
    const urls = Array.from({ length: 600 }, (_, n) => `https://h${n % 7}.example/${n}`);
    const shuffled = (seed: number) => [...urls.slice(seed), ...urls.slice(0, seed)];
    const results = await Promise.all(
      [one, two, one, two].map((store, index) => enqueue(store, job, tasksOf(...shuffled(index * 150)))),
    );
    expect(results.reduce((sum, { accepted }) => sum + accepted, 0)).toBe(600);
    expect(results.reduce((sum, { duplicates }) => sum + duplicates, 0)).toBe(1_800);
    await expectBalance(one, job);
  });
});

describe('attempts in order', () => {
  test('one that is written late with a lower number is not missed', async () => {
    const [a, b] = [await hostId(one, 'a.example'), await hostId(two, 'b.example')];
    const late = await lease(one, a, T0);
    const early = await lease(two, b, T0);
    const settle = (store: Store, batch: LeasedBatch) =>
      store.frontier.settle(settlementOf(job, batch.id, [change.fetched(batch.tasks[0]!.id)]));
    const place = parseStoreUrl(url, null);
    const client = new pg.Client({
      connectionString: place.url,
      options: `-c search_path=${place.schema}`,
    });
    await client.connect();
    try {
      // Holds the first settle up after it has taken its number.
      await client.query('BEGIN');
      await client.query('SELECT 1 FROM tasks WHERE id = $1 FOR UPDATE', [late.tasks[0]!.id]);
      const settled = settle(one, late);
      await vi.waitFor(
        async () => {
          const waiting =
            'SELECT 1 FROM pg_locks WHERE NOT granted AND transactionid = pg_current_xact_id()::xid';
          expect((await client.query(waiting)).rows).not.toEqual([]);
        },
        { timeout: 60_000 },
      );
      await settle(two, early);
      const step = await two.views.attemptStep(job.id, { after: 0, limit: 10 });
      expect(step.rows).toEqual([]);
      await client.query('COMMIT');
      await settled;
      const next = await two.views.attemptStep(job.id, { after: step.after, limit: 10 });
      const urls = [late, early].map(({ tasks }) => tasks[0]!.url);
      expect(next.rows.map((row) => row.url)).toEqual(urls);
      expect(next.isEnd).toBe(true);
    } finally {
      await client.end();
    }
  });
});
