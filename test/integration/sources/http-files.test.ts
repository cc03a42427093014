import { gzipSync } from 'node:zlib';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { SeineError } from '../../../src/core/errors.ts';
import { isPublicAddress } from '../../../src/core/url/address.ts';
import { makeAddressGuard } from '../../../src/core/url/address-guard.ts';
import { MissingFileError, type RemoteFiles } from '../../../src/ports/remote-files.ts';
import { openHttpFiles } from '../../../src/sources/files/http-files.ts';
import { collect } from '../../support/fixtures.ts';
import { type FileServer, startFileServer } from '../../support/servers/file-server.ts';
import { parquetOf, textColumn, urlsUpTo } from '../../support/sources/parquet-files.ts';
import {
  continuesAnywhere,
  openSourceSetup,
  type SourceSetup,
  urlsOf,
} from '../../support/sources/source-files.ts';

const A = 'https://a.example';
const GUARD = makeAddressGuard(isPublicAddress, false);
const LIST = urlsUpTo(20_000).join('\n');
let site: FileServer;
let files: RemoteFiles;
let setup: SourceSetup;

beforeAll(async () => {
  site = await startFileServer();
  files = openHttpFiles({ pausesMs: [1, 1, 1], guard: GUARD });
  setup = await openSourceSetup({ files: async () => files });
  const wide = textColumn(urlsUpTo(50_000).map((url) => url.repeat(2)));
  const columns = { url: textColumn(urlsUpTo(50_000)), wide, wider: wide };
  site.files.set('table.parquet', parquetOf(columns, { rowGroupSize: 10_000, codec: 'UNCOMPRESSED' }));
  site.files.set('list.txt', Buffer.from(LIST));
});
beforeEach(() => {
  site.requests.length = 0;
  site.intercept = null;
  site.ranges = true;
  site.etag = '"1"';
});
afterEach(() => {
  site.intercept = null;
});
afterAll(async () => {
  await files.close();
  await site.close();
  await setup.close();
});

/** Fails the first answers by `act`, then behaves. */
function failing(times: number, act: Exclude<FileServer['intercept'], null>): void {
  let left = times;
  site.intercept = (...args) => (left-- > 0 ? act(...args) : false);
}

describe('Parquet over http', () => {
  test('is read by ranges, and never wholly', async () => {
    const sentBefore = site.bytesSent();
    await setup.check(site.url('table.parquet'));
    const rows = await setup.rows({ file: site.url('table.parquet'), meta: [] });
    expect(urlsOf(rows)).toEqual(urlsUpTo(50_000));
    expect(site.requests.every(({ range }) => range !== null)).toBe(true);
    const size = site.files.get('table.parquet')!.length;
    expect(site.bytesSent() - sentBefore).toBeLessThan(size / 2);
  });

  test('is a file by its ending, also with a signature after it', async () => {
    const url = site.url('table.parquet?X-Signature=a/b.txt');
    const rows = await setup.rows(url);
    expect(rows).toHaveLength(50_000);
    expect(
      await continuesAnywhere(rows, (position) => setup.rows(url, position), [12_345, 49_999]),
    ).toBeNull();
  });

  test('a server that ignores ranges is told so before anything starts', async () => {
    site.ranges = false;
    const error = await setup.check(site.url('table.parquet')).catch((caught: unknown) => caught);
    expect(error).toBeInstanceOf(SeineError);
    expect(String(error)).toMatch(/ignores range requests/);
  });

  test('errors that pass are survived; those that stay are one sentence', async () => {
    const passing = [503, 429, 408];
    failing(3, (_, response) => !!response.writeHead(passing.pop()!).end());
    expect(await setup.rows(site.url('table.parquet'))).toHaveLength(50_000);
    expect(passing).toEqual([]);
    failing(3, (request) => !!request.socket.destroy());
    expect(await setup.rows(site.url('table.parquet'))).toHaveLength(50_000);
    failing(99, (_, response) => !!response.writeHead(503).end());
    await expect(setup.rows(site.url('table.parquet'))).rejects.toThrow(
      /cannot read .*table\.parquet: status 503/,
    );
    await expect(setup.rows(site.url('table.parquet'))).rejects.toThrow(SeineError);
  });

  test.each([
    ['absent.parquet', /no such file: .*absent\.parquet \(status 404\)/],
    ['*.parquet', /no such file/],
  ])('%s is missing', async (name, message) => {
    await expect(setup.check(site.url(name))).rejects.toThrow(message);
    await expect(setup.check(site.url(name))).rejects.toThrow(MissingFileError);
  });

  test('a file that changes while it is read is given up with one entry', async () => {
    const rows = [];
    for await (const row of setup.open(site.url('table.parquet')).rows(null)) {
      rows.push(row);
      site.etag = '"2"';
    }
    expect(rows.length).toBeLessThan(50_000);
    expect(urlsOf(rows.slice(-1))).toEqual(['! it changed while reading it']);
  });
});

