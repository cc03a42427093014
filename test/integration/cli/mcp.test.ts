import { fileURLToPath } from 'node:url';
import { Client, InMemoryTransport, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { connect } from '../../../src/client/client.ts';
import { explanationSchema } from '../../../src/server/api/requests/options.ts';
import { fittingRows, partOfText } from '../../../src/server/mcp/fit.ts';
import { makeMcpServer } from '../../../src/server/mcp/tools.ts';
import { type ApiServer, openApiServer } from '../../support/servers/api-server.ts';
import { type LinkedSite, pathOf, startLinkedSite } from '../../support/sites/linked-site.ts';

let site: LinkedSite;
let server: ApiServer;
/** Of the newest protocol, in this process. */
let client: Client;

beforeAll(async () => {
  [site, server] = await Promise.all([startLinkedSite({ pages: 10 }), openApiServer()]);
  const [ours, theirs] = InMemoryTransport.createLinkedPair();
  serveStdio(() => makeMcpServer(() => connect({ url: server.url, key: server.token })), { transport: ours });
  client = new Client(
    { name: 'test', version: '1' },
    { versionNegotiation: { mode: { pin: '2026-07-28' } } },
  );
  await client.connect(theirs);
});

afterAll(async () => {
  await client.close();
  await server.close();
  await site.close();
});

const page = (index: number) => site.url.replace(/\/$/, '') + pathOf(index);

async function use(name: string, given: Record<string, unknown>, by = client) {
  const { content, isError } = await by.callTool({ name, arguments: given });
  const texts = (content as { text: string }[]).map(({ text }) => text);
  return { texts, isError: isError === true };
}

async function json(name: string, given: Record<string, unknown>) {
  const { texts, isError } = await use(name, given);
  expect(isError).toBe(false);
  return JSON.parse(texts[0]!);
}

test('a client of the older protocol finds and uses the tools over stdin and stdout', async () => {
  const main = fileURLToPath(new URL('../../../src/cli/main.ts', import.meta.url));
  const code = `process.exitCode = await (await import(${JSON.stringify(main)})).main(process.argv.slice(1))`;
  const older = new Client({ name: 'older', version: '1' }, { versionNegotiation: { mode: 'legacy' } });
  const args = ['--no-warnings', '--input-type=module', '-e', code, 'mcp', '--dir', server.dir];
  await older.connect(new StdioClientTransport({ command: process.execPath, args }));
  try {
    const { tools } = await older.listTools();
    const names = tools.map(({ name }) => name).sort();
    expect(names).toEqual([
      'explain_run',
      'forecast',
      'job_results',
      'job_status',
      'retry_failed',
      'scrape',
      'start_batch',
    ]);
    const { texts } = await use('scrape', { url: page(1) }, older);
    expect(texts[1]).toContain('Page number 1');
  } finally {
    await older.close();
  }
});

test.each([
  ['of the newest protocol', { pin: '2026-07-28' }],
  ['of the older protocol', 'legacy'],
] as const)('a client %s finds and uses the tools at /mcp, with the rights of its key', async (_, mode) => {
  const api = connect({ url: server.url, key: server.token });
  const { key } = await api.call<{ key: string }>('POST', '/keys', { name: `mcp ${mode}`, scope: 'read' });
  const open = async (given: string) => {
    const own = new Client({ name: 'http', version: '1' }, { versionNegotiation: { mode } });
    await own.connect(
      new StreamableHTTPClientTransport(new URL('/mcp', server.url), {
        requestInit: { headers: { authorization: `Bearer ${given}` } },
      }),
    );
    return own;
  };
  const operator = await open(server.token);
  const reader = await open(key);
  try {
    const names = (await operator.listTools()).tools.map(({ name }) => name);
    expect(names).toEqual((await client.listTools()).tools.map(({ name }) => name));
    const { texts } = await use('scrape', { url: page(1) }, operator);
    expect(texts[1]).toContain('Page number 1');
    const head = JSON.parse(texts[0]!);
    expect(await use('scrape', { url: page(1) }, reader)).toMatchObject({
      isError: true,
      texts: [expect.stringMatching(/^forbidden: /)],
    });
    expect(await use('job_status', { job_id: head.job_id }, reader)).toMatchObject({ isError: true });
    const asked = { job_id: head.job_id, fields: ['status'] };
    expect(JSON.parse((await use('job_status', asked, operator)).texts[0]!)).toEqual({ status: 'completed' });
    await expect(open('wrong')).rejects.toThrow();
  } finally {
    await operator.close();
    await reader.close();
  }
});

test('a long answer comes in parts', async () => {
  const { batch_id: id } = await json('start_batch', { urls: [page(6)] });
  const whole = async () => JSON.stringify(await json('job_status', { job_id: id, wait: 30 }));
  await expect.poll(whole, { timeout: 60_000 }).toContain('"completed"');
  const expected = await whole();
  let [text, cursor] = ['', null as string | null];
  do {
    const { texts } = await use('job_status', { job_id: id, max_chars: 1_000, cursor: cursor ?? '0' });
    text += texts[1];
    cursor = JSON.parse(texts[0]!).next_cursor;
  } while (cursor);
  expect(text).toBe(expected);
});

describe('scrape', () => {
  test('a long page comes in parts that make the whole', async () => {
    const asked = { url: page(2), formats: ['html'], max_chars: 1_000 };
    site.change(2, `<p>${'More about it. '.repeat(200)}</p>`);
    let whole = '';
    let calls = 0;
    let cursor: string | null | undefined;
    do {
      const { texts } = await use('scrape', { ...asked, ...(cursor ? { cursor } : {}) });
      expect(texts[1]!.length).toBeLessThanOrEqual(1_000);
      whole += texts[1];
      calls++;
      cursor = JSON.parse(texts[0]!).next_cursor;
    } while (cursor);
    expect(whole).toBe(site.bodyOf(2));
    expect(calls).toBeGreaterThan(2);
    // The parts are of one page: it was fetched once.
    expect(site.log.filter(({ path }) => path === pathOf(2))).toHaveLength(1);
  });

  test('says what failed', async () => {
    const { texts, isError } = await use('scrape', { url: `${page(0)}missing` });
    expect(isError).toBe(true);
    expect(JSON.parse(texts[0]!)).toMatchObject({ status: 'failed', error: { code: 'not-found' } });
    expect(await use('scrape', { url: page(1), cursor: 'x' })).toMatchObject({ isError: true });
  });
});

describe('batch', () => {
  test('is started, looked at, read in parts and tried again', async () => {
    const urls = [page(3), page(4), page(5), `${page(0)}gone`, 'nonsense'];
    const { batch_id: id, accepted, rejected } = await json('start_batch', { urls });
    expect(accepted).toBe(4);
    expect(rejected).toMatchObject([{ index: 4 }]);
    const counts = { total: 4, succeeded: 3, failed: 1 };
    await expect
      .poll(() => json('job_status', { job_id: id, wait: 30 }), { timeout: 60_000 })
      .toMatchObject({ status: 'completed', counts });
    const asked = { job_id: id, formats: ['html'], fields: ['url', 'html'], max_chars: 1_500, limit: 3 };
    const rows: { url: string; html?: string }[] = [];
    let calls = 0;
    let cursor: string | null | undefined;
    do {
      const part = await json('job_results', { ...asked, ...(cursor ? { cursor } : {}) });
      expect(JSON.stringify(part.results).length).toBeLessThanOrEqual(1_502);
      rows.push(...part.results);
      calls++;
      cursor = part.next_cursor;
    } while (cursor);
    expect(calls).toBeGreaterThan(2);
    expect(rows.map(({ url }) => url)).toEqual(urls.slice(0, 4));
    expect(rows.slice(0, 3).map(({ html }) => html)).toEqual([3, 4, 5].map((index) => site.bodyOf(index)));
    const why = () => json('explain_run', { job_id: id, what_if: ['workers=+8'] });
    await vi.waitFor(async () => expect((await why()).limiting).not.toBeNull(), { timeout: 60_000 });
    const { shares, gains } = explanationSchema.parse(await why());
    expect(Math.round(Object.values(shares).reduce((sum, share) => sum + share, 0))).toBe(100);
    expect(gains.map(({ change }) => change)).toEqual(['workers=+8']);
    expect(await use('explain_run', { job_id: id, what_if: ['more=8'] })).toMatchObject({ isError: true });
    const failed = await json('job_results', { job_id: id, status: 'failed' });
    expect(failed.results).toMatchObject([{ code: 'not-found' }]);
    expect(await json('retry_failed', { job_id: id, code: 'not-found' })).toEqual({ retried: 1 });
  });

  test('an unknown job is an error that can be read', async () => {
    const { texts, isError } = await use('job_status', { job_id: 'job_999' });
    expect([texts[0], isError]).toEqual(['not-found: no such job', true]);
  });
});

describe('what fits', () => {
  test('no character is cut in two', () => {
    expect(partOfText('ab😀c', 0, 3)).toEqual({ text: 'ab', next: 2 });
    expect(partOfText('ab😀c', 2, 3)).toEqual({ text: '😀c', next: null });
  });

  test('a row that is too long alone is cut, and says so', () => {
    const row = {
      url: 'https://example.com/',
      html: '"'.repeat(9_000),
      links: Array(500).fill('https://a/'),
    };
    const [cut] = fittingRows([row, row], 2_000);
    expect(JSON.stringify(cut).length).toBeLessThanOrEqual(2_000);
    expect(cut).toMatchObject({ url: row.url, cut: ['html', 'links'] });
    expect((cut!.html as string).length).toBeGreaterThan(100);
    expect((cut!.links as string[]).length).toBeGreaterThan(10);
  });
});
