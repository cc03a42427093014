import { spawnSync } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  brotliCompressSync,
  deflateRawSync,
  deflateSync,
  gunzipSync,
  gzipSync,
  zstdCompressSync,
} from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { WARCParser } from 'warcio';
import { openFolderBlobs } from '../../../../src/blobs/folder-blobs.ts';
import { SeineError } from '../../../../src/core/errors.ts';
import { digestOf } from '../../../../src/core/warc/warc.ts';
import { parseRecord, readResponse } from '../../../../src/core/warc/warc-reader.ts';
import type { Blobs } from '../../../../src/ports/blobs.ts';
import type { FetchResponse, Subresource } from '../../../../src/ports/fetcher.ts';
import {
  ARCHIVE_BUFFER_BYTES,
  type ArchiveInfo,
  type ArchivePage,
  openArchive,
  type Place,
  pageArchiver,
} from '../../../../src/worker/storage/archive.ts';
import { readPage } from '../../../../src/worker/storage/read-page.ts';

const INFO: ArchiveInfo = {
  software: 'Seine/test',
  job: 'shop',
  date: Date.UTC(2026, 0, 5),
  robots: 'obey',
  userAgent: 'Seine',
};
const KEY = 'archive/shop/batch-1.warc.gz';

let root: string;
let folders = 0;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'seine-archive-'));
});
afterAll(() => rm(root, { recursive: true, force: true }));

async function fresh(): Promise<{ dir: string; blobs: Blobs }> {
  const dir = join(root, String(folders++));
  return { dir, blobs: await openFolderBlobs(dir) };
}

function sha256(bytes: Uint8Array): Buffer {
  return createHash('sha256').update(bytes).digest();
}

const html = (n: number) =>
  Buffer.from(
    `<!doctype html><html><head><title>Product ${n}</title></head><body>\n${Array.from(
      { length: 150 },
      (_, i) =>
        `<li class="card"><a href="/product/${(n * 7919 + i * 104_729) % 20_000}">Item ${i} of ${n}</a></li>`,
    ).join('\n')}\n</body></html>`,
  );

interface Case {
  name: string;
  page: ArchivePage;
  /** What a reader of the page sees. */
  content: Buffer;
}

function caseOf(name: string, content: Buffer, changes: Partial<ArchivePage> = {}): Case {
  const page: ArchivePage = {
    url: `https://shop.example/${encodeURIComponent(name)}`,
    date: Date.UTC(2026, 0, 5, 12, 0, 0, 7),
    status: 200,
    statusText: 'OK',
    rawHeaders: ['Content-Type', 'text/html; charset=utf-8', 'Set-Cookie', 'a=1', 'Set-Cookie', 'b=2'],
    wireBody: content,
    ...changes,
  };
  return { name, page, content };
}

function coded(coding: string, content: Buffer, wireBody: Buffer): Case {
  return caseOf(`coded ${coding}`, content, {
    wireBody,
    rawHeaders: ['Content-Encoding', coding, 'ETag', '"x"'],
  });
}

const CASES: Case[] = [
  ...Array.from({ length: 20 }, (_, n) => caseOf(`page ${n}`, html(n))),
  caseOf('hash known', html(21), { wireSha256: sha256(html(21)).toString('hex') }),
  caseOf('empty', Buffer.alloc(0), { status: 204, statusText: 'No Content' }),
  caseOf('chunked', html(22), { rawHeaders: ['Transfer-Encoding', 'chunked', 'Content-Type', 'text/html'] }),
  caseOf('wrong length', html(23), { rawHeaders: ['Content-Length', '5'] }),
  caseOf('binary', randomBytes(50_000), { rawHeaders: ['Content-Type', 'image/png'] }),
  caseOf('cyrillic', Buffer.from('<p>Съешь ещё этих мягких булок.</p>\n'.repeat(300))),
  caseOf('ends like a record', Buffer.from('text\r\n\r\n')),
  caseOf('contains a record', Buffer.from('WARC/1.1\r\nContent-Length: 0\r\n\r\n\r\n\r\n')),
  caseOf('redirect', Buffer.from('moved'), {
    status: 301,
    statusText: 'Moved Permanently',
    rawHeaders: ['Location', '/x'],
  }),
  caseOf('odd status', Buffer.from('x'), { status: 999, statusText: '' }),
  caseOf('odd headers', Buffer.from('x'), {
    rawHeaders: ['X-Latin', 'Caf\xe9', 'X-Empty', '', "X-!#$%&'*", 'v', 'X-Colon', 'a: b'],
  }),
  caseOf('address', Buffer.from('x'), { ip: '2001:db8::1' }),
  caseOf('large text', Buffer.concat(Array.from({ length: 90 }, (_, n) => html(n)))),
  caseOf('larger than the buffer', randomBytes(ARCHIVE_BUFFER_BYTES + 12_345)),
  coded('gzip', html(30), gzipSync(html(30))),
  coded('x-gzip', html(31), gzipSync(html(31))),
  coded('br', html(32), brotliCompressSync(html(32))),
  coded('zstd', html(33), zstdCompressSync(html(33))),
  coded('deflate', html(34), deflateSync(html(34))),
  coded('Deflate', html(35), deflateRawSync(html(35))),
  coded('gzip, br', html(36), brotliCompressSync(gzipSync(html(36)))),
  coded('identity', html(37), html(37)),
  ...Array.from({ length: 300 }, (_, n) => caseOf(`more ${n}`, html(100 + n))),
];