describe('lists over http', () => {
  test('a URL is a page unless it is called a file', async () => {
    expect(urlsOf(await setup.rows(site.url('list.txt')))).toEqual([site.url('list.txt')]);
    expect(site.requests).toEqual([]);
    expect(urlsOf(await setup.rows({ file: site.url('list.txt') }))).toEqual(urlsUpTo(20_000));
  });

  test.each([true, false])('continue where they were (server with ranges: %s)', async (ranges) => {
    site.ranges = ranges;
    const file = { file: site.url('list.txt') };
    const all = await setup.rows(file);
    expect(
      await continuesAnywhere(all, (position) => setup.rows(file, position), [0, 9_999, 19_999]),
    ).toBeNull();
  });

  test('compressed, and said to be compressed twice', async () => {
    site.files.set('list.csv.gz', gzipSync(`url,n\n${A}/1,1\n${A}/2,2\n`));
    expect(urlsOf(await setup.rows({ file: site.url('list.csv.gz') }))).toEqual([`${A}/1`, `${A}/2`]);
    site.intercept = (_, response, file) =>
      !!response.writeHead(200, { 'content-encoding': 'gzip' }).end(file);
    expect(urlsOf(await setup.rows({ file: site.url('list.csv.gz') }))).toEqual([`${A}/1`, `${A}/2`]);
  });

  test.each([true, false])(
    'a connection that breaks in the middle is taken up again (ranges: %s)',
    async (ranges) => {
      site.ranges = ranges;
      failing(2, (_, response, file) => {
        response.writeHead(200, { 'content-length': file!.length, etag: '"1"' });
        response.write(file!.subarray(0, 100_000), () => response.destroy());
        return true;
      });
      const rows = await setup.rows({ file: site.url('list.txt') });
      expect(urlsOf(rows)).toEqual(urlsUpTo(20_000));
      expect(site.requests.length).toBeGreaterThan(2);
      if (ranges) expect(site.requests.at(-1)!.range).toMatch(/^bytes=\d{5,}-$/);
    },
  );

  test('a connection that always breaks ends in one sentence', async () => {
    failing(99, (_, response, file) => {
      response.writeHead(200, { 'content-length': file!.length, etag: '"1"' });
      response.write(file!.subarray(0, 1_000), () => response.destroy());
      return true;
    });
    await expect(setup.rows({ file: site.url('list.txt') })).rejects.toThrow(SeineError);
    expect(site.requests.length).toBeLessThan(12);
  });

  test('a reader that leaves early closes its connection', async () => {
    site.files.set('long.txt', Buffer.from(`${LIST}\n`.repeat(40)));
    // Settles by the server alone: where it is never asked, or the connection stays open, this test runs out of time.
    const closed = Promise.withResolvers<string>();
    site.intercept = (request, response, file) => {
      request.socket.once('close', () => closed.resolve(request.url!));
      response.writeHead(200, { 'content-length': file!.length });
      return !!response.write(file!.subarray(0, 2_000_000)) || true;
    };
    const read: unknown[] = [];
    for await (const row of setup.open({ file: site.url('long.txt') }).rows(null)) {
      read.push(row);
      break;
    }
    expect(read).toHaveLength(1);
    expect(await closed.promise).toBe('/long.txt');
    expect(site.requests).toHaveLength(1);
  });

  test('redirects are followed', async () => {
    failing(1, (_, response) => !!response.writeHead(302, { location: '/list.txt' }).end());
    expect(await setup.rows({ file: site.url('moved.txt') })).toHaveLength(20_000);
  });

  test('redirects lead to private addresses only where the job allows those', async () => {
    const inner = await startFileServer();
    inner.files.set('list.txt', Buffer.from(`${A}/1`));
    const places = [inner.url('list.txt'), inner.url('list.txt').replace('127.0.0.1', 'localhost')];
    for (const location of places) {
      site.intercept = (_, response) => !!response.writeHead(302, { location }).end();
      // The server itself was named, and is at a private address as well.
      await expect(files.stream(site.url('moved.txt'))).rejects.toThrow(/private or reserved address/);
      expect(inner.requests).toEqual([]);
      const open = openHttpFiles({ guard: GUARD, jobAllowsPrivate: true });
      expect(Buffer.concat(await collect(await open.stream(site.url('moved.txt')))).toString()).toBe(
        `${A}/1`,
      );
      await open.close();
      inner.requests.length = 0;
    }
    await inner.close();
  });

  test('nothing at a private address is read where the operator forbids it', async () => {
    const strict = openHttpFiles({ guard: makeAddressGuard(isPublicAddress, true), jobAllowsPrivate: true });
    site.requests.length = 0;
    for (const host of ['127.0.0.1', 'localhost', '[::ffff:127.0.0.1]']) {
      const url = site.url('list.txt').replace('127.0.0.1', host);
      await expect(strict.stream(url)).rejects.toThrow(/has a private or reserved address/);
    }
    expect(site.requests).toEqual([]);
    await strict.close();
  });

  test.each(['file:///etc/passwd', 'data:text/plain,x', 'http://'])(
    'a redirect to %s is an error, and so are those without end',
    async (location) => {
      site.intercept = (_, response) => !!response.writeHead(302, { location }).end();
      await expect(files.stream(site.url('moved.txt'))).rejects.toThrow(
        /redirects to a URL that is not http/,
      );
      site.intercept = (_, response) => !!response.writeHead(302, { location: '/moved.txt' }).end();
      await expect(files.stream(site.url('moved.txt'))).rejects.toThrow(/redirects more than 10 times/);
    },
  );
});

