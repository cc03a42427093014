import { readdir, writeFile } from 'node:fs/promises';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { parquetReadObjects } from 'hyparquet';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { openFolder } from '../../../src/app/folder.ts';
import { codeOf } from '../../support/fixtures.ts';
import { temporaryFolder } from '../../support/seine-process.ts';
import { type ApiServer, openApiServer } from '../../support/servers/api-server.ts';
import { type ProxyServer, startProxy } from '../../support/servers/proxy-servers.ts';
import { type LinkedSite, pathOf, startLinkedSite } from '../../support/sites/linked-site.ts';

let site: LinkedSite;
let server: ApiServer;

beforeAll(async () => {
  [site, server] = await Promise.all([startLinkedSite({ pages: 20 }), openApiServer()]);
});

afterAll(async () => {
  await server.close();
  await site.close();
});

const page = (index: number) => site.url.replace(/\/$/, '') + pathOf(index);

async function call(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
  const answer = await fetch(`${server.url}/api/v1${path}`, {
    method,
    headers: { ...(body === undefined ? {} : { 'content-type': 'application/json' }), ...headers },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  const text = await answer.text();
  const isJson = answer.headers.get('content-type')?.includes('json') && !headers.accept;
  return { status: answer.status, headers: answer.headers, text, body: isJson ? JSON.parse(text) : null };
}

const FAST = { rate: 'max', robots: false };

describe('scrape', () => {
  test('answers with the page, in the formats that were asked for', async () => {
    const asked = { url: page(1), ...FAST, formats: ['html', 'text', 'markdown', 'links', 'records'] };
    const { status, body } = await call('POST', '/scrape', {
      ...asked,
      select: { title: 'h1' },
      meta: { n: 1 },
    });
    expect(status).toBe(200);
    expect(body.status).toBe('completed');
    expect(body.result).toMatchObject({
      url: page(1),
      status: 'succeeded',
      http_status: 200,
      html: site.bodyOf(1),
      records: [{ title: 'Page 1' }],
      meta: { n: 1 },
    });
    expect(body.result.links).toContain(page(3));
    expect(body.result.text).toContain('Page number 1');
    expect(body.result.markdown).toContain('Page number 1');
  });

  test('fetches again, unless the stored page is young enough', async () => {
    const requests = () => site.log.filter(({ path }) => path === pathOf(2)).length;
    await call('POST', '/scrape', { url: page(2), ...FAST });
    expect(requests()).toBe(1);
    const young = await call('POST', '/scrape', { url: page(2), ...FAST, max_age: 3_600 });
    expect(young.body.result.html).toBe(site.bodyOf(2));
    expect(requests()).toBe(1);
    await call('POST', '/scrape', { url: page(2), ...FAST });
    expect(requests()).toBe(2);
  });

  test('of many at once each is answered for itself, also where one of them is no URL', async () => {
    const shared = { ...FAST, headers: { 'x-test': 'many' }, formats: ['html'] };
    const asked = [
      ...Array.from({ length: 20 }, (_, index) => page(index)),
      page(5),
      'ftp://x.example/',
      page(6),
    ];
    const before = site.log.length;
    const answers = await Promise.all(asked.map((url) => call('POST', '/scrape', { url, ...shared })));
    for (const [index, { status, body }] of answers.entries()) {
      const url = asked[index]!;
      if (url.startsWith('ftp')) expect([status, body.code]).toEqual([400, 'bad-url']);
      else
        expect([status, body.result.url, body.result.html]).toEqual([
          200,
          url,
          site.bodyOf(asked.indexOf(url)),
        ]);
    }
    const fetched = new Set(site.log.slice(before).map(({ path }) => path));
    expect(fetched).toEqual(new Set(asked.slice(0, 20).map((url) => new URL(url).pathname)));
  });

  test('says what failed, and what that means', async () => {
    const { status, body } = await call('POST', '/scrape', { url: `${site.url}/missing`, ...FAST });
    expect(status).toBe(200);
    expect(body).toMatchObject({
      status: 'failed',
      error: { code: 'not-found', retryable: false, http_status: 404, type: '/docs#not-found' },
    });
  });

  test('is accepted at once and asked for later', async () => {
    const accepted = await call('POST', '/scrape/async', { url: page(4), ...FAST, formats: ['markdown'] });
    expect(accepted.status).toBe(202);
    expect(accepted.headers.get('location')).toBe(accepted.body.status_url);
    const { job_id: id } = accepted.body;
    const ended = await call('GET', `/jobs/${id}?wait=30`);
    expect(ended.body).toMatchObject({ status: 'completed', result: { url: page(4) } });
    expect(ended.body.result.markdown).toContain('Page number 4');
    const again = await call('GET', `/jobs/${id}`, undefined, {
      'if-none-match': ended.headers.get('etag')!,
    });
    expect(again.status).toBe(304);
    expect((await call('GET', '/jobs/scrape_1_999999_1')).status).toBe(404);
  });

  test('answers 202 when the time to wait is over', async () => {
    // The second request to a host at this rate comes much later, on the slowest machine too.
    const slow = (n: number) => page(n).replace('127.0.0.1', '127.0.0.11');
    const asked = { ...FAST, rate: 0.04 };
    await call('POST', '/scrape', { url: slow(1), ...asked });
    const { status, body, headers } = await call('POST', '/scrape', { url: slow(2), ...asked, wait: 0 });
    expect(status).toBe(202);
    expect(headers.get('retry-after')).toBe('1');
    expect(body.status_url).toBe(`/api/v1/jobs/${body.job_id}`);
  });

  test.each([
    ['stop', 'stopped'],
    ['cancel', 'cancelled'],
  ])('is fetched although the job of the scrapes before got a %s', async (action, status) => {
    // Options of their own give these scrapes a job of their own; a host of its own keeps it at work.
    const asked = { ...FAST, rate: action === 'stop' ? 0.02 : 0.03 };
    const slow = (n: number) => page(n).replace('127.0.0.1', action === 'stop' ? '127.0.0.2' : '127.0.0.6');
    // The run is at work after the first one; the second one waits.
    await call('POST', '/scrape', { url: slow(1), ...asked });
    const first = await call('POST', '/scrape/async', { url: slow(2), ...asked });
    const jobId = first.body.job_id.replace(/^scrape_(\d+)_.*$/, 'job_$1');
    expect((await call('POST', `/jobs/${jobId}/${action}`)).status).toBe(200);
    expect((await call('GET', `/jobs/${jobId}?wait=30`)).body.status).toBe(status);
    const url = page(16).replace('127.0.0.1', action === 'stop' ? '127.0.0.3' : '127.0.0.4');
    const next = await call('POST', '/scrape', { url, ...asked, wait: 10 });
    expect(next.body).toMatchObject({ status: 'completed', result: { html: site.bodyOf(16) } });
    const before = await call('GET', `/jobs/${jobId}`);
    expect(before.body).toMatchObject({ status, counts: { total: 2 } });
  });
});

describe('batch', () => {
  test('has a row for every URL, and counts that add up', async () => {
    const urls = [page(6), { url: page(7), meta: { id: 7 } }, page(6), `${site.url}/gone`, 'nonsense', 42];
    const { status, body } = await call('POST', '/batch', { urls, use_js_render: false, ...FAST });
    expect(status).toBe(202);
    expect(body).toMatchObject({ accepted: 3, duplicates: 1, rejected_count: 2 });
    expect(body.rejected.map(({ index }: { index: number }) => index)).toEqual([4, 5]);
    const ended = await call('GET', `/jobs/${body.batch_id}?wait=60`);
    expect(ended.body).toMatchObject({
      status: 'completed',
      result: { total: 3, succeeded: 2, failed: 1, skipped: 0, pending: 0, rejected: 2, duplicates: 1 },
    });
    const results = await call('GET', `/jobs/${body.batch_id}/results`);
    expect(results.body.next_cursor).toBeNull();
    expect(results.body.results.map((row: { status: string }) => row.status)).toEqual([
      'succeeded',
      'succeeded',
      'failed',
    ]);
    expect(results.body.results[1]).toMatchObject({ url: page(7), meta: { id: 7 }, http_status: 200 });
    const failed = await call('GET', `/jobs/${body.batch_id}/results?status=failed&code=not-found`);
    expect(failed.body.results).toMatchObject([{ code: 'not-found', retryable: false }]);
    const urlsOf = async (path: string, name: string) =>
      (await call('GET', `/jobs/${body.batch_id}/${path}`)).body[name].map((row: { url: string }) => row.url);
    expect(await urlsOf('attempts?status=failed&code=not-found', 'attempts')).toEqual([`${site.url}/gone`]);
    expect(await urlsOf(`attempts?q=${pathOf(7)}&host=${new URL(site.url).host}`, 'attempts')).toEqual([
      page(7),
    ]);
    expect(await urlsOf('attempts?host=other.example', 'attempts')).toEqual([]);
    expect(await urlsOf('records?q=x', 'records')).toEqual([]);
    const hostsOf = async (filter: string) =>
      (await call('GET', `/jobs/${body.batch_id}/hosts?${filter}`)).body.hosts.length;
    expect([await hostsOf('q=127'), await hostsOf('q=128'), await hostsOf('status=banned')]).toEqual([
      1, 0, 0,
    ]);
    const quality = await call('GET', `/jobs/${body.batch_id}/quality`, undefined, { accept: 'text/csv' });
    expect([quality.status, quality.text]).toEqual([200, '']);
    const listed = async (filter: string) =>
      (await call('GET', `/jobs?${filter}&q=${ended.body.name}`)).body.jobs.map(
        (job: { name: string }) => job.name,
      );
    expect([await listed('status=completed'), await listed('status=failed')]).toEqual([
      [ended.body.name],
      [],
    ]);
    const csv = await call('GET', `/jobs/${body.batch_id}/results`, undefined, { accept: 'text/csv' });
    expect(csv.text.split('\r\n')).toHaveLength(5);
    const html = await call('GET', `/jobs/${body.batch_id}/results?formats=html&limit=1`);
    expect(html.body.results[0].html).toBe(site.bodyOf(6));
    const next = await call('GET', `/jobs/${body.batch_id}/results?limit=1&cursor=${html.body.next_cursor}`);
    expect(next.body.results[0].url).toBe(page(7));
    const attempts = await call('GET', `/jobs/${body.batch_id}/attempts`, undefined, {
      accept: 'application/x-ndjson',
    });
    expect(attempts.text.trim().split('\n').length).toBeGreaterThanOrEqual(3);
    const retried = await call('POST', `/jobs/${body.batch_id}/retry`, { code: 'not-found' });
    expect(retried.body).toEqual({ retried: 1 });
    expect((await call('GET', `/jobs/${body.batch_id}?wait=60`)).body.status).toBe('completed');
  });

  test('is read as a stream of lines, and added to', async () => {
    const lines = [
      JSON.stringify(FAST),
      page(8),
      JSON.stringify({ url: page(9) }),
      JSON.stringify(page(10)),
      '{',
    ];
    const { status, body } = await call('POST', '/batch', lines.join('\n'), {
      'content-type': 'application/x-ndjson',
    });
    expect(status).toBe(202);
    expect(body).toMatchObject({ accepted: 3, rejected_count: 1 });
    const more = await call('POST', '/batch', { urls: [page(11), page(8)], append_to: body.batch_id });
    expect(more.body).toMatchObject({ batch_id: body.batch_id, accepted: 1, duplicates: 1 });
    const ended = await call('GET', `/jobs/${body.batch_id}?wait=60`);
    expect(ended.body.counts).toMatchObject({ total: 4, succeeded: 4 });
  });

  test('may be compressed with gzip, which is checked', async () => {
    const send = async (type: string, encoding: string, body: Buffer<ArrayBuffer>) => {
      const headers = { 'content-type': type, 'content-encoding': encoding };
      const answer = await fetch(`${server.url}/api/v1/batch`, { method: 'POST', headers, body });
      return { status: answer.status, body: await answer.json() };
    };
    const [lines, json] = ['application/x-ndjson', 'application/json'];
    const list = gzipSync(`${JSON.stringify(FAST)}\n${page(8)}\n${page(9)}\n`);
    expect(await send(lines, 'gzip', list)).toMatchObject({ status: 202, body: { accepted: 2 } });
    const whole = gzipSync(JSON.stringify({ urls: [page(8)], ...FAST }));
    expect(await send(json, 'gzip', whole)).toMatchObject({ status: 202, body: { accepted: 1 } });
    const broken = { status: 400, body: { code: 'bad-request', detail: 'the body is not gzip' } };
    expect(await send(lines, 'gzip', Buffer.from(page(8)))).toMatchObject(broken);
    expect(await send(json, 'gzip', Buffer.from('{}'))).toMatchObject(broken);
    expect(await send(json, 'br', whole)).toMatchObject({ status: 415, body: { code: 'wrong-media-type' } });
    // Much of nothing in little.
    const bomb = gzipSync(Buffer.alloc(64 * 1024 * 1024, '\n'));
    expect(await send(lines, 'gzip', bomb)).toMatchObject({ status: 413, body: { code: 'too-large-body' } });
  });

  /** Sends the beginning of a list that goes on. */
  function beginBatch(lines: readonly string[]) {
    const headers = { 'content-type': 'application/x-ndjson' };
    const sent = request(`${server.url}/api/v1/batch`, { method: 'POST', headers });
    sent.on('error', () => {});
    sent.write(`${lines.join('\n')}\n`);
    return sent;
  }

  const newestJob = async () => (await call('GET', '/jobs?limit=1')).body.jobs[0];

  test('runs until its list ends, also when all that came is finished, and ends when the client is gone', async () => {
    const { job_id: before } = await newestJob();
    // As many lines as are written down at once.
    const sent = beginBatch([JSON.stringify(FAST), ...Array<string>(2_000).fill(page(19))]);
    await expect.poll(newestJob, { timeout: 30_000 }).not.toMatchObject({ job_id: before });
    await expect.poll(newestJob, { timeout: 30_000 }).toMatchObject({ counts: { total: 1, succeeded: 1 } });
    const { job_id: id, status } = await newestJob();
    expect(status).toBe('running');
    sent.destroy();
    const ended = await call('GET', `/jobs/${id}?wait=30`);
    expect(ended.body).toMatchObject({ status: 'completed', result: { total: 1, succeeded: 1 } });
    expect(ended.body.ended_at).not.toBeNull();
  });

  test('has ended with what was written down, when its server was killed meanwhile', async () => {
    const folder = temporaryFolder();
    const dir = join(folder.path, 'served');
    const { store, close } = await openFolder({ dir, sync: 'normal' }, { create: true, toWork: true });
    const name = `batch-${'0a'.repeat(12)}`;
    const { id } = await store.jobs.create({
      ...codeOf(name, { sources: [], keepOpen: true }),
      name,
      now: 1,
    });
    expect(await store.jobs.finish(id, 2)).toBe('waiting');
    // One that will be sent again is not ended before: that would tell its callback twice.
    const again = await store.jobs.create({
      ...codeOf(`${name}-again`, { sources: [], keepOpen: true }),
      ...{ name: `batch-${'0b'.repeat(12)}`, now: Date.now(), requestId: 'r' },
    });
    await store.jobs.finish(again.id, 2);
    await close();
    const next = await openApiServer({ dir });
    try {
      const answer = await fetch(`${next.url}/api/v1/jobs/job_${id}?wait=30`);
      expect(await answer.json()).toMatchObject({ status: 'completed', ended_at: expect.any(String) });
      const open = await fetch(`${next.url}/api/v1/jobs/job_${again.id}`);
      expect(await open.json()).toMatchObject({ status: 'running', ended_at: null });
    } finally {
      await next.close();
      folder.remove();
    }
  });

  test('with nothing of use, or anything wrong where that fails, accepts nothing and leaves nothing', async () => {
    // One that the server begins to work on in that moment stays, cancelled and empty.
    const newest = async () => {
      const { jobs } = (await call('GET', '/jobs?limit=5')).body as {
        jobs: { status: string; counts: { total: number } }[];
      };
      return jobs.find(({ status, counts }) => status !== 'cancelled' || counts.total > 0);
    };
    const jobs = await newest();
    expect(jobs).toBeDefined();
    expect(await call('POST', '/batch', { urls: ['nonsense'] })).toMatchObject({
      status: 422,
      body: { code: 'nothing-accepted', rejected_count: 1 },
    });
    const urls = [page(12), 'nonsense'];
    const before = site.log.length;
    expect((await call('POST', '/batch', { urls, on_invalid: 'fail', ...FAST })).status).toBe(422);
    expect(site.log.slice(before).some(({ path }) => path === pathOf(12))).toBe(false);
    const hook = { callback_url: 'https://me:secret@a.example/', urls: [page(12)] };
    expect(await call('POST', '/batch', hook)).toMatchObject({ status: 400 });
    expect(await newest()).toEqual(jobs);
  });

  test('with a callback that is wrong makes no job, which could have begun before it goes again', async () => {
    const numberOf = async () => {
      const { body } = await call('POST', '/batch', { urls: [page(12)], ...FAST });
      return Number(body.batch_id.slice('job_'.length));
    };
    const before = await numberOf();
    const hook = { callback_url: 'https://me:secret@a.example/', urls: [page(12)] };
    expect(await call('POST', '/batch', hook)).toMatchObject({ status: 400 });
    expect(await numberOf()).toBe(before + 1);
  });
});

describe('Idempotency-Key', () => {
  const key = (text: string) => ({ 'idempotency-key': `"${text}"` });
  const lines = (...urls: string[]) => urls.map((url) => `${url}\n`).join('');

  test('a request that was answered gets the same answer, and does nothing more', async () => {
    const given = { urls: [page(14), page(15)], ...FAST };
    const first = await call('POST', '/batch', given, key('order-7'));
    const again = await call('POST', '/batch', given, key('order-7'));
    expect(first.body).toMatchObject({ accepted: 2, duplicates: 0 });
    expect([again.status, again.text]).toEqual([202, first.text]);
    expect(again.headers.get('location')).toBe(first.headers.get('location'));
    expect(again.headers.get('idempotent-replayed')).toBe('true');
    const other = await call('POST', '/batch', { ...given, timeout: 7 }, key('order-7'));
    expect([other.status, other.body.code]).toEqual([422, 'key-reused']);
    const ended = await call('GET', `/jobs/${first.body.batch_id}?wait=60`);
    expect(ended.body.counts).toMatchObject({ total: 2, succeeded: 2 });
  });

  test('holds for every POST', async () => {
    const job = { name: 'once', sources: [page(13)] };
    const [one, two] = [
      await call('POST', '/jobs', job, key('j')),
      await call('POST', '/jobs', job, key('j')),
    ];
    expect(two.text).toBe(one.text);
    expect((await call('POST', '/jobs?dry_run', job, key('j'))).status).toBe(422);
    const asked = { url: page(3), ...FAST };
    const scraped = await call('POST', '/scrape', asked, key('s'));
    const requests = () => site.log.filter(({ path }) => path === pathOf(3)).length;
    const before = requests();
    expect((await call('POST', '/scrape', asked, key('s'))).text).toBe(scraped.text);
    expect(requests()).toBe(before);
    const wrong = await call('POST', '/scrape', { url: 'nonsense' }, key('w'));
    expect((await call('POST', '/scrape', { url: 'nonsense' }, key('w'))).text).toBe(wrong.text);
    expect((await call('POST', `/jobs/${one.body.job_id}/stop`, undefined, key('t'))).status).toBe(200);
  });

  test('a list that is streamed is compared at its end, and one that is being read is in flight', async () => {
    const type = { 'content-type': 'application/x-ndjson' };
    const newest = async () => (await call('GET', '/jobs?limit=1')).body.jobs[0].job_id;
    const before = await newest();
    const asked = request(`${server.url}/api/v1/batch`, {
      method: 'POST',
      headers: { ...type, ...key('n') },
    });
    const answered = new Promise<string>((resolve, reject) => {
      asked.on('error', reject);
      asked.on('response', async (response) => resolve((await response.toArray()).join('')));
    });
    asked.write(lines(JSON.stringify(FAST), page(8)));
    // Its batch is made while the list is read.
    await vi.waitFor(async () => expect(await newest()).not.toBe(before), { timeout: 60_000 });
    const meanwhile = async () =>
      (await call('POST', '/batch', lines(page(9)), { ...type, ...key('n') })).body.code;
    expect(await meanwhile()).toBe('in-flight');
    asked.end(lines(page(9)));
    const first = await answered;
    const whole = lines(JSON.stringify(FAST), page(8), page(9));
    const again = await call('POST', '/batch', whole, { ...type, ...key('n') });
    expect([again.status, again.text]).toEqual([202, first]);
    expect(await meanwhile()).toBe('key-reused');
  });
});

test('a job is deleted with its pages, unless it runs', async () => {
  const asked = { ...FAST, rate: 0.01 };
  const slow = page(3).replace('127.0.0.1', '127.0.0.9');
  const running = await call('POST', '/batch', { urls: [slow, `${slow}?2`], ...asked });
  const { batch_id: busy } = running.body;
  expect(await call('DELETE', `/jobs/${busy}`)).toMatchObject({ status: 409, body: { code: 'conflict' } });
  const [one, two] = await Promise.all(
    [page(1), page(2)].map(
      async (url) => (await call('POST', '/batch', { urls: [url], ...FAST })).body.batch_id,
    ),
  );
  const stored = async () => {
    const folders = await readdir(join(server.dir, 'warc'));
    const names = await Promise.all(
      [one, two].map(async (id) => (await call('GET', `/jobs/${id}`)).body.name),
    );
    return names.map((name) => name !== undefined && folders.includes(`${name}-1`));
  };
  for (const id of [one, two]) await call('GET', `/jobs/${id}?wait=60`);
  expect(await stored()).toEqual([true, true]);
  const folder = (await call('GET', `/jobs/${one}`)).body.name;
  await vi.waitFor(async () => expect((await call('DELETE', `/jobs/${one}`)).status).toBe(204), {
    timeout: 60_000,
  });
  expect((await call('GET', `/jobs/${one}`)).status).toBe(404);
  expect((await call('DELETE', `/jobs/${one}`)).status).toBe(404);
  await vi.waitFor(
    async () => {
      const left = await readdir(join(server.dir, 'warc', `${folder}-1`), { recursive: true }).catch(
        () => [],
      );
      expect(left.filter((name) => name.endsWith('.gz'))).toEqual([]);
    },
    { timeout: 60_000 },
  );
  expect(await stored()).toEqual([false, true]);
  await call('POST', `/jobs/${busy}/cancel`);
});

const withPool = (from: object) => ({ sources: ['https://a.example/'], proxies: { pools: { a: { from } } } });

describe('jobs', () => {
  test('run as they are described, and show what they would be', async () => {
    const job = { name: 'crawl', sources: [page(13)], routes: [{ name: 'page', select: { title: 'h1' } }] };
    const given = { ...job, allowPrivate: true, politeness: FAST };
    const dry = await call('POST', '/jobs?dry_run', given);
    expect(dry.body.job).toMatchObject({ name: 'crawl', retry: { attempts: 4 } });
    const { status, body } = await call('POST', '/jobs', given);
    expect(status).toBe(202);
    const ended = await call('GET', `/jobs/${body.job_id}?wait=60`);
    expect(ended.body).toMatchObject({ status: 'completed', result: { succeeded: 1, records: 1 } });
    const records = await call('GET', `/jobs/${body.job_id}/records`);
    expect(records.body.records).toMatchObject([{ data: { title: 'Page 13' } }]);
    expect((await call('GET', `/jobs/${body.job_id}/hosts`)).body.hosts).toHaveLength(1);
    expect((await call('GET', `/jobs/${body.job_id}/quality`)).status).toBe(200);
    const list = await call('GET', '/jobs?limit=1');
    expect(list.body.jobs).toMatchObject([{ job_id: body.job_id }]);
    expect((await call('GET', `/jobs?limit=1&cursor=${list.body.next_cursor}`)).body.jobs).toHaveLength(1);
    const patched = await call('PATCH', `/jobs/${body.job_id}`, { rate: 2, priority: 3 });
    expect(patched.body.priority).toBe(3);
    expect((await call('POST', `/jobs/${body.job_id}/resume`)).status).toBe(409);
  });

  test('feel another pace at once, where a host waits for nothing else', async () => {
    const asked: string[] = [];
    const slow = createServer(({ url }, response) => {
      asked.push(url!);
      response.end('<p>page</p>');
    });
    await new Promise<void>((resolve) => slow.listen(0, '127.0.0.1', resolve));
    const origin = `http://127.0.0.1:${(slow.address() as AddressInfo).port}`;
    const { body: job } = await call('POST', '/jobs', {
      ...{ name: 'slow', sources: [`${origin}/1`, `${origin}/2`], allowPrivate: true },
      politeness: { rate: 0.001, robots: false },
    });
    await expect.poll(() => asked.length, { timeout: 60_000 }).toBe(1);
    await call('PATCH', `/jobs/${job.job_id}`, { rate: 100 });
    const { body: ended } = await call('GET', `/jobs/${job.job_id}?wait=60`);
    slow.close();
    slow.closeAllConnections();
    expect(ended).toMatchObject({ status: 'completed', result: { succeeded: 2 } });
    expect(asked.toSorted()).toEqual(['/1', '/2']);
  });

  test('have numbers over time, and failures by host and code, also after they have ended', async () => {
    const urls = [page(1), page(2), `${site.url}missing`];
    const { body: batch } = await call('POST', '/batch', { urls, ...FAST });
    const ended = await call('GET', `/jobs/${batch.batch_id}?wait=60`);
    expect(ended.body.status).toBe('completed');
    for (const step of [10, 60, 3_600]) {
      const { body } = await call('GET', `/jobs/${batch.batch_id}/series?step=${step}`);
      expect(body.step_seconds).toBe(step);
      const sum = (name: string) =>
        body.points.reduce((all: number, point: Record<string, number>) => all + point[name]!, 0);
      expect(['pages', 'succeeded', 'failed', 'skipped', 'requests', 'cost_usd'].map(sum)).toEqual([
        ...[3, 2, 1, 0, 3, 0],
      ]);
      expect(sum('bytes')).toBeGreaterThan(0);
      const [point] = body.points.filter(({ failed }: { failed: number }) => failed > 0);
      expect(point).toMatchObject({ failures: { 'not-found': 1 } });
      expect(point.latency_ms.p99).toBeGreaterThanOrEqual(point.latency_ms.p50);
      expect(Date.parse(point.at) % (step * 1_000)).toBe(0);
    }
    const { host } = new URL(site.url);
    const cells = { cells: [{ host, code: 'not-found', count: 1 }] };
    const failures = async () => (await call('GET', `/jobs/${batch.batch_id}/failures`)).body;
    // Rows of hosts are written when the run of the job ends, a moment after its last page.
    await vi.waitFor(async () => expect(await failures()).toMatchObject(cells), { timeout: 60_000 });
    const path = `/jobs/${batch.batch_id}/series?step=3600&host=${host}`;
    expect((await call('GET', path)).body.points).toMatchObject([{ pages: 3, requests: 3 }]);
    const hosts = (await call('GET', `/jobs/${batch.batch_id}/hosts`)).body.hosts;
    expect(hosts).toMatchObject([{ host, latency_ms: { p50: expect.any(Number), p99: expect.any(Number) } }]);
    const later = new Date(Date.now() + 86_400_000).toISOString();
    expect((await call('GET', `${path}&from=${later}&to=${later}`)).body.points).toEqual([]);
    for (const wrong of ['step=7', 'from=yesterday', 'width=3'])
      expect((await call('GET', `/jobs/${batch.batch_id}/series?${wrong}`)).status).toBe(400);
  });

  test('tell what they do, and go on after the last event that was read', async () => {
    const { body } = await call('POST', '/batch', { urls: [page(1), page(2), page(3)], ...FAST });
    const events = async (headers: Record<string, string> = {}) => {
      const answer = await call('GET', `/jobs/${body.batch_id}/events`, undefined, headers);
      expect(answer.headers.get('content-type')).toBe('text/event-stream');
      const blocks = answer.text.split('\n\n').filter((block) => block.includes('event: '));
      return blocks.map((block) => ({
        id: /^id: (\d+)$/m.exec(block)?.[1] ?? null,
        name: /^event: (.*)$/m.exec(block)![1],
        data: JSON.parse(/^data: (.*)$/m.exec(block)![1]!),
      }));
    };
    // Opened while it runs, and over when the job is.
    const all = await events();
    expect(all.map(({ name }) => name)).toEqual(['attempt', 'attempt', 'attempt', 'end']);
    expect(new Set(all.slice(0, 3).map(({ data }) => data.url))).toEqual(
      new Set([page(1), page(2), page(3)]),
    );
    expect(all[3]!.data).toMatchObject({ status: 'completed', counts: { succeeded: 3 } });
    expect(await events({ 'last-event-id': all[1]!.id! })).toEqual(all.slice(2));
    const wrong = await call('GET', `/jobs/${body.batch_id}/events`, undefined, { 'last-event-id': 'x' });
    expect([wrong.status, wrong.body.code]).toEqual([400, 'bad-cursor']);
  });

  test('are exported whole, as lines, CSV and Parquet', async () => {
    const urls = [page(1), page(2), page(3)];
    const { body } = await call('POST', '/batch', { urls, ...FAST, select: { url: 'title' } });
    await call('GET', `/jobs/${body.batch_id}?wait=30`);
    for (const what of ['records', 'results', 'attempts']) {
      const get = (format: string) =>
        fetch(`${server.url}/api/v1/jobs/${body.batch_id}/export?what=${what}&format=${format}`);
      const lines = (await (await get('jsonl')).text()).trim().split('\n');
      const rows = lines.map((line) => JSON.parse(line));
      // A page may take more than one attempt.
      expect(rows.length).toBeGreaterThanOrEqual(3);
      const csv = await (await get('csv')).text();
      expect(csv.split('\r\n')[0]).toBe(Object.keys(rows[0]).join(','));
      const parquet = await get('parquet');
      expect(parquet.headers.get('content-type')).toBe('application/vnd.apache.parquet');
      const read = await parquetReadObjects({ file: await parquet.arrayBuffer() });
      expect(read).toHaveLength(rows.length);
      expect(new Set(read.map(({ url }) => url))).toEqual(new Set(urls));
      // A field of a record may have the name of a column.
      if (what === 'records')
        expect(read.map(({ data }) => data.url).sort()).toEqual(rows.map(({ url }) => url).sort());
      if (what === 'results') expect(read[0]).toMatchObject({ status: 'succeeded', http_status: 200n });
    }
  });

  test('are cancelled for good, also while their run has not noticed it', async () => {
    const waiting = (n: number) => page(n).replace('127.0.0.1', '127.0.0.12');
    const { body } = await call('POST', '/batch', { urls: [waiting(1), waiting(2)], ...FAST, rate: 0.02 });
    const path = `/jobs/${body.batch_id}`;
    expect((await call('POST', `${path}/cancel`)).status).toBe(200);
    for (const [action, sent] of [['resume'], ['retry', {}]] as const) {
      const refused = await call('POST', `${path}/${action}`, sent);
      expect([refused.status, refused.body.code], action).toEqual([409, 'conflict']);
    }
    expect((await call('POST', `${path}/stop`)).status).toBe(200);
    const more = await call('POST', '/batch', { urls: [waiting(3)], append_to: body.batch_id });
    expect([more.status, more.body.code]).toEqual([409, 'conflict']);
    expect((await call('GET', `${path}?wait=30`)).body.status).toBe('cancelled');
  });

  test('have a bounded number of streams of events, which are free again when the client is gone', async () => {
    // A page that does not come keeps the run and its streams open.
    const silent = createServer(() => {});
    await new Promise<void>((resolve) => silent.listen(0, '127.0.0.5', resolve));
    const { port } = silent.address() as AddressInfo;
    const url = `http://127.0.0.5:${port}/`;
    const id = (await call('POST', '/scrape/async', { url, ...FAST })).body.job_id;
    const opened = new AbortController();
    const open = () => fetch(`${server.url}/api/v1/jobs/${id}/events`, { signal: opened.signal });
    const answers = await Promise.all(Array.from({ length: 203 }, open));
    const statuses = answers.map(({ status }) => status);
    expect(statuses.filter((status) => status === 503)).toHaveLength(3);
    opened.abort();
    await expect
      .poll(async () => {
        const answer = await fetch(`${server.url}/api/v1/jobs/${id}/events`);
        await answer.body?.cancel();
        return answer.status;
      })
      .toBe(200);
    expect((await call('POST', `/jobs/${id}/cancel`)).status).toBe(200);
    silent.closeAllConnections();
    silent.close();
  });

  test.each([
    ['SQL', { sources: [{ query: 'SELECT 1' }] }, /no SQL/],
    ['a WebSocket', { sources: [{ websocket: 'wss://a.example/' }] }, /no WebSockets/],
    ['local files', { sources: ['/etc/passwd'] }, /no files and no S3/],
    ['S3', { sources: ['s3://bucket/list.csv'] }, /no files and no S3/],
    ['secrets of files', withPool({ file: '/etc/passwd' }), /secret|file/],
    ['secrets of the environment', withPool({ env: 'AWS_SECRET_ACCESS_KEY' }), /secret|env/],
    ['mounted secrets', withPool({ secret: 'seine-secret-home' }), /secret/],
    [
      'mounted secrets for lists of proxies',
      withPool({ list: ['http://192.0.2.1:8080'], credentials: { secret: 'seine-secret-home' } }),
      /secret/,
    ],
    [
      'mounted secrets in headers',
      {
        sources: ['https://a.example/'],
        identity: { secretHeaders: { 'https://a.example': { authorization: { secret: 'seine-secret-a' } } } },
      },
      /secret/,
    ],
  ])('have no %s', async (_, job, detail) => {
    const { status, body } = await call('POST', '/jobs', job);
    expect([status, body.code]).toEqual([403, 'not-allowed']);
    expect(body.detail).toMatch(detail);
  });
});

describe('proxies of the server', () => {
  const proxies: ProxyServer[] = [];
  let proxied: ApiServer;
  beforeAll(async () => {
    for (const from of ['127.0.0.31', '127.0.0.32']) proxies.push(await startProxy({ from }));
    const [german, french] = proxies.map((proxy) => proxy.url());
    const list = join(server.dir, 'home.txt');
    await writeFile(list, `${german} DE\n${french} FR\n`);
    proxied = await openApiServer({ environment: { SEINE_PROXY_POOLS: `home=residential:${list}` } });
  });
  afterAll(async () => {
    await proxied.close();
    for (const proxy of proxies) await proxy.close();
  });

  const post = async (path: string, asked: object) => {
    const answer = await fetch(`${proxied.url}/api/v1${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(asked),
    });
    return { status: answer.status, text: await answer.text() };
  };

  test('are used by name and country, and nobody is told where their list is', async () => {
    const asked = { url: page(15), ...FAST, proxy_pool: 'home', country: 'FR' };
    const { text } = await post('/scrape', asked);
    expect(JSON.parse(text)).toMatchObject({ status: 'completed', result: { html: site.bodyOf(15) } });
    expect(proxies.map(({ asked, whole }) => asked.length + whole.length > 0)).toEqual([false, true]);
    const { job_id: id } = JSON.parse(text);
    const stored = await (await fetch(`${proxied.url}/api/v1/jobs/${id.replace(/_\d+_\d+$/, '')}`)).text();
    expect(text + stored).not.toContain('home.txt');
  });

  test('are used by jobs too', async () => {
    const job = { sources: [page(16)], allowPrivate: true, politeness: FAST };
    const pools = { home: { from: { shared: 'home' }, country: 'DE' } };
    const { status, text } = await post('/jobs', { ...job, proxies: { pools, default: 'home' } });
    expect(status).toBe(202);
    const url = `${proxied.url}/api/v1/jobs/${JSON.parse(text).job_id}?wait=30`;
    expect(await (await fetch(url)).json()).toMatchObject({ status: 'completed' });
    expect(proxies[0]!.asked.length + proxies[0]!.whole.length).toBeGreaterThan(0);
    const told = await (await fetch(`${proxied.url}/api/v1/proxies`)).text();
    expect(JSON.parse(told).pools).toEqual([{ name: 'home', type: 'residential' }]);
    expect(told).not.toContain('home.txt');
  });

  test.each([
    [{ proxy_pool: 'hone' }, "proxy_pool: the server has no pool 'hone'; did you mean home?"],
    [{ country: 'FR' }, 'country: needs proxy_pool'],
  ])('that are not there are an error: %j', async (options, detail) => {
    const { status, text } = await post('/batch', { urls: [page(1)], ...options });
    expect([status, JSON.parse(text)]).toMatchObject([400, { code: 'bad-option', detail }]);
  });
});

test('hosts and workers are those of all jobs', async () => {
  const { body } = await call('POST', '/scrape', { url: page(3), ...FAST });
  expect(body.status).toBe('completed');
  const { hosts, next_cursor: next } = (await call('GET', '/hosts?limit=1')).body;
  const rest = (await call('GET', `/hosts?cursor=${next}`)).body.hosts;
  const [host] = [...hosts, ...rest].filter((found) => found.host === new URL(site.url).host);
  expect(host).toMatchObject({ is_banned: false, failures_in_row: 0 });
  expect(host.requests).toBeGreaterThan(0);
  expect(rest.map((found: { host: string }) => found.host)).not.toContain(hosts[0].host);
  // The run of scrapes stays for some seconds after the last one.
  const { workers } = (await call('GET', '/workers')).body;
  expect(workers.length).toBeGreaterThan(0);
  expect(workers[0].worker).not.toBe('');
});

describe('stored bytes', () => {
  test('are what was fetched, and never an active page of this server', async () => {
    await call('POST', '/scrape', { url: page(1), ...FAST });
    const path = `/pages?url=${encodeURIComponent(page(1))}`;
    const stored = await call('GET', path);
    expect([stored.status, stored.text]).toEqual([200, site.bodyOf(1)]);
    expect(stored.headers.get('content-disposition')).toBe('attachment; filename="page"');
    const shown = await call('GET', `${path}&inline`);
    expect(shown.headers.get('content-disposition')).toBeNull();
    for (const { headers } of [stored, shown]) {
      expect(headers.get('content-security-policy')).toMatch(/^sandbox; default-src 'none';/);
      expect(headers.get('x-content-type-options')).toBe('nosniff');
    }
    expect((await call('GET', `/pages?url=${encodeURIComponent(`${site.url}/never`)}`)).status).toBe(404);
  });

  test('of media are given to whoever names their URL and their hash', async () => {
    const job = {
      name: 'media',
      sources: [page(2)],
      routes: [{ name: 'all', kind: 'media' }],
      media: { types: ['text/html'] },
    };
    const { body } = await call('POST', '/jobs', { ...job, allowPrivate: true, politeness: FAST });
    expect((await call('GET', `/jobs/${body.job_id}?wait=60`)).body.status).toBe('completed');
    const { sha256 } = (await call('GET', `/jobs/${body.job_id}/results`)).body.results[0];
    const query = `?job=${body.job_id}&url=${encodeURIComponent(page(2))}`;
    const stored = await call('GET', `/media/${sha256}${query}`);
    expect([stored.status, stored.text]).toEqual([200, site.bodyOf(2)]);
    expect(stored.headers.get('content-security-policy')).toMatch(/^sandbox;/);
    expect((await call('GET', `/media/${'0'.repeat(64)}${query}`)).status).toBe(404);
    expect((await call('GET', `/shots/media/00/${sha256}.html${query}`)).status).toBe(404);
  });
});

describe('bad requests', () => {
  test.each<[string, unknown, number, string]>([
    ['what is not JSON', '{', 400, 'bad-json'],
    ['ten megabytes of brackets', '['.repeat(10_000_000), 400, 'bad-json'],
    ['a list', [], 400, 'bad-option'],
    ['nothing at all', '', 400, 'bad-option'],
    ['a wrong type', { url: 7 }, 400, 'bad-option'],
    ['another scheme', { url: 'ftp://a.example/' }, 400, 'bad-url'],
    ['a bad selector', { url: 'https://a.example/', select: { x: 'a[' } }, 400, 'bad-option'],
    ['a body that is too large', `"${'x'.repeat(34 * 1024 * 1024)}"`, 413, 'too-large-body'],
  ])('%s', async (_, body, status, code) => {
    const answer = await call('POST', '/scrape', body).catch(() => null);
    // Where the server has closed the connection, the client may not have read the answer.
    if (answer === null) expect(status).toBe(413);
    else expect([answer.status, answer.body.code]).toEqual([status, code]);
    expect((await fetch(`${server.url}/healthz`)).status).toBe(200);
  });

  test('an unknown field is named, with the one that may be meant', async () => {
    const { body } = await call('POST', '/scrape', { url: page(1), use_js_rendr: true });
    expect(body.errors).toEqual([
      { field: 'use_js_rendr', message: 'unknown field; did you mean use_js_render?' },
    ]);
    const wrong = await call('POST', '/scrape', 'url=1', { 'content-type': 'text/plain' });
    expect([wrong.status, wrong.body.code]).toEqual([415, 'wrong-media-type']);
    expect((await call('GET', '/jobs/nothing')).status).toBe(404);
    expect((await call('GET', '/jobs?cursor=x')).body.code).toBe('bad-cursor');
    expect((await call('PUT', '/jobs')).status).toBe(405);
  });

  test('leave no job behind', async () => {
    const jobs = async () => (await call('GET', '/jobs?limit=100')).body.jobs.length;
    const before = await jobs();
    const refused = await call('POST', '/scrape', { url: 'ftp://a.example/', timeout: 17 });
    expect([refused.status, await jobs()]).toEqual([400, before]);
  });

  test('leave nothing in the log of failures', () => {
    expect(server.log.filter((line) => line.includes('a request failed'))).toEqual([]);
  });
});
