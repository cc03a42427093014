import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { openFolder } from '../../../src/app/folder.ts';
import type { Outcome } from '../../../src/core/batch/outcome.ts';
import { type CostLine, PRICES_DEFAULT } from '../../../src/core/cost/cost.ts';
import type { Receipt } from '../../../src/core/cost/receipt.ts';
import { openMetricsServer } from '../../../src/observe/metrics/metrics-server.ts';
import { processMetrics } from '../../../src/observe/metrics/process-metrics.ts';
import { metricsText } from '../../../src/observe/metrics/text-format.ts';
import { WorkerMetrics } from '../../../src/observe/metrics/worker-metrics.ts';
import type { Dispatcher } from '../../../src/ports/dispatcher.ts';
import { createKey } from '../../../src/server/keys/manage-keys.ts';
import { reportOf } from '../../support/coordinator/batches.ts';
import { HOSTILE_NAMES } from '../../support/hostile-names.ts';
import { temporaryFolder } from '../../support/seine-process.ts';
import { type ApiServer, openApiServer } from '../../support/servers/api-server.ts';
import { type PrometheusServer, promtool, startPrometheus } from '../../support/servers/prometheus-server.ts';
import { type CountedSite, startCountedSite } from '../../support/sites/counted-site.ts';
import { type LinkedSite, pathOf, startLinkedSite } from '../../support/sites/linked-site.ts';

const DEPLOY = join(import.meta.dirname, '../../../deploy');

let site: LinkedSite;
let counted: CountedSite;
let lists: ReturnType<typeof temporaryFolder>;
let server: ApiServer;
let prometheus: PrometheusServer;

beforeAll(async () => {
  [site, counted] = await Promise.all([startLinkedSite({ pages: 5 }), startCountedSite()]);
  lists = temporaryFolder();
  writeFileSync(join(lists.path, 'proxies.txt'), counted.url);
  server = await openApiServer({
    environment: { SEINE_PROXY_POOLS: `own=${join(lists.path, 'proxies.txt')}` },
    prices: { ...PRICES_DEFAULT, proxyGb: 1_000 },
  });
  prometheus = await startPrometheus([new URL(server.url).host]);
  const base = site.url.replace(/\/$/, '');
  const job = {
    name: 'shop',
    sources: [1, 2, 3, 'missing'].map((n) => (typeof n === 'number' ? base + pathOf(n) : `${base}/${n}`)),
    allowPrivate: true,
    politeness: { rate: 'max', robots: false },
    routes: [{ name: 'page', match: '**', select: { title: 'h1' } }],
  };
  const answer = await post('/jobs', job);
  const ended = await fetch(`${server.url}${answer.status_url}?wait=60`);
  expect(await ended.json()).toMatchObject({ status: 'completed' });
  // Rows of hosts are written a moment after the last page.
  await vi.waitFor(
    async () => expect(await (await fetch(`${server.url}/metrics`)).text()).toContain('seine_host_latency'),
    { timeout: 60_000 },
  );
});

afterAll(async () => {
  await prometheus?.stop();
  await server.close();
  await Promise.all([site.close(), counted.close()]);
  lists.remove();
});

