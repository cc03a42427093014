import { execFile } from 'node:child_process';
import { accessSync, constants, existsSync, readdirSync } from 'node:fs';
import { mkdir, rm, rmdir, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** The path of a program, which is installed if it is missing and that is possible. */
export async function provideProgram(
  name: string,
  /** `variable`: of the environment, for a server that is there already. */
  needed: { package: string; variable?: string },
): Promise<string> {
  const found = findProgram(name);
  if (found) return found;
  const server = needed.variable ? `, or set ${needed.variable} to a server that tests may use` : '';
  const remedy = `install the package ${needed.package}${server}`;
  if (process.getuid?.() !== 0 || !findProgram('apt-get'))
    throw new Error(`${name} was not found: ${remedy}`);
  await withInstallLock(async () => {
    if (!findProgram(name)) await install(needed.package);
  });
  const installed = findProgram(name);
  if (!installed) throw new Error(`${name} was not found after installing ${needed.package}: ${remedy}`);
  return installed;
}

function findProgram(name: string): string | null {
  for (const folder of programFolders()) {
    try {
      accessSync(join(folder, name), constants.X_OK);
      return join(folder, name);
    } catch {
      // Not there: the next folder may have it.
    }
  }
  return null;
}

/** Debian keeps the programs of PostgreSQL off the PATH; the newest version comes first. */
function programFolders(): string[] {
  const root = '/usr/lib/postgresql';
  const versions = existsSync(root) ? readdirSync(root) : [];
  return [
    ...versions.sort((a, b) => Number(b) - Number(a)).map((version) => join(root, version, 'bin')),
    ...(process.env.PATH ?? '').split(delimiter),
    '/usr/sbin',
    '/usr/local/bin',
    '/opt/homebrew/bin',
  ];
}

/** A package must not start a service of its own: the policy file is what Debian asks before it does. */
async function install(name: string): Promise<void> {
  const policy = '/usr/sbin/policy-rc.d';
  const ours = !existsSync(policy);
  if (ours) await writeFile(policy, '#!/bin/sh\nexit 101\n', { mode: 0o755 });
  const options = { env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' } };
  // A new machine may be busy with its own updates.
  const args = ['-o', 'DPkg::Lock::Timeout=120', 'install', '-y', '--no-install-recommends', name];
  try {
    await run('apt-get', args, options).catch(async () => {
      // The list of packages may be missing or too old.
      await run('apt-get', ['update'], options);
      await run('apt-get', args, options);
    });
  } catch (error) {
    throw new Error(`apt-get could not install ${name}: ${String(error).slice(0, 500)}`);
  } finally {
    if (ours) await rm(policy, { force: true });
  }
}

/** Nobody installs for longer: whoever holds the lock was killed. */
const INSTALL_MS_MAX = 300_000;

/** Test files run in processes beside each other, and apt refuses to run twice. */
async function withInstallLock(work: () => Promise<void>): Promise<void> {
  const lock = join(tmpdir(), 'seine-install.lock');
  while (
    !(await mkdir(lock).then(
      () => true,
      () => false,
    ))
  ) {
    const madeAt = await stat(lock).then(
      (found) => found.mtimeMs,
      () => Date.now(),
    );
    if (Date.now() - madeAt > INSTALL_MS_MAX) await rmdir(lock).catch(() => {});
    await new Promise((resolve) => setTimeout(resolve, 200));
  }
  try {
    await work();
  } finally {
    await rmdir(lock).catch(() => {});
  }
}