async function write(blobs: Blobs): Promise<{ places: Place[]; bytes: number }> {
  const archive = openArchive(blobs, KEY, INFO);
  const places: Place[] = [];
  for (const { page } of CASES) {
    await archive.pressure();
    places.push(archive.append(page));
  }
  const done = await archive.commit();
  expect(done?.key).toBe(KEY);
  return { places, bytes: done!.bytes };
}

describe('an archive of many kinds of pages', () => {
  let blobs: Blobs;
  let file: Buffer;
  let places: Place[];
  beforeAll(async () => {
    ({ blobs } = await fresh());
    const written = await write(blobs);
    places = written.places;
    file = (await blobs.read(KEY))!;
    expect(file.length).toBe(written.bytes);
  });

  test('members follow each other without a gap, the first is the warcinfo', () => {
    const info = parseRecord(gunzipSync(file.subarray(0, places[0]!.offset)));
    expect(info.type).toBe('warcinfo');
    expect(info.headers.get('warc-filename')).toBe('batch-1.warc.gz');
    expect(info.block.toString()).toContain('software: Seine/test\r\nisPartOf: shop\r\nrobots: obey\r\n');
    let at = places[0]!.offset;
    for (const place of places) {
      expect(place.offset).toBe(at);
      at += place.length;
    }
    expect(at).toBe(file.length);
  });

  test('every member is one valid record, read alone at its place', () => {
    const ids = new Set<string>();
    CASES.forEach(({ page }, i) => {
      const { offset, length } = places[i]!;
      const record = parseRecord(gunzipSync(file.subarray(offset, offset + length)));
      ids.add(record.id);
      expect(record.url).toBe(page.url);
      expect(record.date).toBe(page.date);
      expect(record.headers.get('warc-payload-digest')).toBe(digestOf(page.wireBody));
      expect(record.headers.get('warc-ip-address')).toBe(page.ip ?? undefined);
      const response = readResponse(record);
      expect(response.status).toBe(page.status);
      expect(response.body.equals(page.wireBody)).toBe(true);
    });
    expect(ids.size).toBe(CASES.length);
  });

  test('readPage gives the content back', async () => {
    for (const [i, { page, content }] of CASES.entries()) {
      const stored = await readPage(blobs, { key: KEY, ...places[i]! });
      expect({ ...stored, headers: [], body: null }).toEqual({
        url: page.url,
        date: page.date,
        status: page.status,
        statusText: page.statusText,
        headers: [],
        body: null,
      });
      expect(stored.body.equals(content)).toBe(true);
    }
  });

  test('warcio reads the same records', async () => {
    const records = [];
    // It reads broken files without a word, so every field and byte is compared.
    for await (const record of new WARCParser([file])) {
      const payload = Buffer.from(await record.readFully(false));
      records.push({
        type: record.warcType,
        url: record.warcTargetURI,
        date: record.warcDate,
        digest: record.warcPayloadDigest,
        status: record.httpHeaders?.statusCode,
        length: record.httpHeaders?.headers.get('content-length'),
        payload: record.warcType === 'response' ? sha256(payload).toString('hex') : null,
      });
    }
    expect(records.shift()?.type).toBe('warcinfo');
    expect(records).toEqual(
      CASES.map(({ page }) => ({
        type: 'response',
        url: page.url,
        date: new Date(page.date).toISOString(),
        digest: digestOf(page.wireBody),
        status: page.status,
        length: String(page.wireBody.length),
        payload: sha256(page.wireBody).toString('hex'),
      })),
    );
  });

  test('the gzip module of Python reads the whole file', () => {
    const program =
      'import gzip,hashlib,sys; print(hashlib.sha256(gzip.open(sys.argv[1]).read()).hexdigest())';
    const run = spawnSync('python3', ['-c', program, blobs.locate(KEY)], { encoding: 'utf8' });
    if (run.error)
      throw new Error('python3 was not found: install the package python3', { cause: run.error });
    expect(run.stderr).toBe('');
    expect(run.stdout.trim()).toBe(sha256(gunzipSync(file)).toString('hex'));
  });

  test('readPage says what is wrong', async () => {
    const [place] = places as [Place];
    const read = (changes: object) => readPage(blobs, { key: KEY, ...place, ...changes });
    await expect(read({ key: 'archive/none' })).rejects.toThrow(/archive .*none is missing/);
    await expect(read({ offset: place.offset + 1 })).rejects.toThrow(/cannot read the page/);
    await expect(read({ length: place.length - 1 })).rejects.toThrow(/cannot read the page/);
    await expect(read({ length: place.length + 20 })).rejects.toThrow(/cannot read the page/);
    await expect(read({ offset: file.length - 1 })).rejects.toThrow(/ends before the page/);
    await expect(read({ offset: 0, length: place.offset })).rejects.toThrow(/not an HTTP response/);
    await expect(readPage(blobs, { key: KEY, ...place }, { bytesMax: 10 })).resolves.toBeDefined();
    const { body } = await read({});
    const own = sha256(body).toString('hex');
    await expect(readPage(blobs, { key: KEY, ...place }, { sha256: own })).resolves.toBeDefined();
    await expect(readPage(blobs, { key: KEY, ...place }, { sha256: '0'.repeat(64) })).rejects.toThrow(
      'its SHA-256 is not the one that was stored with the task',
    );
    const bomb = CASES.findIndex(({ name }) => name === 'coded br');
    await expect(readPage(blobs, { key: KEY, ...places[bomb]! }, { bytesMax: 100 })).rejects.toThrow(
      SeineError,
    );
  });
});

