/** Temporary folders and children of a benchmark run: all are gone at the end, also after Ctrl-C. */
import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export interface Scratch {
  /** A fresh folder in memory where the system has one: what is read from it must not measure the disk. */
  memoryFolder(name: string): string;
  diskFolder(name: string): string;
  remove(folder: string): void;
  spawn(file: string, args: string[], options: SpawnOptions): ChildProcess;
  onEnd(task: () => Promise<void> | void): void;
  end(): Promise<void>;
}

function killGroup(child: ChildProcess): void {
  if (child.pid === undefined || child.exitCode !== null || child.signalCode !== null) return;
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    child.kill('SIGKILL');
  }
}

export function openScratch(diskParent = tmpdir()): Scratch {
  const folders = new Set<string>();
  const children = new Set<ChildProcess>();
  const tasks: (() => Promise<void> | void)[] = [];
  let ending: Promise<void> | undefined;
  // After Ctrl-C the rounds still wind down; nothing new may start under them.
  const refuseWhenEnding = (): void => {
    if (ending !== undefined) throw new Error('the benchmark is ending');
  };
  const make = (parent: string, name: string): string => {
    refuseWhenEnding();
    const folder = mkdtempSync(join(parent, `seine-bench-${name}-`));
    folders.add(folder);
    return folder;
  };
  const remove = (folder: string): void => {
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
    folders.delete(folder);
  };
  const endOnce = async (): Promise<void> => {
    for (const child of children) killGroup(child);
    for (const task of tasks.reverse()) await task();
    for (const folder of folders) remove(folder);
  };
  const end = (): Promise<void> => {
    ending ??= endOnce();
    return ending;
  };
  for (const [signal, exitCode] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
    ['SIGHUP', 129],
  ] as const) {
    process.once(signal, () => void end().finally(() => process.exit(exitCode)));
  }
  return {
    memoryFolder: (name) => make(existsSync('/dev/shm') ? '/dev/shm' : tmpdir(), name),
    diskFolder: (name) => make(diskParent, name),
    remove,
    spawn(file, args, options) {
      refuseWhenEnding();
      // A group of its own, so that the grandchildren end with it.
      const child = spawn(file, args, { ...options, detached: true });
      children.add(child);
      child.once('exit', () => children.delete(child));
      return child;
    },
    onEnd: (task) => void tasks.push(task),
    end,
  };
}
