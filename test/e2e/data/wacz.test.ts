import { spawnSync } from 'node:child_process';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { CDXIndexer, WARCParser } from 'warcio';
import { seine } from '../../support/seine-in-process.ts';
import { lastJson, temporaryFolder } from '../../support/seine-process.ts';

/** Pages, their second visit and errors, from the wire into a file that others read. */

const HTML = { 'content-type': 'text/html; charset=utf-8' };
const folder = temporaryFolder();
const dir = join(folder.path, 'data');
const job = join(folder.path, 'site.json');
const wacz = join(folder.path, 'site.wacz');
const site = createServer((request, response) => {
  const { url = '/', headers } = request;
  response.setHeader('set-cookie', 'sid=c00k1e');
  switch (url) {
    case '/coded?b=2&A=1':
      response.writeHead(200, { ...HTML, 'content-encoding': 'gzip' }).end(gzipSync('<h1>coded</h1>'));
      return;
    case '/plain':
      response.writeHead(200, HTML).end('<h1>plain</h1>');
      return;
    case '/tagged':
      if (headers['if-none-match'] === '"one"') response.writeHead(304, { etag: '"one"' }).end();
      else response.writeHead(200, { ...HTML, etag: '"one"' }).end('<h1>tagged</h1>');
      return;
    default:
      response.writeHead(404, HTML).end('<h1>no such page</h1>');
  }
});
let origin = '';

beforeAll(async () => {
  await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve));
  origin = `http://127.0.0.1:${(site.address() as AddressInfo).port}`;
  writeFileSync(
    job,
    JSON.stringify({
      name: 'site',
      sources: ['/coded?b=2&A=1', '/plain', '/tagged', '/none'].map((path) => origin + path),
      ...{ allowPrivate: true, politeness: { rate: 'max' }, archive: { errors: true } },
      identity: {
        cookies: true,
        secretHeaders: { [origin]: { 'X-Pass': { env: 'SEINE_SECRET_PASS' } } },
      },
    }),
  );
  const env = { SEINE_SECRET_PASS: 's3cr3t' };
  expect(lastJson(await seine(['run', job, '--dir', dir, '--json'], { env }))).toMatchObject({
    done: 3,
    dead: 1,
  });
  const again = lastJson(await seine(['run', job, '--refresh', '--dir', dir, '--json'], { env }));
  expect(again).toMatchObject({ unchanged: 3, dead: 1 });
  const { code, stderr } = await seine(['export', 'site', '--what', 'wacz', '-o', wacz, '--dir', dir]);
  expect([code, stderr]).toEqual([0, `8 records and 3 pages written to ${wacz}\n`]);
});
afterAll(() => {
  site.close();
  folder.remove();
});

/** Every entry, as Python's zipfile reads it. */
function entries(): Map<string, Buffer> {
  const program = `import base64, json, sys, zipfile
z = zipfile.ZipFile(sys.argv[1])
assert z.testzip() is None and all(i.compress_type == zipfile.ZIP_STORED for i in z.infolist())
print(json.dumps({n: base64.b64encode(z.read(n)).decode() for n in z.namelist()}))`;
  const run = spawnSync('python3', ['-c', program, wacz], { encoding: 'utf8' });
  if (run.error) throw new Error('python3 was not found: install the package python3', { cause: run.error });
  expect(run.stderr).toBe('');
  return new Map(
    Object.entries(JSON.parse(run.stdout) as Record<string, string>).map(([name, text]) => [
      name,
      Buffer.from(text, 'base64'),
    ]),
  );
}

async function* streamOf(bytes: Buffer): AsyncGenerator<Buffer> {
  yield bytes;
}

