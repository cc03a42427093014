import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { listProcesses } from '../../support/browser/browser-processes.ts';
import { folderOf, ordinaryUser } from '../../support/ordinary-user.ts';
import { startSeine } from '../../support/seine-process.ts';

/**
 * Chromium has no sandbox for root: there, this is the only test that sees one. It needs user namespaces; a machine
 * that does not permit them is told so.
 */

const user = ordinaryUser();
const folder = folderOf(user);
const hasNamespaces = spawnSync('unshare', ['--user', 'true'], { uid: user, cwd: '/' }).status === 0;
const looked = Promise.withResolvers<void>();
const asked = Promise.withResolvers<void>();
/** The page is not there before its script is, and that comes when the processes have been looked at. */
const site = createServer((request, response) => {
  if (request.url !== '/late.js') {
    response.setHeader('content-type', 'text/html');
    response.end('<title>Page</title><script src="/late.js"></script>');
    return;
  }
  asked.resolve();
  void looked.promise.then(() => response.end('document.title = "Seen"'));
});

beforeAll(async () => {
  await new Promise<void>((resolve) => site.listen(0, '127.0.0.1', resolve));
});

afterAll(() => {
  site.close();
  folder.remove();
});

test('pages are shown inside of the sandbox by any user but root', async () => {
  const url = `http://127.0.0.1:${(site.address() as AddressInfo).port}/`;
  const args = ['run', url, '--browser', '--allow-private', '--rate', 'max', '--no-robots'];
  const env = {
    SEINE_DIR: `${folder.path}/data`,
    HOME: folder.path,
    TMPDIR: folder.path,
    SEINE_WORKERS: '1',
  };
  const run = startSeine(args, { env, cwd: folder.path, user });
  if (!hasNamespaces) {
    const { code, stderr } = await run.finished;
    expect(code).not.toBe(0);
    expect(stderr).toContain('no usable sandbox');
    return;
  }
  const ended = run.finished.then(({ stderr }) => Promise.reject(new Error(`it ended early: ${stderr}`)));
  await Promise.race([asked.promise, ended]);
  ended.catch(() => {});
  const renderers = listProcesses()
    .filter(({ command }) => command.includes('--type=renderer'))
    .map(({ pid }) => readFileSync(`/proc/${pid}/status`, 'latin1'))
    .filter((status) => new RegExp(`^Uid:\\s+${user}\\s`, 'm').test(status));
  expect(renderers.length).toBeGreaterThan(0);
  for (const status of renderers) {
    // 2 is a filter of system calls.
    expect(status).toMatch(/^Seccomp:\s+2$/m);
  }
  looked.resolve();
  const { code, stderr } = await run.finished;
  expect(code, stderr).toBe(0);
  expect(stderr).not.toContain('sandbox');
  const page = await startSeine(['page', url], { env, cwd: folder.path, user }).finished;
  expect(page.stdout).toContain('<title>Seen</title>');
});
