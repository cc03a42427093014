import { describe, expect, test } from 'vitest';
import { assignProxies } from '../../../../src/coordinator/proxies/assign-proxies.ts';
import { ProxySelector } from '../../../../src/coordinator/proxies/proxy-selector.ts';
import { type Batch, type BatchTask, WIRE_VERSION } from '../../../../src/core/batch/batch.ts';
import type { FetchMethod } from '../../../../src/core/escalation/escalation.ts';
import type { PoolSpec } from '../../../../src/core/job-schema/proxies.ts';
import { parseProxyList } from '../../../../src/core/proxies/proxy.ts';
import { withRowProxy } from '../../../../src/core/proxies/row-proxy.ts';
import { specOf, T0 } from '../../../support/fixtures.ts';

const POOL: PoolSpec = {
  type: 'datacenter',
  from: { env: 'X' },
  sticky: false,
  perWorker: false,
  cooldownSeconds: 30,
};

function selectorOf(pool: Partial<PoolSpec> = {}): ProxySelector {
  const proxies = parseProxyList('http://h1:1\nhttp://h2:1\nhttp://h3:1\nhttp://h4:1', 'it');
  return new ProxySelector([{ name: 'dc', spec: { ...POOL, ...pool }, proxies }], Math.random);
}

/** Nothing of the pool is left. */
function emptySelector(): ProxySelector {
  const selector = selectorOf();
  const ids = parseProxyList('http://h1:1\nhttp://h2:1\nhttp://h3:1\nhttp://h4:1', 'it').map(({ id }) => id);
  selector.note(
    { proxyFaults: ids.map((id) => ({ id, count: 3 })), outcomes: [], robots: [] },
    () => null,
    T0,
  );
  return selector;
}

const methodVia = (pool: string | null): FetchMethod => ({
  level: 0,
  fetcher: 'http',
  headers: 'full',
  identity: null,
  pool,
});

function batchOf(
  tasks: { url: string; permit?: number; pool: string | null }[],
  fallback: 'wait' | 'direct' = 'wait',
): Batch {
  const spec = specOf({ proxies: { pools: { dc: { from: { env: 'X' } } }, fallback } });
  const origins = [...new Set(tasks.map(({ url }) => new URL(url).origin))];
  return {
    version: WIRE_VERSION,
    id: 1,
    job: { id: 1, name: 'j', specHash: '', spec, bundle: null, epoch: '' },
    needs: 'http',
    budgetMs: 1_000,
    permits: [0, 1].map((index) => ({ host: `p${index}`, startAt: T0, endAt: T0, gapMs: 0, parallel: 1 })),
    robots: origins.map((origin) => ({ origin, url: `${origin}/robots.txt`, permit: 0 })),
    tasks: tasks.map(
      ({ url, permit = 0, pool }, index): BatchTask => ({
        id: index + 1,
        url,
        permit,
        depth: 0,
        route: null,
        attempt: 1,
        hops: 0,
        meta: null,
        lastVisit: null,
        fetchMethod: methodVia(pool),
      }),
    ),
    archiveKey: '',
    packKey: '',
  };
}

