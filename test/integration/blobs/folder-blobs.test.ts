import { spawnSync } from 'node:child_process';
import { mkdtemp, open, readdir, readFile, rm, stat, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { explained } from '../../../src/blobs/file-errors.ts';
import { FileWriter } from '../../../src/blobs/file-writer.ts';
import {
  FILE_AT_ONCE_BYTES_MAX,
  openFolderBlobs,
  sweepAbandoned,
  sweepTemporary,
} from '../../../src/blobs/folder-blobs.ts';
import { SeineError } from '../../../src/core/errors.ts';
import { runBlobsContract } from '../../contract/blobs-contract.ts';

let root: string;
let folders = 0;
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'seine-blobs-'));
});
afterAll(() => rm(root, { recursive: true, force: true }));
const freshDir = () => join(root, String(folders++));

runBlobsContract('folder', () => openFolderBlobs(freshDir()));
runBlobsContract('folder, synced', () => openFolderBlobs(freshDir(), { sync: true }));

describe('folder blobs', () => {
  test('a blob is a file at its key', async () => {
    const dir = freshDir();
    const blobs = await openFolderBlobs(dir);
    await blobs.put('a/b.txt', Buffer.from('hello'));
    expect(await readFile(join(dir, 'a', 'b.txt'), 'utf8')).toBe('hello');
    expect(blobs.locate('a/b.txt')).toBe(join(dir, 'a', 'b.txt'));
    expect(await readdir(join(dir, '.tmp'))).toEqual([]);
  });

  test('a temporary file is gone after a commit under another key, and after an abort', async () => {
    const dir = freshDir();
    const blobs = await openFolderBlobs(dir);
    await (await blobs.write('unnamed')).commit('a/named');
    await (await blobs.write('unnamed')).abort();
    expect(await readdir(join(dir, '.tmp'))).toEqual([]);
    expect((await readdir(dir)).sort()).toEqual(['.tmp', 'a']);
  });

  test('the disk is waited for where that is wanted, also for small files, and nowhere else', async () => {
    const handle = await open(join(root, 'any'), 'w');
    const datasync = vi.spyOn(Object.getPrototypeOf(handle) as typeof handle, 'datasync');
    await handle.close();
    try {
      const waits = async (sync: boolean, bytes: number) => {
        const blobs = await openFolderBlobs(freshDir(), { sync });
        datasync.mockClear();
        await blobs.put('a', Buffer.alloc(bytes));
        return datasync.mock.calls.length;
      };
      const large = FILE_AT_ONCE_BYTES_MAX + 1;
      expect([await waits(true, 5), await waits(true, large)]).toEqual([1, 1]);
      expect([await waits(false, 5), await waits(false, large)]).toEqual([0, 0]);
    } finally {
      datasync.mockRestore();
    }
  });

  test('nothing that was written or read stays open', async () => {
    const blobs = await openFolderBlobs(freshDir());
    // The lowest number that is free is taken.
    const probe = async () => {
      const handle = await open(join(root, 'any'), 'w');
      const { fd } = handle;
      await handle.close();
      return fd;
    };
    const before = await probe();
    for (let index = 0; index < 40; index++) {
      await blobs.put(`small-${index}`, Buffer.from('x'));
      await blobs.read(`small-${index}`);
      const writer = await blobs.write('long');
      await writer.append(Buffer.from('x'));
      await (index % 2 === 0 ? writer.abort() : writer.commit());
    }
    expect((await probe()) - before).toBeLessThan(20);
  });

  test('a folder that somebody removed is made again', async () => {
    const dir = freshDir();
    const blobs = await openFolderBlobs(dir);
    await blobs.put('a/1', Buffer.from('1'));
    await rm(join(dir, 'a'), { recursive: true });
    await rm(join(dir, '.tmp'), { recursive: true });
    await blobs.put('a/2', Buffer.from('2'));
    expect((await blobs.read('a/2'))?.toString()).toBe('2');
  });

  test('only the folder and what is in it are private, what is above it is left to the umask', async () => {
    const above = join(freshDir(), 'above');
    const dir = join(above, 'blobs');
    const modeOf = async (path: string) => ((await stat(path)).mode & 0o777).toString(8);
    const modes = () => Promise.all([above, dir, join(dir, 'a', 'b')].map(modeOf));
    const open = (0o777 & ~process.umask()).toString(8);
    const blobs = await openFolderBlobs(dir);
    await blobs.put('a/b/1', Buffer.from('one'));
    expect(await modes()).toEqual([open, '700', '700']);
    for (const key of ['a/b/small', 'a/b/large']) {
      await rm(above, { recursive: true });
      await blobs.put(key, Buffer.alloc(key === 'a/b/small' ? 1 : FILE_AT_ONCE_BYTES_MAX + 1));
      expect(await modes(), key).toEqual([open, '700', '700']);
    }
  });

  test('a process that is killed leaves only a temporary file, and the sweep takes it', async () => {
    const dir = freshDir();
    const module = new URL('../../../src/blobs/folder-blobs.ts', import.meta.url).href;
    const program = `
      const { openFolderBlobs } = await import(${JSON.stringify(module)});
      const blobs = await openFolderBlobs(${JSON.stringify(dir)});
      await blobs.put('done', Buffer.from('whole'));
      const writer = await blobs.write('half');
      await writer.append(Buffer.alloc(100_000));
      process.kill(process.pid, 'SIGKILL');`;
    const run = spawnSync(process.execPath, ['--input-type=module', '-e', program]);
    expect(run.signal).toBe('SIGKILL');
    expect(await readdir(join(dir, '.tmp'))).toHaveLength(1);

    const blobs = await openFolderBlobs(dir);
    expect(await blobs.read('half')).toBeNull();
    expect((await blobs.read('done'))?.toString()).toBe('whole');
    expect(await sweepTemporary(dir)).toBe(1);
    expect(await readdir(join(dir, '.tmp'))).toEqual([]);
  });

  test('neither opening nor the sweep takes the file of a living writer', async () => {
    const dir = freshDir();
    const blobs = await openFolderBlobs(dir);
    const writer = await blobs.write('alive');
    await writer.append(Buffer.from('still here'));
    await openFolderBlobs(dir);
    expect(await sweepTemporary(dir)).toBe(0);
    await writer.commit();
    expect((await blobs.read('alive'))?.toString()).toBe('still here');
  });

  test('the sweep takes the file of an earlier process that had the same pid', async () => {
    const dir = freshDir();
    const blobs = await openFolderBlobs(dir);
    await (await blobs.write('x')).abort();
    const stale = join(dir, '.tmp', `${process.pid}-0-1-1`);
    await writeFile(stale, 'stale');
    const before = Date.now() / 1_000 - process.uptime() - 60;
    await utimes(stale, before, before);
    expect(await sweepTemporary(dir)).toBe(1);
    await expect(stat(stale)).rejects.toThrow(/ENOENT/);
  });

  test('in a folder that others use too, only what was left a day ago is swept', async () => {
    const dir = freshDir();
    const blobs = await openFolderBlobs(dir);
    await blobs.put('kept', Buffer.from('x'));
    for (const [name, hours] of [
      ['1-0-1-1', 25],
      ['2-0-1-1', 23],
    ] as const) {
      const path = join(dir, '.tmp', name);
      await writeFile(path, 'left');
      const at = Date.now() / 1_000 - hours * 3_600;
      await utimes(path, at, at);
    }
    expect(await sweepAbandoned(dir)).toBe(1);
    expect(await readdir(join(dir, '.tmp'))).toEqual(['2-0-1-1']);
    expect(await blobs.has('kept')).toBe(true);
    expect(await sweepAbandoned(freshDir())).toBe(0);
  });

  test('sweeping a folder that is not there yet is no error', async () => {
    expect(await sweepTemporary(freshDir())).toBe(0);
  });

  test('a file where the folder should be is said in a sentence', async () => {
    const dir = freshDir();
    await writeFile(dir, 'a file');
    await expect(openFolderBlobs(dir)).rejects.toThrow(`${dir} is not a folder`);
    await expect(openFolderBlobs(join(dir, 'below'))).rejects.toThrow(SeineError);
  });

  // Root may write anywhere, so a folder without permission cannot be had in every test run.
  test('a missing permission is said in a sentence, an unknown error passes', () => {
    const denied = Object.assign(new Error('EACCES: permission denied'), { code: 'EACCES' });
    const error = explained(denied, '/archive') as SeineError;
    expect(error).toBeInstanceOf(SeineError);
    expect(error.message).toBe('no permission to use /archive');
    expect(error.cause).toBe(denied);
    const unknown = Object.assign(new Error('EIO'), { code: 'EIO' });
    expect(explained(unknown, '/archive')).toBe(unknown);
  });

  test('a full disk is said in a sentence', async () => {
    // Of Linux: /dev/full answers every write as a full disk would.
    const handle = await open('/dev/full', 'w');
    const path = join(root, 'no-such-file');
    const writer = new FileWriter({ handle, path, dir: '/archive', sync: false, publish: async () => {} });
    await expect(writer.append(Buffer.from('x'))).rejects.toThrow('the disk of /archive is full');
    await expect(writer.commit()).rejects.toThrow(/broken/);
    await writer.abort();
  });
});
