import { chmod, mkdir, mkdtemp, readdir, readFile, rm, symlink, utimes, writeFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { openBrowserFetcher } from '../../../../src/fetch/browser/browser-fetcher.ts';
import { findChromium, findChromiumMajor } from '../../../../src/fetch/browser/process/find-chromium.ts';
import { groupOf } from '../../../support/browser/browser-processes.ts';
import { memoryLogger } from '../../../support/fleet/bullmq-fleet.ts';

/** Where Chromium comes from, and that half of one is never run. */

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'seine-find-'));
  vi.stubEnv('TMPDIR', folder);
});
afterEach(async () => {
  vi.unstubAllEnvs();
  await rm(folder, { recursive: true, force: true });
});

const user = process.getuid!();

async function versionOf(): Promise<string> {
  const entry = createRequire(import.meta.url).resolve('@sparticuz/chromium');
  const text = await readFile(join(entry, '..', '..', 'package.json'), 'utf8');
  return (JSON.parse(text) as { version: string }).version;
}

describe('its version, without a start', () => {
  const scriptOf = async (says: string) => {
    const path = join(folder, 'chromium');
    await writeFile(path, `#!/bin/sh\n${says}\n`, { mode: 0o755 });
    return path;
  };

  test('is what it says of itself, and that of its package for the bundled one', async () => {
    const path = await scriptOf("echo 'Chromium 150.0.7871.100 built on Debian GNU/Linux 12'");
    expect(await findChromiumMajor(path)).toBe(150);
    expect(await findChromiumMajor('bundled')).toBe(Number.parseInt(await versionOf(), 10));
    expect(await readdir(folder)).toEqual(['chromium']);
  });

  test('is not known where there is none, or where it does not say', async () => {
    expect(await findChromiumMajor(join(folder, 'missing'))).toBeNull();
    expect(await findChromiumMajor(await scriptOf('exit 3'))).toBeNull();
    expect(await findChromiumMajor(await scriptOf('echo nothing'))).toBeNull();
  });
});

describe('the bundled one', () => {
  test('is unpacked once, whoever comes at the same time, and what others left is removed', async () => {
    await mkdir(join(folder, `seine-chromium-${user}-1.0.0`));
    await mkdir(join(folder, `seine-chromium-${user}-1.0.0-unpacking-abc`));
    // Of a process that died with it, a quarter of a minute ago.
    const lock = join(folder, `seine-chromium-${user}-${await versionOf()}.lock`);
    await mkdir(lock);
    const diedAt = new Date(Date.now() - 15_000);
    await utimes(lock, diedAt, diedAt);
    const found = await Promise.all(Array.from({ length: 3 }, () => findChromium('bundled')));
    const [{ path }] = found as [(typeof found)[0], ...unknown[]];
    expect(new Set(found.map((each) => each.path))).toEqual(new Set([path]));
    expect(await readdir(folder)).toHaveLength(1);
    // From now on nothing is unpacked: what is there is used.
    await rm(path);
    expect((await findChromium('bundled')).path).toBe(path);
    expect(await readdir(join(path, '..'))).not.toContain('chromium');
  });

  test('is not run from a folder that others can write to', async () => {
    const path = join(folder, `seine-chromium-${user}-${await versionOf()}`);
    await mkdir(path);
    await chmod(path, 0o777);
    await expect(findChromium('bundled')).rejects.toThrow(/is not private to this user/);
  });

  test('is not run from where a link leads, which somebody else may turn elsewhere', async () => {
    const own = join(folder, 'own');
    await mkdir(own, { mode: 0o700 });
    await symlink(own, join(folder, `seine-chromium-${user}-${await versionOf()}`));
    await expect(findChromium('bundled')).rejects.toThrow(/is not private to this user/);
  });
});

test('the setting names one that can be executed, or it is an error that says so', async () => {
  const path = join(folder, 'chromium');
  await writeFile(path, '');
  await expect(findChromium(path)).rejects.toThrow(
    /Chromium of SEINE_BROWSER does not exist or is not executable/,
  );
  await chmod(path, 0o755);
  expect(await findChromium(path)).toEqual({ path, from: 'setting', environment: {} });
});

test('where it may start no other process, as in some sandboxes of Lambda, it runs as one', async () => {
  vi.unstubAllEnvs();
  const { path: real, environment } = await findChromium('bundled');
  const path = join(folder, 'chromium');
  const given = Object.entries(environment).map(([name, value]) => `${name}='${value}' `);
  const lines = [
    '#!/bin/sh',
    `case "$*" in *--single-process*) ${given.join('')}exec '${real}' "$@";; esac`,
    'echo "prctl(PR_SET_NO_NEW_PRIVS) failed" >&2; exit 1',
  ];
  await writeFile(path, lines.join('\n'), { mode: 0o755 });
  const logger = memoryLogger();
  const clock = { now: () => performance.timeOrigin + performance.now() };
  const options = { clock, isPublicAddress: () => true, browser: { path }, logger };
  const fetcher = await openBrowserFetcher(options);
  try {
    await fetcher.prepare();
    expect(groupOf(fetcher.pids()[0]!)).toHaveLength(1);
    expect(logger.lines).toContain('the browser cannot start processes here, so it runs as a single process');
  } finally {
    await fetcher.close();
  }
});
