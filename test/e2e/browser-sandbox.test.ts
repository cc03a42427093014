import { spawnSync } from 'node:child_process';
import { chownSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { listProcesses } from '../support/browser-processes.ts';
import { startSeine, temporaryFolder } from '../support/seine-process.ts';

/** Chromium has no sandbox for root. There, this is the only test that sees one; other users have it in all of them. */

const NOBODY = 65_534;
const asNobody = (command: string, args: string[]) =>
  spawnSync(command, args, { uid: NOBODY, gid: NOBODY, cwd: '/' }).status === 0;
/** The sandbox needs user namespaces, and the user must be able to read this package. */
const isPossible =
  process.platform === 'linux' &&
  process.getuid?.() === 0 &&
  asNobody('unshare', ['--user', 'true']) &&
  asNobody(process.execPath, [
    '-e',
    `require('node:fs').readFileSync(${JSON.stringify(import.meta.filename)})`,
  ]);

const folder = temporaryFolder();
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
  if (isPossible) chownSync(folder.path, NOBODY, NOBODY);
});

afterAll(() => {
  site.close();
  folder.remove();
});

test.runIf(isPossible)(
  'pages are shown inside of the sandbox by any user but root',
  {
    timeout: 60_000,
  },
  async () => {
    const url = `http://127.0.0.1:${(site.address() as AddressInfo).port}/`;
    const args = ['run', url, '--browser', '--allow-private', '--rate', 'max', '--no-robots'];
    const env = {
      SEINE_DIR: `${folder.path}/data`,
      HOME: folder.path,
      TMPDIR: folder.path,
      SEINE_WORKERS: '1',
    };
    const run = startSeine(args, { env, cwd: folder.path, user: NOBODY });
    const ended = run.finished.then(({ stderr }) => Promise.reject(new Error(`it ended early: ${stderr}`)));
    await Promise.race([asked.promise, ended]);
    ended.catch(() => {});
    const renderers = listProcesses()
      .filter(({ command }) => command.includes('--type=renderer'))
      .map(({ pid }) => readFileSync(`/proc/${pid}/status`, 'latin1'))
      .filter((status) => new RegExp(`^Uid:\\s+${NOBODY}\\s`, 'm').test(status));
    expect(renderers.length).toBeGreaterThan(0);
    // 2 is a filter of system calls.
    for (const status of renderers) expect(status).toMatch(/^Seccomp:\s+2$/m);
    looked.resolve();
    const { code, stderr } = await run.finished;
    expect(code, stderr).toBe(0);
    expect(stderr).not.toContain('sandbox');
    const page = await startSeine(['page', url], { env, cwd: folder.path, user: NOBODY }).finished;
    expect(page.stdout).toContain('<title>Seen</title>');
  },
);
