import { describe, expect, test } from 'vitest';
import { newHealth } from '../../../src/core/proxies/proxy-health.ts';
import {
  change,
  collect,
  createJob,
  enqueue,
  hostChange,
  pageOf,
  recordOf,
  robotsEntry,
  T0,
  taskOf,
  traceOf,
} from '../../support/fixtures.ts';
import { HOSTILE_NAMES, objectWith } from '../../support/hostile-names.ts';
import { A, expectBalance, type StoreSetup } from './store-setup.ts';

/** Names that a site or a user chose, as keys of all that a store keeps: they come back, or were replaced by others. */
export function testHostileNames(setup: StoreSetup): void {
  const { row, visit, reopen } = setup;
  /** A database may have replaced what it cannot keep; two of these names must not become one. */
  const isKept = (name: string) => !name.includes('\0') && name.isWellFormed();
  const expectNames = (object: object | null | undefined, names: readonly string[] = HOSTILE_NAMES) => {
    expect(Object.keys(object!)).toHaveLength(names.length);
    for (const name of names.filter(isKept)) expect(Object.hasOwn(object!, name)).toBe(true);
  };
  const short = HOSTILE_NAMES.filter((name) => name.length < 100);

  describe('names from outside', () => {
    test('as columns of rows, fields, keys, routes and codes', async () => {
      const meta = objectWith({ of: 'a row' });
      const tasks = short.map((name, index) => taskOf(`${A}/${index}`, { meta, route: name }));
      await enqueue(setup.store, setup.job, tasks);
      const lent = await visit(({ id, route }) =>
        change.fetched(id, {
          page: pageOf({ route, contentType: route, etag: route, lastModified: route, robotsTags: route }),
          records: [
            recordOf(`${id} ${route}`, objectWith('first')),
            recordOf('shared', objectWith(id), true),
          ],
          links: [taskOf(`${A}/below/${id}`, { meta, route })],
          detail: route,
        }),
      );
      for (const task of lent.values()) expectNames(task.meta);
      await reopen();
      expectNames((await row(`${A}/0`))?.meta);
      const records = await collect(setup.store.views.records(setup.job.id));
      expect(records).toHaveLength(short.length + 1);
      for (const { data } of records) expectNames(data);
      const shared = records.find(({ key }) => key === 'shared')!;
      expect(new Set(Object.values(shared.data)).size).toBe(1);
      await expectBalance(setup.store, setup.job);
    });

    test('as hosts, workers, proxies and origins', async () => {
      const hosts = short.filter((name) => name !== '');
      await enqueue(
        setup.store,
        setup.job,
        hosts.map((host, index) => taskOf(`${A}/${index}`, { host })),
      );
      const nameIn = (url: string) => hosts[Number(url.slice(A.length + 1))]!;
      const known = (await setup.due()).map(({ host }) => host);
      expect(known).toHaveLength(hosts.length);
      for (const name of hosts.filter(isKept)) expect(known).toContain(name);
      await visit(
        ({ id, url }) =>
          change.fetched(id, {
            trace: traceOf({ via: { rung: 0, fetcher: 'http', identity: nameIn(url), proxy: nameIn(url) } }),
          }),
        {
          worker: 'a\0b\ud800',
          hosts: hosts.map((host) =>
            hostChange(host, { sent: 1, lastError: { at: T0, code: host, detail: host } }),
          ),
          robots: hosts.map((host) =>
            robotsEntry(A, { origin: `https://${host}`, host, text: host, detail: host, redirectTo: host }),
          ),
        },
      );
      const { proxies, escalations } = setup.store;
      await proxies.save(
        hosts.map((name) => ({ proxy: name, host: name, health: newHealth(T0) })),
        0,
      );
      expect(await proxies.load(0, 100)).toHaveLength(hosts.length);
      const stats = objectWith({ tries: 1, rate: 1, at: T0 });
      await escalations.save(
        setup.job.id,
        hosts.map((host) => ({ host, template: host, stats })),
      );
      const rows = await escalations.load(setup.job.id, 100);
      expect(rows).toHaveLength(hosts.length);
      for (const { stats: kept } of rows) expectNames(kept as object);
      await expectBalance(setup.store, setup.job);
    });

    test('in what a job says', async () => {
      const names = HOSTILE_NAMES.filter((name) => name !== '' && name !== '__proto__');
      const job = await createJob(setup.store, 'constructor', {
        routes: [{ name: 'constructor', select: objectWith('h1', names) }],
      });
      await reopen();
      const found = await setup.store.jobs.find('constructor');
      expect(found?.id).toBe(job.id);
      expectNames(found?.spec.routes[0]?.select, names);
    });

    test('as columns of a query', async () => {
      const names = short.filter((name) => isKept(name) && name !== '');
      const columns = names.map((name, index) => `${index} AS "${name}"`).join(', ');
      const [only] = await collect(setup.store.views.query(`SELECT ${columns}`));
      expect(Object.entries(only!).sort()).toEqual(names.map((name, index) => [name, index]).sort());
    });
  });
}
