import { spawn, spawnSync } from 'node:child_process';
import { chmodSync, copyFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, expect, test, vi } from 'vitest';
import { openBrowserFetcher } from '../../../../src/fetch/browser/browser-fetcher.ts';
import { groupOf, listProcesses } from '../../../support/browser/browser-processes.ts';
import { clock, isPublicAddress } from '../../../support/fetch/http-fetcher-setup.ts';

/** A page that has taken over its browser tries to read what the worker knows. */
const SECRET = 'not-for-pages';
const isRoot = process.getuid!() === 0;
let fetcher: Awaited<ReturnType<typeof openBrowserFetcher>>;
let pid: number;
const warnings: string[] = [];

beforeAll(async () => {
  vi.stubEnv('SEINE_TEST_SECRET', SECRET);
  const logger = { info() {}, warn: (text: string) => void warnings.push(text), error() {} };
  const browser = { path: 'bundled', sandbox: 'try' as const };
  fetcher = await openBrowserFetcher({ clock, isPublicAddress, logger, browser });
  await fetcher.prepare();
  pid = fetcher.pids()[0]!;
});
afterEach(() => vi.restoreAllMocks());
afterAll(async () => {
  await fetcher.close();
  vi.unstubAllEnvs();
});

const statusOf = (each: number) => readFileSync(`/proc/${each}/status`, 'latin1');
const environmentOf = (each: number) => readFileSync(`/proc/${each}/environ`, 'latin1').split('\0');
const uidOf = (each: number) => Number(/^Uid:\s+(\d+)/m.exec(statusOf(each))![1]);

test('neither the browser nor its watchdog has the environment of the worker', () => {
  const own = listProcesses().find((each) => each.pid === pid)!;
  for (const each of [own.parent, ...groupOf(pid).map((process) => process.pid)]) {
    const environment = environmentOf(each);
    expect(environment.join('\n')).not.toContain(SECRET);
    expect(environment.filter((line) => line.startsWith('SEINE_'))).toEqual([]);
  }
});

test('started by root, it is a user that owns nothing, and can read nothing of the worker', () => {
  const user = uidOf(pid);
  expect(user).toBe(isRoot ? 60_999 : process.getuid!());
  for (const { pid: each } of groupOf(pid)) expect(uidOf(each)).toBe(user);
  expect(statusOf(pid)).toMatch(isRoot ? /^Groups:\s*$/m : /^Groups:/m);
  const read = (path: string) => spawnSync('cat', [path], { uid: user, gid: user, cwd: '/' }).status;
  if (isRoot)
    for (const name of ['environ', 'maps']) expect(read(`/proc/${process.pid}/${name}`)).not.toBe(0);
  expect(warnings.filter((text) => text.includes('as root'))).toEqual([]);
});

test('a program that may be run and not read, as those of the images, shows its environment to nobody of its user', () => {
  const folder = mkdtempSync(join(tmpdir(), 'seine-unreadable-'));
  try {
    chmodSync(folder, 0o755);
    const user = isRoot ? 60_998 : process.getuid!();
    const asUser = isRoot ? { uid: user, gid: user } : {};
    const canLook = (mode: number): boolean => {
      const program = join(folder, `sleep-${mode}`);
      copyFileSync('/bin/sleep', program);
      chmodSync(program, mode);
      const child = spawn(program, ['600'], { ...asUser, cwd: '/', env: { WORKER_SECRET: SECRET } });
      try {
        const { status, stdout } = spawnSync('cat', [`/proc/${child.pid}/environ`], { ...asUser, cwd: '/' });
        return status === 0 && String(stdout).includes(SECRET);
      } finally {
        child.kill('SIGKILL');
      }
    };
    expect(canLook(0o755)).toBe(true);
    // Only another user's program can be one that its user may not read.
    if (isRoot) expect(canLook(0o711)).toBe(false);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test('what it has written is gone with it', async () => {
  const home = environmentOf(pid)
    .find((line) => line.startsWith('HOME='))!
    .slice('HOME='.length);
  expect(existsSync(`${home}/profile`)).toBe(true);
  await fetcher.close();
  expect(existsSync(home.replace(/\/home$/, ''))).toBe(false);
});
