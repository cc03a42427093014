import { spawnSync } from 'node:child_process';
import { readFile, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openSqliteStore } from '../../../src/store/sqlite/sqlite-store.ts';
import { temporaryFolder } from '../../support/fixtures.ts';
import { seineHere } from '../../support/seine-in-process.ts';

/** The command around the experiment; what rates are found is tested on virtual time (test/unit/core/calibration). */

const requested: string[] = [];
const server = createServer((request, response) => {
  requested.push(request.url!);
  if (request.url === '/robots.txt') response.end('User-agent: *\nDisallow: /private\n');
  else response.writeHead(200, { 'content-type': 'text/html' }).end(`<title>${request.url}</title>`);
});
let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let host: string;
beforeAll(async () => {
  folder = await temporaryFolder();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(async () => {
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
  await folder.remove();
});

/** As if the log had been looked at after the run, and again a year later. */
async function cutLog(): Promise<void> {
  const store = openSqliteStore(join(folder.dir, 'state', 'seine.db'));
  const now = Date.now();
  const keepMs = 365 * 86_400_000;
  expect(await store.hosts.checkpointLog(host, { now, keepMs, entries: 1 })).toEqual({
    isWritten: true,
    cut: 0,
  });
  const later = await store.hosts.checkpointLog(host, { now: now + keepMs + 1, keepMs, entries: 1 });
  expect(later).toMatchObject({ isWritten: false });
  expect(later.cut).toBeGreaterThan(1);
  await store.close();
}

const seine = (...args: string[]) => seineHere(...args, '--dir', join(folder.dir, 'state'));

test('a calibration obeys robots.txt and its limits, says that too little is proven, and is listed by `hosts`', async () => {
  const list = join(folder.dir, 'pages.txt');
  await writeFile(list, ['a', 'private/b', 'c'].map((path) => `http://${host}/${path}\n`).join(''));
  const options = ['--rate', 'max', '--allow-private', '--max-requests', '3'];
  const { code, stdout } = await seine('calibrate', list, ...options, '--json');
  expect(code).toBe(4);
  const profile = JSON.parse(stdout);
  expect(profile).toMatchObject({ host, rate: null, requests: 3, refusals: 0, end: 'requests' });
  expect([profile.parallel, profile.batchSize].every((number) => number >= 1)).toBe(true);
  expect(profile.evidence[0]).toMatchObject({ purpose: 'climb', answered: 3, refused: 0, verdict: 'cut' });
  expect(requested).toEqual(['/robots.txt', '/a', '/c', '/a']);
  expect(await readFile(profile.picture, 'utf8')).toMatch(/^<svg.+<\/svg>\s*$/s);

  const known = await seine('hosts', '--json');
  expect(JSON.parse(known.stdout)).toMatchObject({ host, calibration: { expiresAt: profile.expiresAt } });
  expect((await seine('hosts')).stdout).toContain(`${host}\n  calibration: no rate held; measured`);

  const run = await seine('run', list, '--rate', '50', '--allow-private', '--json');
  expect(run.code).toBe(0);
  const listed = JSON.parse((await seine('hosts', '--json')).stdout);
  expect(listed).toMatchObject({
    host,
    calibration: { rate: null, refusals: 0, expiresAt: profile.expiresAt },
  });

  const log = join(folder.dir, 'hosts.jsonl');
  expect((await seine('export', '--what', 'hosts', '-o', log)).code).toBe(0);
  const entries = (await readFile(log, 'utf8')).trim().split('\n');
  expect(JSON.parse(entries[0]!)).toMatchObject({ host, number: 1, kind: 'calibration', requests: 3 });
  expect(JSON.parse(entries[1]!)).toMatchObject({ host, number: 2, kind: 'report', refusals: 0 });
  const program = /```python\n([\s\S]+?)```/.exec(await readFile('docs/politeness.md', 'utf8'))![1]!;
  const asOthersDo = (text: string) =>
    spawnSync('python3', ['-c', program], { input: text, encoding: 'utf8' });
  expect(asOthersDo(`${entries.join('\n')}\n`).stdout).toBe('1 hosts, every chain is whole\n');
  const stored = JSON.parse((await seine('verify', '--extends', log, '--json')).stdout);
  expect(stored).toMatchObject({ ok: true, hosts: 1, entries: entries.length, shortGaps: 0 });

  await cutLog();
  expect((await seine('export', '--what', 'hosts', '-o', log)).code).toBe(0);
  const cut = (await readFile(log, 'utf8')).trim().split('\n');
  expect(JSON.parse(cut[0]!)).toMatchObject({ kind: 'checkpoint', number: entries.length + 1 });
  expect(asOthersDo(`${cut.join('\n')}\n`).stdout).toBe('1 hosts, every chain is whole\n');
  expect(asOthersDo(`${cut.join('\n').replace(/"refusals":\d+/, '"refusals":99')}\n`).status).not.toBe(0);
  expect((await seine('verify', log)).stdout).toContain(
    `1 log begins with a checkpoint: ${entries.length} earlier entries with`,
  );

  const forged = entries.map((line) => line.replace('"requests":3', '"requests":2'));
  expect(asOthersDo(`${forged.join('\n')}\n`).status).not.toBe(0);
  await writeFile(log, forged.join('\n'));
  const verified = await seine('verify', log);
  expect(verified.code).toBe(6);
  expect(verified.stdout).toContain(`${host}, entry 1: its hash does not fit its content: it was changed`);
  // A log whose entries are all gone must not pass for a whole one.
  const empty = join(folder.dir, 'empty.jsonl');
  await writeFile(empty, '\n');
  const nothing = await seine('verify', empty);
  expect(nothing.code).toBe(2);
  expect(nothing.stderr).toContain('has no entries');
  const missing = await seine('verify', join(folder.dir, 'missing.jsonl'));
  expect(missing.stderr).toContain('cannot read');
});

test('without a terminal there is a line for each rate, and then the result', async () => {
  const { code, stdout, stderr } = await seine(
    ...['calibrate', host, '--allow-private', '--max-requests', '2', '--rate', '2'],
  );
  expect(code).toBe(4);
  // At 1/s, or at the pace that the run before has learned.
  expect(stderr).toMatch(/^127\.0\.0\.1:\d+: trying [\d.]+\/s, 0 requests, 0 refusals\n$/);
  expect(stdout).toContain(`${host}: no rate held (as many requests as allowed)`);
  expect(stdout).toContain('later runs use nothing of it');
  expect(stdout).toContain('2 requests, 0 refusals');
});

test('a calibration that ends before a rate held does not replace one that found a rate', async () => {
  const store = openSqliteStore(join(folder.dir, 'state', 'seine.db'));
  const now = Date.now();
  await store.hosts.saveProfile(
    {
      ...{ host, rate: 7, parallel: 1, batchSize: 100, timeoutMs: 3_000, batchTimeoutMs: 60_000 },
      ...{ requests: 900, refusals: 4, refusedRate: 8, windowMs: 0, end: 'held', evidence: [] },
      ...{ measuredAt: now, expiresAt: now + 86_400_000 },
    },
    null,
  );
  await store.close();
  const { code, stdout } = await seine(
    ...['calibrate', host, '--allow-private', '--max-requests', '1', '--rate', '2'],
  );
  expect(code).toBe(4);
  expect(stdout).toContain('1 request, 0 refusals');
  expect(stdout).toContain('later runs go on with 7/s');
  const listed = JSON.parse((await seine('hosts', '--json')).stdout);
  expect(listed.calibration).toMatchObject({ rate: 7, refusals: 4 });
});

test('a job with proxies, and nothing at all, are refused with the reason', async () => {
  const job = join(folder.dir, 'proxied.json');
  const pools = { a: { from: { list: ['http://127.0.0.1:9'] } } };
  await writeFile(job, JSON.stringify({ sources: [`http://${host}/`], proxies: { pools, default: 'a' } }));
  const proxied = await seine('calibrate', job);
  expect(proxied.stderr).toContain('jobs with proxies cannot be calibrated');
  expect(proxied.code).toBe(2);
  const nothing = await seine('calibrate');
  expect(nothing.stderr).toContain('nothing to calibrate');
  expect(nothing.code).toBe(2);
});
