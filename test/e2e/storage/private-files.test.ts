import { readdirSync, statSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { seine, temporaryFolder } from '../../support/seine-process.ts';

/** What a run keeps is for its owner alone, also where the umask lets everyone read. */

const folder = temporaryFolder();
const dir = join(folder.path, 'parent', '.seine');
/** By name, the mode of everything that was there at the time of a request, and at the end. */
const seen = new Map<string, string>();
let server: Server;

function look(): void {
  for (const name of readdirSync(dir, { recursive: true, encoding: 'utf8' })) {
    const found = statSync(join(dir, name), { throwIfNoEntry: false });
    if (found)
      seen.set(name, `${found.isDirectory() ? 'folder' : 'file'} ${(found.mode & 0o777).toString(8)}`);
  }
}

beforeAll(async () => {
  // A run is at work while it asks: there are the lock, its owner and the files beside the database.
  server = createServer((_, response) => {
    look();
    response.setHeader('content-type', 'text/html').end('<title>One</title>');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});

afterAll(() => {
  server.close();
  folder.remove();
});

test('folders are 0700 and files 0600, whatever the umask', async () => {
  const { port } = server.address() as AddressInfo;
  const flags = ['--allow-private', '--rate', 'max', '--no-robots', '--dir', dir];
  const finished = await seine(['run', '-', '--format', 'txt', ...flags], {
    cwd: folder.path,
    env: { SEINE_WORKERS: '1' },
    input: `http://127.0.0.1:${port}/1\nno URL\n`,
    umask: '0',
  });
  expect(finished.stderr).toContain('1 done');
  look();
  const names = [...seen.keys()];
  for (const wanted of ['seine.db', 'seine.db-wal', 'seine.db-shm', 'lock.db', 'owner.json', 'inputs'])
    expect(names).toContain(wanted);
  for (const wanted of [/\.warc\.gz$/, /^inputs\/./, /reject/])
    expect(names.some((name) => wanted.test(name))).toBe(true);
  expect([...seen].filter(([, mode]) => mode !== 'folder 700' && mode !== 'file 600')).toEqual([]);
  expect((statSync(dir).mode & 0o777).toString(8)).toBe('700');
  // What is above is not ours to close.
  expect((statSync(join(folder.path, 'parent')).mode & 0o777).toString(8)).toBe('777');
});