test('what a browser loaded for pages is archived with its requests, and equal bytes once', async () => {
  const { dir, blobs } = await fresh();
  const archive = openArchive(blobs, KEY, INFO);
  const keep = pageArchiver(() => archive, {
    ...{ requests: true, blockDigests: true, errors: false, subresources: true },
  });
  const at = INFO.date + 5;
  const script = (url: string, date: number) => ({
    ...{ url, date, status: 200, statusText: 'OK', body: Buffer.from('run()') },
    rawHeaders: ['Content-Type', 'text/javascript'],
    requestHeaders: ['User-Agent', 'Seine', 'Cookie', 'sid=secret'],
  });
  const response = (resources: Subresource[]): FetchResponse => ({
    ...{ kind: 'response', status: 200, statusText: 'OK', rawHeaders: ['Content-Type', 'text/html'] },
    ...{ body: html(1), wireBody: html(1), wireBytes: 1, rendered: { shots: [], captured: {}, resources } },
  });
  const moved = { ...script('https://shop.example/old.js', at), status: 302, body: Buffer.alloc(0) };
  const first = [script('https://shop.example/a.js', at), moved];
  const page = sha256(html(1)).toString('hex');
  const place = keep.page('https://shop.example/1', response(first), at, page);
  keep.page('https://shop.example/2', response([script('https://cdn.example/b.js', at + 9)]), at, page);
  await archive.commit();
  const records: [string, string][] = [];
  const text = gunzipSync(await readFile(join(dir, KEY))).toString('latin1');
  for (const [, type, url] of text.matchAll(/^WARC-Type: (\w+)\r\n[\s\S]*?^WARC-Target-URI: (.*)\r$/gm))
    records.push([type!, new URL(url!).pathname]);
  const both = (path: string, type = 'response'): [string, string][] => [
    [type, path],
    ['request', path],
  ];
  expect(records.slice(1)).toEqual(
    [both('/a.js'), both('/old.js'), both('/2').slice(0, 1), both('/b.js', 'revisit')].flat(),
  );
  expect(text).toContain('WARC-Refers-To-Target-URI: https://shop.example/a.js\r\n');
  expect(text.match(/run\(\)/g)).toHaveLength(1);
  expect(text).not.toContain('sid=secret');
  const { body } = await readPage(blobs, { key: KEY, ...place! }, { sha256: page });
  expect(body).toEqual(html(1));
});
