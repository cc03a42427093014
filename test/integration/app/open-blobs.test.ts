import { mkdtemp, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openBlobs, prepareBlobs } from '../../../src/app/open-blobs.ts';
import { SeineError } from '../../../src/core/errors.ts';
import { S3_ENV, type S3Server, startS3Server } from '../../support/servers/s3-server.ts';

let root: string;
let server: S3Server;
const SILENT = { info() {}, warn() {}, error() {} };
beforeAll(async () => {
  Object.assign(process.env, S3_ENV);
  root = await mkdtemp(join(tmpdir(), 'seine blobs-'));
  server = await startS3Server();
});
afterAll(async () => {
  await rm(root, { recursive: true, force: true });
  await server.close();
});

test('a path and a file URL are folders', async () => {
  const path = join(root, 'by path');
  await (await openBlobs(path)).put('a/b', Buffer.from('x'));
  expect(await readFile(join(path, 'a', 'b'), 'utf8')).toBe('x');
  const same = await openBlobs(pathToFileURL(path).href, { sync: true });
  expect((await same.read('a/b'))?.toString()).toBe('x');
  expect(same.locate('a/b')).toBe(join(path, 'a', 'b'));
});

test('s3://bucket/prefix is in S3, and nothing is asked of it before it is used', async () => {
  const s3 = { endpoint: server.endpoint, region: null, pathStyle: null };
  const blobs = await openBlobs(`s3://${server.bucket}/pre/fix/`, { s3 });
  expect(server.log).toEqual([]);
  await blobs.put('a/b', Buffer.from('x'));
  expect(await server.keys()).toEqual(['pre/fix/a/b']);
  expect(blobs.locate('a/b')).toBe(`s3://${server.bucket}/pre/fix/a/b`);
  await blobs.close();
});

test.each(['http://host/x', 'S4://bucket', 'file://host/path', 's3://'])('%s is refused', async (setting) => {
  await expect(openBlobs(setting)).rejects.toThrow(SeineError);
});

test('what a dead writer left is swept at once in the folder that is locked, elsewhere after a day', async () => {
  const own = join(root, 'own');
  const shared = join(root, 'shared');
  for (const dir of [own, shared]) {
    await (await (await openBlobs(dir)).write('x')).abort();
    await writeFile(join(dir, '.tmp', '999999-0-1-1'), 'left a minute ago');
    const at = Date.now() / 1_000 - 60;
    await utimes(join(dir, '.tmp', '999999-0-1-1'), at, at);
    await prepareBlobs(dir, { owned: own, s3: undefined, logger: SILENT });
  }
  await expect(readFile(join(own, '.tmp', '999999-0-1-1'))).rejects.toThrow(/ENOENT/);
  expect(await readFile(join(shared, '.tmp', '999999-0-1-1'), 'utf8')).toBe('left a minute ago');
});
