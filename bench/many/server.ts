/** `seine serve` as a program, and what it prints. */
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { ROOT_FOLDER } from '../contenders/contender.ts';
import { nodeFlags } from '../node-flags.ts';
import type { Scratch } from '../scratch.ts';

interface Served {
  url: string;
  pid: number;
  /** From the start of the process until it is ready. */
  readyMs: number;
  /** Runs that have ended, as they are told. */
  ended: { id: string; state: string; done: number }[];
  /** Waits until so many runs have ended. */
  until(count: number): Promise<void>;
  end(): Promise<void>;
}

const WORKERS = 2;
const SEINE = join(ROOT_FOLDER, 'bin', 'seine.js');

export async function startServer(scratch: Scratch, dir: string, ...args: string[]): Promise<Served> {
  const startedAt = performance.now();
  const given = ['serve', '--listen', '127.0.0.1:0', '--dir', dir, '--allow-private', '--json', ...args];
  const env = { ...process.env, SEINE_WORKERS: String(WORKERS) };
  const child: ChildProcess = scratch.spawn(process.execPath, [...nodeFlags(), SEINE, ...given], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended: Served['ended'] = [];
  let heard = () => {};
  const exited = once(child, 'exit').then(() => heard());
  const url = Promise.withResolvers<string>();
  createInterface({ input: child.stdout! }).on('line', (line) => {
    const told = JSON.parse(line);
    if (typeof told.listening === 'string') url.resolve(told.listening);
    else ended.push(told);
    heard();
  });
  void exited.then(() => url.reject(new Error('the server ended')));
  const served = await url.promise;
  while (!(await fetch(`${served}/readyz`)).ok);
  return {
    url: served,
    pid: child.pid!,
    readyMs: performance.now() - startedAt,
    ended,
    async until(count) {
      while (ended.length < count) {
        if (child.exitCode !== null) throw new Error(`the server ended with ${child.exitCode}`);
        await new Promise<void>((resolve) => {
          heard = resolve;
        });
      }
    },
    async end() {
      child.kill('SIGTERM');
      await exited;
    },
  };
}

/** Resident memory in MB. */
export function memoryOf(pid: number): number {
  return Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1] ?? 0) / 1024;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}