describe('files over http by themselves', () => {
  test('size, pieces and the empty file', async () => {
    site.files.set('empty', Buffer.alloc(0));
    expect(await files.size(site.url('list.txt'))).toBe(LIST.length);
    expect(await files.size(site.url('empty'))).toBe(0);
    expect((await files.read(site.url('list.txt'), 10, 20)).toString()).toBe(LIST.slice(10, 30));
    expect(await collect(await files.stream(site.url('empty')))).toEqual([]);
    expect(await collect(await files.stream(site.url('list.txt'), LIST.length))).toEqual([]);
    expect(await collect(files.list(site.url('list.txt')))).toEqual([
      { url: site.url('list.txt'), bytes: null },
    ]);
  });

  test.each([401, 403, 400])('status %d is not tried again', async (status) => {
    failing(9, (_, response) => !!response.writeHead(status).end());
    await expect(files.size(site.url('list.txt'))).rejects.toThrow(new RegExp(`refuses .*${status}`));
    expect(site.requests).toHaveLength(1);
  });

  test('an answer that is not the part that was asked for is refused', async () => {
    failing(9, (_, response) => !!response.writeHead(206, { 'content-range': 'bytes 0-4/90' }).end('wrong'));
    await expect(files.read(site.url('list.txt'), 50, 5)).rejects.toThrow(/changed/);
    failing(
      9,
      (_, response) =>
        !!response.writeHead(206, { 'content-range': 'bytes 50-54/90', etag: '"1"' }).end('far too long'),
    );
    await expect(files.read(site.url('list.txt'), 50, 5)).rejects.toThrow(/instead of 5/);
  });
});
