import { spawnSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { availableMemory } from 'node:process';

/** Where Linux keeps files in memory. */
const IN_MEMORY = '/dev/shm';
const PREFIX = 'seine-test-';
/** Ten times what was seen in it, of which Chromium is the most; in many containers there are 64 MB. */
const FREE_BYTES_MIN = 4 * 1024 ** 3;
/** What is in the folder is taken from what the tests themselves have. */
const MEMORY_BYTES_MIN = 8 * 1024 ** 3;

/**
 * Makes folders of tests folders in memory, where there is room: thousands of new databases wait for the disk
 * otherwise, longer than they compute. Returns what removes it; null where they stay on the disk.
 */
export function useMemoryFolder(): (() => void) | null {
  try {
    removeLeftovers();
    const { bavail, bsize } = statfsSync(IN_MEMORY);
    if (bavail * bsize < FREE_BYTES_MIN || availableMemory() < MEMORY_BYTES_MIN) return null;
    const folder = mkdtempSync(join(IN_MEMORY, `${PREFIX}${process.pid}-`));
    // As /tmp: servers and browsers are other users.
    chmodSync(folder, 0o1777);
    const remove = () => rmSync(folder, { recursive: true, force: true });
    if (!canExecuteIn(folder)) {
      remove();
      return null;
    }
    process.env.TMPDIR = folder;
    return remove;
  } catch {
    return null;
  }
}

/** Some systems forbid it there, and tests make programs. */
function canExecuteIn(folder: string): boolean {
  const program = join(folder, 'program');
  writeFileSync(program, '#!/bin/sh\n', { mode: 0o755 });
  const { status } = spawnSync(program);
  rmSync(program);
  return status === 0;
}

/** Of runs that were killed: they would keep their memory for ever. */
function removeLeftovers(): void {
  for (const name of readdirSync(IN_MEMORY)) {
    const [, pid] = new RegExp(`^${PREFIX}(\\d+)-`).exec(name) ?? [];
    if (pid !== undefined && !isAlive(Number(pid)))
      rmSync(join(IN_MEMORY, name), { recursive: true, force: true });
  }
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
