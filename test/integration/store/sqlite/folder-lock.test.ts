import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { SeineError } from '../../../../src/core/errors.ts';
import { isFolderLocked, lockFolder } from '../../../../src/store/sqlite/connection/folder-lock.ts';
import { temporaryFolder } from '../../../support/fixtures.ts';

let folder: Awaited<ReturnType<typeof temporaryFolder>>;
const children: ChildProcess[] = [];
beforeEach(async () => {
  folder = await temporaryFolder();
});
afterEach(async () => {
  for (const child of children.splice(0)) {
    if (child.exitCode === null && child.signalCode === null) {
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
  }
  await folder.remove();
});

/** Another process that holds the folder until it is killed. */
async function holder(): Promise<ChildProcess> {
  const lock = new URL('../../../../src/store/sqlite/connection/folder-lock.ts', import.meta.url).href;
  const code = `
    const { lockFolder } = await import(${JSON.stringify(lock)});
    globalThis.lock = lockFolder(${JSON.stringify(folder.dir)});
    process.stdout.write('held\\n');
    setInterval(() => {}, 1000);`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', code], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.push(child);
  const [said] = await once(child.stdout!, 'data');
  expect(String(said)).toBe('held\n');
  return child;
}

test('one at a time, in one process', () => {
  const lock = lockFolder(folder.dir);
  expect(isFolderLocked(folder.dir)).toBe(true);
  expect(() => lockFolder(folder.dir)).toThrow(SeineError);
  lock.release();
  expect(isFolderLocked(folder.dir)).toBe(false);
  lockFolder(folder.dir).release();
});

test('the second is told who the first is, at once', async () => {
  const child = await holder();
  const before = performance.now();
  let error: unknown;
  try {
    lockFolder(folder.dir);
  } catch (caught) {
    error = caught;
  }
  expect(performance.now() - before).toBeLessThan(10_000);
  expect(error).toBeInstanceOf(SeineError);
  expect(error).toMatchObject({ exit: 'locked' });
  expect((error as SeineError).message).toContain(folder.dir);
  expect((error as SeineError).message).toContain(`process ${child.pid}`);
  expect(isFolderLocked(folder.dir)).toBe(true);
});

test('a process that is killed leaves no lock behind', async () => {
  for (let turn = 0; turn < 2; turn++) {
    const child = await holder();
    child.kill('SIGKILL');
    await once(child, 'exit');
    expect(isFolderLocked(folder.dir)).toBe(false);
  }
  const lock = lockFolder(folder.dir);
  expect(() => lockFolder(folder.dir)).toThrow(new RegExp(`process ${process.pid}`));
  lock.release();
});

test('a released lock leaves no word of its owner', async () => {
  lockFolder(folder.dir).release();
  expect((await readdir(folder.dir)).filter((name) => name.startsWith('owner'))).toEqual([]);
});

test('looking does not take the lock, nor make files in a folder that nobody uses', () => {
  expect(isFolderLocked(join(folder.dir, 'nothing'))).toBe(false);
  expect(existsSync(join(folder.dir, 'nothing'))).toBe(false);
  expect(isFolderLocked(folder.dir)).toBe(false);
  lockFolder(folder.dir).release();
});

test('somebody who looks does not keep a coordinator out', async () => {
  // Looks are short, and happen whenever somebody asks for the status of a folder.
  const look = new URL('../../../../src/store/sqlite/connection/folder-lock.ts', import.meta.url).href;
  const code = `
    const { isFolderLocked } = await import(${JSON.stringify(look)});
    process.stdout.write('looking\\n');
    const pause = new Int32Array(new SharedArrayBuffer(4));
    for (;;) {
      isFolderLocked(${JSON.stringify(folder.dir)});
      Atomics.wait(pause, 0, 0, 1);
    }`;
  lockFolder(folder.dir).release();
  const child = spawn(process.execPath, ['--input-type=module', '-e', code], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  children.push(child);
  await once(child.stdout!, 'data');
  // So often that many of them meet a look.
  for (let turn = 0; turn < 500; turn++) lockFolder(folder.dir).release();
});

test('a folder that is not there is an error, not a lock', () => {
  expect(() => lockFolder(join(folder.dir, 'no', 'such'))).toThrow();
  expect(isFolderLocked(join(folder.dir, 'no', 'such'))).toBe(false);
});