async function post(path: string, body: unknown, headers: Record<string, string> = {}) {
  const answer = await fetch(`${server.url}/api/v1${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
  const text = await answer.text();
  expect([answer.status, text]).toEqual([202, expect.any(String)]);
  return JSON.parse(text);
}

type Metrics = Map<string, number>;

/** Values by name and labels, as they are written: `seine_tasks{job="shop",state="dead"}`. */
async function readMetrics(): Promise<Metrics> {
  const text = await (await fetch(`${server.url}/metrics`)).text();
  return new Map(
    text
      .split('\n')
      .filter((line) => line !== '' && !line.startsWith('#'))
      .map((line) => {
        const space = line.lastIndexOf(' ');
        return [line.slice(0, space), Number(line.slice(space + 1))];
      }),
  );
}

const sumOf = (metrics: Metrics, start: string) =>
  [...metrics].reduce((sum, [name, value]) => (name.startsWith(start) ? sum + value : sum), 0);

describe('what is counted is what happened:', () => {
  const paths = ['/ok/1', '/ok/2', '/ok/3', '/flaky', '/missing', '/private/1', '/private/2'];
  /** Of one thread. */
  const SLOTS = 8;
  const politeness = { rate: 'max', parallel: 8, adaptive: false };

  test('the queue and the workers, while pages are waited for', async () => {
    // No job has run yet.
    const before = await readMetrics();
    expect(before.get('seine_worker_slots{state="free"}')).toBe(SLOTS);
    const answer = await post('/jobs', {
      name: 'held',
      sources: ['/held/1', '/held/2'].map((path) => counted.url + path),
      allowPrivate: true,
      politeness: { ...politeness, robots: false },
    });
    await expect.poll(() => counted.waiting(), { timeout: 60_000 }).toBe(2);
    const metrics = await readMetrics();
    const tasks = (state: string, of: Metrics) => of.get(`seine_tasks{job="held",state="${state}"}`);
    expect([tasks('pending', metrics), tasks('leased', metrics), tasks('done', metrics)]).toEqual([0, 2, 0]);
    expect(metrics.get('seine_pages_total{job="held",outcome="succeeded"}')).toBe(0);
    expect(metrics.get('seine_worker_slots{state="busy"}')).toBeGreaterThanOrEqual(1);
    expect(sumOf(metrics, 'seine_worker_slots{')).toBe(SLOTS);
    counted.release();
    const ended = await fetch(`${server.url}${answer.status_url}?wait=60`);
    expect(await ended.json()).toMatchObject({ status: 'completed' });
    const after = await readMetrics();
    expect([tasks('pending', after), tasks('leased', after), tasks('done', after)]).toEqual([0, 0, 2]);
    expect(after.get('seine_pages_total{job="held",outcome="succeeded"}')).toBe(2);
    expect(after.get('seine_oldest_ready_task_age_seconds{job="held"}')).toBe(0);
  });

  test('pages, failures by code, requests, bytes, latencies, time of slots and costs', async () => {
    const earlier = counted.log.length;
    const startedAt = performance.now();
    const answer = await post('/jobs', {
      name: 'counted',
      sources: paths.map((path) => counted.url + path),
      allowPrivate: true,
      politeness,
      retry: { baseMs: 100 },
      proxies: { pools: { own: { from: { shared: 'own' } } }, default: 'own' },
      routes: [{ name: 'page', match: '**', select: { title: 'h1' } }],
    });
    const ended = await fetch(`${server.url}${answer.status_url}?wait=60`);
    expect(await ended.json()).toMatchObject({ status: 'completed' });
    // Each thread has a clock of its own, which differs by less than a millisecond.
    const elapsedSeconds = (performance.now() - startedAt + 1) / 1_000;
    const metrics = await readMetrics();
    const of = (name: string, labels = '') => metrics.get(`${name}{job="counted"${labels}}`);
    expect(
      ['succeeded', 'failed', 'skipped'].map((outcome) => of('seine_pages_total', `,outcome="${outcome}"`)),
    ).toEqual([4, 1, 2]);
    expect(
      ['done', 'dead', 'skipped', 'pending', 'leased'].map((state) => of('seine_tasks', `,state="${state}"`)),
    ).toEqual([4, 1, 2, 0, 0]);
    // The page that was unavailable at first has an attempt more.
    const log = counted.log.slice(earlier);
    const pages = log.filter(({ path }) => path !== '/robots.txt');
    expect(pages.length).toBe(6);
    expect(of('seine_attempt_failures_total', ',code="not-found"')).toBe(1);
    expect(of('seine_attempt_failures_total', ',code="unavailable"')).toBe(1);
    expect(sumOf(metrics, 'seine_attempt_failures_total{job="counted"')).toBe(2);
    expect(of('seine_requests_total')).toBe(log.length);
    expect(of('seine_bytes_total')).toBe(pages.reduce((sum, { bytes }) => sum + bytes, 0));
    expect(of('seine_fetch_duration_seconds_count')).toBe(pages.length);
    expect(of('seine_fetch_duration_seconds_bucket', ',le="+Inf"')).toBe(pages.length);
    expect(of('seine_fetch_duration_seconds_sum')).toBeGreaterThan(0);
    expect(of('seine_proxy_attempts_total', ',provider="addresses"')).toBe(pages.length);
    expect(of('seine_proxy_failures_total', ',provider="addresses"')).toBe(2);
    expect(of('seine_record_quality_score', ',route="page"')).toBe(100);
    const slotSeconds = sumOf(metrics, 'seine_slot_seconds_total{job="counted"');
    expect(slotSeconds).toBeGreaterThan(0);
    expect(slotSeconds).toBeLessThanOrEqual(SLOTS * elapsedSeconds);
    const asked = await fetch(`${server.url}/api/v1/jobs/${answer.job_id}/receipt`);
    const receipt = (await asked.json()) as Receipt;
    expect(receipt.bill.items).toMatchObject([{ item: 'proxyGb', quantity: expect.any(Number) }]);
    const [{ quantity }] = receipt.bill.items as [CostLine];
    expect(of('seine_cost_dollars_total', ',item="proxyGb"')).toBeCloseTo(quantity * 1_000, 9);
    expect(quantity * 1e9).toBeGreaterThanOrEqual(log.reduce((sum, { bytes }) => sum + bytes, 0));
  });
});

describe('/metrics of a server', () => {
  test('has nothing that promtool would object to', async () => {
    const answer = await fetch(`${server.url}/metrics`);
    expect(answer.headers.get('content-type')).toContain('version=0.0.4');
    const text = await answer.text();
    expect(await promtool(['check', 'metrics'], { input: text })).toEqual({ code: 0, output: '' });
    expect(text).toContain('seine_fetch_duration_seconds_bucket{job="shop",le="0.005"}');
  });

  test('is scraped by a real Prometheus', async () => {
    const pages = async () =>
      (await prometheus.query('seine_pages_total{job="shop"}')).map(({ metric, value }) => [
        metric.job,
        metric.outcome,
        value,
      ]);
    const expected = [
      ['shop', 'failed', 1],
      ['shop', 'skipped', 0],
      ['shop', 'succeeded', 3],
    ];
    await vi.waitFor(async () => expect((await pages()).sort()).toEqual(expected), { timeout: 60_000 });
    const value = async (query: string) => (await prometheus.query(query))[0]?.value;
    const ask = (query: string, wanted: unknown) =>
      vi.waitFor(async () => expect([query, await value(query)]).toEqual([query, wanted]), {
        timeout: 60_000,
      });
    await ask('seine_attempt_failures_total{job="shop",code="not-found"}', 1);
    await ask('seine_fetch_duration_seconds_count{job="shop"}', 4);
    await ask('seine_tasks{job="shop",state="dead"}', 1);
    await ask('seine_record_quality_score{job="shop",route="page"}', 100);
    await ask('seine_bytes_total{job="shop"} > bool 0', 1);
    await ask('sum(seine_worker_slots) >= bool 0', 1);
    await ask(`seine_host_requests_per_second{host="${new URL(site.url).host}"} > bool 0`, 1);
    await ask('process_resident_memory_bytes{job="seine"} > bool 1000000', 1);
    await ask('up{job="seine"}', 1);
  });

  test('has every metric that the board and the rules name, and rules that do what they say', async () => {
    const text = await (await fetch(`${server.url}/metrics`)).text();
    const names = new Set(text.match(/^# TYPE \S+/gm)!.map((line) => line.slice('# TYPE '.length)));
    const files = ['grafana/seine.json', 'prometheus/rules.yaml', 'prometheus/keda.yaml'];
    for (const file of files) {
      const named = readFileSync(join(DEPLOY, file), 'utf8').match(/\b(?:seine|process)_[a-z_]+/g)!;
      const unknown = named.filter((name) => !names.has(name.replace(/_(bucket|sum|count)$/, '')));
      expect([file, unknown]).toEqual([file, []]);
    }
    expect(
      JSON.parse(readFileSync(join(DEPLOY, 'grafana/seine.json'), 'utf8')).panels.length,
    ).toBeGreaterThan(10);
    const cwd = join(DEPLOY, 'prometheus');
    const [rules, config] = await Promise.all([
      promtool(['test', 'rules', 'rules-test.yaml'], { cwd }),
      promtool(['check', 'config', 'prometheus.yaml'], { cwd }),
    ]);
    expect([rules.code, rules.output]).toEqual([0, expect.stringContaining('SUCCESS')]);
    expect([config.code, config.output]).toEqual([0, expect.stringContaining('8 rules found')]);
  });

  test('wants a key once there is one, and shows a key its own jobs', async () => {
    const folder = await openFolder({ dir: server.dir, sync: 'normal' }, { create: false });
    const make = async (name: string, scope: 'read' | 'write' | 'admin') =>
      (await createKey(folder.store.keys, { name, scope, limits: {} }, Date.now()))!.key;
    const keys = { read: await make('r', 'read'), admin: await make('a', 'admin') };
    await folder.close();
    const metrics = (key?: string) =>
      fetch(`${server.url}/metrics`, key ? { headers: { authorization: `Bearer ${key}` } } : {});
    await vi.waitFor(async () => expect((await metrics()).status).toBe(401), { timeout: 60_000 });
    expect(await (await metrics(keys.admin)).text()).toContain('job="shop"');
    const own = await (await metrics(keys.read)).text();
    expect(own).not.toContain('shop');
    expect(own).toContain('process_cpu_seconds_total');
  });
});

test('whatever names come from outside, the text stays readable for Prometheus', async () => {
  const values = [...HOSTILE_NAMES, 'a"b', 'a\\', 'a\nb', '{x="y"} 1', '\u202e'];
  const samples = values.map((host, index) => ({ labels: { host, n: String(index) }, value: index }));
  const text = metricsText([{ name: 'seine_test', type: 'gauge', help: 'a\nb \\', samples }]);
  expect(text.split('\n').length).toBe(values.length + 3);
  expect(text.length).toBeLessThan(3_000);
  expect(await promtool(['check', 'metrics'], { input: text })).toEqual({ code: 0, output: '' });
});

test('a worker counts what its threads do, and serves it on an address of its own', async () => {
  const trace = { startedAt: 0, durationMs: 40, httpStatus: 200, bytes: 9 };
  const outcomes: Outcome[] = [
    { kind: 'skipped', taskId: 1, code: 'scope', detail: null, trace: null },
    { kind: 'failed', taskId: 2, code: 'task-timeout', detail: '', page: null, retryAfterMs: null, trace },
    { kind: 'deferred', taskId: 3 },
  ];
  const threads: Dispatcher = {
    ...{ workers: 2, slots: 8 },
    dispatch: async (_batch, onPart) => {
      onPart(reportOf({ outcomes }));
      return { kind: 'report', report: reportOf() };
    },
    drain: async () => {},
    close: async () => {},
  };
  const counts = new WorkerMetrics();
  const parts: unknown[] = [];
  await counts.counting(threads).dispatch({} as never, (part) => parts.push(part));
  expect(parts).toHaveLength(1);
  const opened = await openMetricsServer({
    listen: { host: '127.0.0.1', port: 0 },
    read: async () => [...counts.read(threads), ...processMetrics()],
  });
  try {
    const text = await (await fetch(opened.url)).text();
    expect(await promtool(['check', 'metrics'], { input: text })).toEqual({ code: 0, output: '' });
    for (const line of [
      'seine_worker_batches_total 1',
      'seine_worker_outcomes_total{outcome="deferred"} 1',
      'seine_worker_failures_total{code="task-timeout"} 1',
      'seine_fetch_duration_seconds_sum 0.04',
      'seine_worker_slots{state="free"} 8',
    ])
      expect(text).toContain(`\n${line}\n`);
    expect((await fetch(opened.url.replace('metrics', ''))).status).toBe(404);
    const taken = openMetricsServer({
      listen: { host: '127.0.0.1', port: Number(new URL(opened.url).port) },
      read: async () => [],
    });
    await expect(taken).rejects.toThrow('another program listens there');
  } finally {
    await opened.close();
  }
});