test('a WACZ has the archive, its index as warcio makes it, the pages, and digests of all', async () => {
  const files = entries();
  const { resources, wacz_version } = JSON.parse(files.get('datapackage.json')!.toString());
  expect(wacz_version).toBe('1.1.1');
  expect(resources.map(({ path }: { path: string }) => path)).toEqual([...files.keys()].slice(0, -2));
  expect(readdirSync(dir)).toContain('warc');

  const lines = gunzipSync(files.get('indexes/index.cdx.gz')!).toString().trimEnd().split('\n');
  expect(lines).toEqual([...lines].sort());
  const own = new Map<string, object>();
  for (const line of lines) {
    const [key, at, ...json] = line.split(' ');
    const { digest, ...entry } = JSON.parse(json.join(' '));
    own.set(`${entry.filename} ${entry.offset}`, {
      ...entry,
      urlkey: key,
      timestamp: at,
      digest: digest.replace('sha256:', ''),
    });
  }
  let compared = 0;
  for (const [path, bytes] of files) {
    if (!path.startsWith('archive/')) continue;
    const filename = path.slice('archive/'.length);
    for await (const entry of new CDXIndexer({}).iterIndex([{ filename, reader: streamOf(bytes) }])) {
      compared++;
      const { offset, length, ...rest } = entry as Record<string, unknown>;
      expect(own.get(`${filename} ${offset}`)).toMatchObject({
        length: Number(length),
        urlkey: rest.urlkey,
        timestamp: rest.timestamp,
        mime: rest.mime,
        digest: rest.digest,
      });
    }
  }
  expect([compared, own.size]).toEqual([8, 8]);
  expect(files.get('indexes/index.idx')!.toString()).toMatch(/^!meta 0 .*\n\S+ \d{14} \{"offset":0,/);
  const pages = files.get('pages/pages.jsonl')!.toString().trimEnd().split('\n').slice(1);
  expect(pages.map((line) => JSON.parse(line).url).sort()).toEqual(
    ['/coded?b=2&A=1', '/plain', '/tagged'].map((path) => origin + path),
  );
});

test('the archive has requests without secrets, revisits that lead to their page, and errors', async () => {
  const records: {
    type: string;
    path: string;
    date: string;
    refers: string | null;
    profile: string;
    text: string;
  }[] = [];
  for (const name of readdirSync(join(dir, 'warc', 'site-1'), { recursive: true, encoding: 'utf8' })) {
    if (!name.endsWith('.gz')) continue;
    const file = readFileSync(join(dir, 'warc', 'site-1', name));
    for await (const record of new WARCParser([file])) {
      const text = Buffer.from(await record.readFully(false)).toString('latin1');
      const head = record.httpHeaders ? record.httpHeaders.toString() : '';
      records.push({
        type: record.warcType ?? '',
        path: record.warcTargetURI?.replace(origin, '') ?? '',
        date: record.warcDate ?? '',
        refers: record.warcHeader('WARC-Refers-To-Date') ?? null,
        profile: record.warcHeader('WARC-Profile')?.replace(/^.*\//, '') ?? '',
        text: head + text,
      });
    }
  }
  const of = (type: string, path: string) => records.filter((one) => one.type === type && one.path === path);
  for (const [path, profile] of [
    ['/coded?b=2&A=1', 'identical-payload-digest'],
    ['/plain', 'identical-payload-digest'],
    ['/tagged', 'server-not-modified'],
  ] as const) {
    const [page, ...more] = of('response', path);
    expect(more).toEqual([]);
    expect(of('revisit', path)).toMatchObject([{ refers: page!.date, profile }]);
    const requests = of('request', path);
    expect(requests).toHaveLength(2);
    for (const { text } of requests) {
      expect(text).toMatch(/^GET \/\S+ HTTP\/1\.1\r\n/);
      expect(text).toMatch(/user-agent: Seine/i);
      expect(text).not.toMatch(/s3cr3t|c00k1e/);
    }
  }
  const errors = of('response', '/none');
  expect(errors).toHaveLength(2);
  expect(errors[0]!.text).toContain('no such page');
  // An error is not a page of the job: it is found at the first visit only because there was none before.
  expect((await seine(['page', `${origin}/none`, '--dir', dir])).stdout).toContain('no such page');
});

test('says what it cannot do', async () => {
  const failed = async (...args: string[]) =>
    (await seine(['export', 'site', '--what', 'wacz', '--dir', dir, ...args])).stderr;
  expect(await failed('--format', 'csv')).toContain('--format does not work with --what wacz');
  expect(await failed('-o', join(folder.path, 'a.wacz.gz'))).toContain('WACZ files are already compressed');
});