describe('tasks that want a proxy', () => {
  test('get some, and so does robots.txt; others get none', () => {
    const batch = batchOf([
      { url: 'https://a.example/1', pool: 'dc' },
      { url: 'https://b.example/1', pool: null, permit: 1 },
    ]);
    expect(assignProxies(batch, selectorOf(), T0)).toEqual({ outcomes: [], permits: [] });
    const [one, two] = batch.tasks;
    expect(one!.through!.among.length).toBe(3);
    for (const index of one!.through!.among) expect(batch.proxies![index]!.url).toMatch(/^http:\/\/h\d:1$/);
    expect(two!.through).toBeUndefined();
    expect(batch.robots.map(({ through }) => through)).toEqual([one!.through, undefined]);
  });

  test('get only proxies in the country that their row names, and fail where the pool has none', () => {
    const all = parseProxyList('http://{country}:p@h1:1 DE\nhttp://h2:1 FR\nhttp://{country}:p@h3:1', 'it');
    const proxies = all.filter(({ country }) => country !== 'FR');
    const selector = new ProxySelector(
      [{ name: 'dc', spec: { ...POOL, country: 'DE' }, proxies, all }],
      () => 0,
    );
    const batch = batchOf(
      ['DE', 'FR', 'IT', null].map((_, at) => ({ url: `https://a.example/${at}`, pool: 'dc' })),
    );
    const countries = ['DE', 'FR', 'IT'];
    for (const [at, country] of countries.entries())
      batch.tasks[at]!.meta = withRowProxy({ sku: 1 }, { country });
    const { outcomes } = assignProxies(batch, selector, T0);
    expect(outcomes).toEqual([]);
    const urls = batch.tasks.map(({ through }) => through!.among.map((at) => batch.proxies![at]!.url).sort());
    expect(urls).toEqual([
      ['http://de:p@h1:1', 'http://de:p@h3:1'],
      ['http://fr:p@h3:1', 'http://h2:1'],
      ['http://it:p@h3:1'],
      ['http://de:p@h1:1', 'http://de:p@h3:1'],
    ]);
    const french = new ProxySelector([{ name: 'dc', spec: POOL, proxies: [all[1]!] }], () => 0);
    const lone = batchOf([{ url: 'https://a.example/', pool: 'dc' }]);
    lone.tasks[0]!.meta = withRowProxy(null, { country: 'SE' });
    const detail = "pool 'dc' has no proxy in SE";
    expect(assignProxies(lone, french, T0)).toMatchObject({
      outcomes: [{ kind: 'failed', code: 'no-proxy', detail, trace: null }],
      permits: [],
    });
    // Nothing waits for it.
    expect(french.shortage(T0)).toBeNull();
  });

  test('share the list of the batch', () => {
    const batch = batchOf(
      Array.from({ length: 50 }, (_, index) => ({ url: `https://a.example/${index}`, pool: 'dc' })),
    );
    assignProxies(batch, selectorOf(), T0);
    expect(batch.proxies!.length).toBe(4);
  });

  test('stay behind when there is none, and the whole host waits', () => {
    const batch = batchOf([
      { url: 'https://a.example/1', pool: 'dc' },
      { url: 'https://a.example/2', pool: 'dc' },
      { url: 'https://b.example/1', pool: null, permit: 1 },
    ]);
    expect(assignProxies(batch, emptySelector(), T0)).toEqual({
      outcomes: [
        { kind: 'deferred', taskId: 1 },
        { kind: 'deferred', taskId: 2 },
      ],
      permits: [{ permit: 0, until: T0 + 5_000 }],
    });
    expect(batch.robots.map(({ origin }) => origin)).toEqual(['https://b.example']);
    expect(batch.proxies).toBeUndefined();
  });

  test('wait by themselves where the host has others to ask for', () => {
    const batch = batchOf([
      { url: 'https://a.example/1', pool: 'dc' },
      { url: 'https://a.example/2', pool: null },
    ]);
    expect(assignProxies(batch, emptySelector(), T0)).toEqual({
      outcomes: [{ kind: 'deferred', taskId: 1, until: T0 + 5_000 }],
      permits: [],
    });
  });

  test('go without one only when the job says so, and then say so themselves', () => {
    const batch = batchOf([{ url: 'https://a.example/1', pool: 'dc' }], 'direct');
    expect(assignProxies(batch, emptySelector(), T0).outcomes).toEqual([]);
    expect(batch.tasks[0]!.fetchMethod!.pool).toBeNull();
    expect(batch.robots[0]!.through).toBeUndefined();
  });

  test('have the same one wherever they stay with it', () => {
    const batch = batchOf(
      Array.from({ length: 20 }, (_, index) => ({ url: `https://a.example/${index}`, pool: 'dc' })),
    );
    assignProxies(batch, selectorOf({ type: 'residential' }), T0);
    expect(batch.proxies!.length).toBe(1);
    const own = batchOf([{ url: 'https://a.example/1', pool: 'dc' }]);
    assignProxies(own, selectorOf({ perWorker: true }), T0);
    expect(own.tasks[0]!.through).toEqual({ among: [0, 1, 2, 3], perWorker: true });
  });

  test('robots.txt that is asked at another host goes the way of the task that it is for', () => {
    const ask = (pool: ProxySelector) => {
      const batch = batchOf([{ url: 'https://a.example/1', pool: 'dc' }]);
      batch.robots = [{ origin: 'https://a.example', url: 'https://cdn.example/r', permit: 1, for: 0 }];
      assignProxies(batch, pool, T0);
      return batch.robots;
    };
    expect(ask(selectorOf())[0]?.through?.among.length).toBeGreaterThan(0);
    expect(ask(emptySelector())).toEqual([]);
  });
});
